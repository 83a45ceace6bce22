package badgerstore

import (
	"bytes"
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

// An inventory tells the tables of a store apart from others that are as sound: of another store, or of this one under
// another number. For each it has a digest of its checksums. Nothing in a table says whose it is, and Badger takes
// what stands under its number.
//
// It is written when a store is opened and when it is closed. Of a table that was made since by a process that died it
// knows nothing: that one is taken as it is, and is in the inventory from then on. Numbers are used again only for tables that the
// manifest does not name when the database is opened, so of those the inventory forgets before.
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
// One that can't be read, or is of another store, says nothing.
type inventory map[uint64]tableSum

// A tableSum is the SHA-256 of the checksums of a table's blocks, and of its index.
type tableSum [sha256.Size]byte

const (
	inventoryFile   = "tables"
	inventoryMagic  = "pawt"
	inventoryHeader = 42
	inventoryEntry  = 8 + sha256.Size
)

// readInventory returns the inventory of the store in dir, nil if there is none that says something.
func readInventory(dir, id string) (inventory, error) {
	b, err := os.ReadFile(filepath.Join(dir, inventoryFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: reading the inventory of tables: %w", err)
	}
	n := len(b) - inventoryHeader - 4
	if n < 0 || n%inventoryEntry != 0 || !bytes.Equal(b[:inventoryHeader], inventoryHead(id)) {
		return nil, nil
	}
	sum := len(b) - 4
	if binary.BigEndian.Uint32(b[sum:]) != crc32.Checksum(b[:sum], castagnoli) {
		return nil, nil
	}
	v := make(inventory)
	for e := b[inventoryHeader:sum]; len(e) > 0; e = e[inventoryEntry:] {
		v[binary.BigEndian.Uint64(e)] = tableSum(e[8:inventoryEntry])
	}
	return v, nil
}

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

// compare refuses tables that are not those of the inventory, and returns it without those that are not there.
func (g *guarded) compare(had inventory, dir string) (still inventory, err error) {
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

// mostRead is how many bytes of new tables are read when a store is closed. Of the others the next Open takes stock, which
// reads all tables.
const mostRead = 256 << 20

// takeStock writes the inventory of a store whose database is closed. What it can't find out the next Open does.
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
