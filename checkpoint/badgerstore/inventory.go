package badgerstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// An inventory tells the tables of a store apart from others that are as sound: of another store,
// or of this one under another number. For each it has a digest of its checksums. Nothing in a
// table says whose it is, and Badger takes what stands under its number.
//
// It is written when a store is opened and when it is closed. Of a table that was made since by a
// process that died it knows nothing: that one is taken as it is, and is in the inventory from then
// on. Numbers are used again only for tables that the manifest does not name when the database is
// opened, so of those the inventory forgets before.
//
// The file is:
//
//	0  magic "pawt"
//	4  version of the format, 1
//	5  length of the store's id, 36
//	6  the store's id
//	42 for each table its number, 8 bytes, and the digest, 32
//	   CRC-32C of the above
//
// It is replaced in one step, so no crash leaves one that is damaged. One that is missing or has no
// bytes says nothing.
type inventory map[uint64]tableSum

// A tableSum is the SHA-256 of the checksums of a table's blocks, and of its index.
type tableSum [sha256.Size]byte

const (
	inventoryFile   = "tables"
	inventoryMagic  = "pawt"
	inventoryHeader = 42
	inventoryEntry  = 8 + sha256.Size
)

// mostInventory is how large the file may be. That is for more than a million tables, which no
// process could map into memory.
const mostInventory = 64 << 20

// readInventory returns the inventory of the store in dir, nil if there is none that says
// something.
func readInventory(dir, id string) (inventory, error) {
	path := filepath.Join(dir, inventoryFile)
	refuse := func(reason string) error {
		return &damageError{"the inventory of tables " + path + " " + reason, "put the right one back, or: " + takenAsTheyAre}
	}
	b, err := readSmall(path, mostInventory)
	var odd *oddFileError
	switch {
	case errors.As(err, &odd):
		return nil, refuse("can't be read: " + odd.Error())
	case errors.Is(err, os.ErrNotExist), err == nil && len(b) == 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("checkpoint: reading the inventory of tables: %w", err)
	}
	n, sum := len(b)-inventoryHeader-4, len(b)-4
	switch {
	case n < 0 || string(b[:4]) != inventoryMagic:
		return nil, refuse("can't be read")
	case b[4] != formatV1:
		return nil, fmt.Errorf("%w: inventory of tables %s of version %d: use the program that made it, or: %s",
			checkpoint.ErrVersion, path, b[4], takenAsTheyAre)
	case n%inventoryEntry != 0 || b[5] != idSize:
		return nil, refuse("can't be read")
	case binary.BigEndian.Uint32(b[sum:]) != crc32.Checksum(b[:sum], castagnoli):
		return nil, refuse("has another checksum than it says")
	case string(b[6:inventoryHeader]) != id:
		return nil, refuse(fmt.Sprintf("is of store %.36q, and %s says that this is store %q", b[6:inventoryHeader], nameFile, id))
	}
	v := make(inventory)
	for e := b[inventoryHeader:sum]; len(e) > 0; e = e[inventoryEntry:] {
		v[binary.BigEndian.Uint64(e)] = tableSum(e[8:inventoryEntry])
	}
	return v, nil
}

// takenAsTheyAre is what to do about an inventory that can't be put back.
const takenAsTheyAre = "an empty file in its place has the tables taken as they are"

func inventoryHead(id string) []byte {
	return append(append([]byte(inventoryMagic), formatV1, idSize), id...)
}

// write makes v durable, in one step.
func (v inventory) write(dir, id string) error {
	b := inventoryHead(id)
	for _, number := range slices.Sorted(maps.Keys(v)) {
		sum := v[number]
		b = append(binary.BigEndian.AppendUint64(b, number), sum[:]...)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := replaceFile(filepath.Join(dir, inventoryFile), b); err != nil {
		return fmt.Errorf("checkpoint: writing the inventory of tables: %w", err)
	}
	return nil
}

// replace writes v in the place of old, if it is another one.
func (v inventory) replace(old inventory, dir, id string) error {
	if maps.Equal(v, old) {
		return nil
	}
	return v.write(dir, id)
}

// compare refuses tables that are not those of the inventory, and returns it without those that are
// not there.
func (g *guarded) compare(had inventory, dir string) (still inventory, err error) {
	if len(had) > 0 && len(g.sums) == 0 { // what the first table has is in one for ever
		return nil, &damageError{fmt.Sprintf("%s has no table, and %s says that there were %d", filepath.Join(dir, databaseDir), filepath.Join(dir, inventoryFile), len(had)),
			"put the whole directory back from a backup, or use another one for a new store"}
	}
	still = make(inventory)
	for number, sum := range had {
		is, ok := g.sums[number]
		if ok && is != sum {
			return nil, &damageError{tablePath(filepath.Join(dir, databaseDir), number) + " is a sound table, but not the one that the store had under this number",
				"put that back, or the whole directory from a backup; an empty file " + filepath.Join(dir, inventoryFile) + " has the tables taken as they are"}
		}
		if ok {
			still[number] = sum
		}
	}
	return still, nil
}

// mostRead is how many bytes of new tables are read when a store is closed. Of the others the next
// Open takes stock, which reads all tables.
const mostRead = 256 << 20

// takeStock writes the inventory of a store whose database is closed. What it can't find out the
// next Open does.
func (s *Store) takeStock() {
	db := filepath.Join(s.home.dir, databaseDir)
	named, err := readManifest(db, false)
	if err != nil || s.home.check() != nil { // what is in its place now is not the store's
		return
	}
	now, read := make(inventory), int64(0)
	for number := range named {
		sum, known := s.tables[number]
		if !known {
			path := tablePath(db, number)
			info, err := os.Stat(path)
			if err != nil || read+info.Size() > mostRead {
				continue
			}
			read += info.Size()
			if _, sum, err = checkTable(path); err != nil {
				continue
			}
		}
		now[number] = sum
	}
	_ = now.replace(s.tables, s.home.dir, s.name.Store)
}
