package badgerstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"

	"github.com/pawlgo/pawl/checkpoint"
)

// guard checks the files of the database before Badger sees them, for what Badger does with
// damaged ones can't be undone or survived: it removes tables that the manifest does not
// name, and some kinds of damage make it panic in goroutines of its own.
func guard(ctx context.Context, dir string, synced bool) (g guarded, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("checkpoint: reading the database's directory: %w", err)
	}
	g.sums = make(inventory)
	tables := make(map[uint64]string)
	logs := false // of transactions that are not yet in a table
	for _, f := range files {
		path, err := g.takeBack(filepath.Join(dir, f.Name()))
		if err != nil {
			return g, err
		}
		switch filepath.Ext(path) {
		case ".sst":
			if id, ok := tableID(path); ok {
				tables[id] = path
			}
		case ".mem", ".vlog":
			used, err := g.log(path, synced)
			if err != nil {
				return g, err
			}
			if !used || filepath.Ext(path) != memLogExt {
				continue
			}
			logs = true
			if err := g.readLog(ctx, path); err != nil {
				return g, err
			}
		}
	}
	if err := g.tables(ctx, dir, tables, logs); err != nil {
		return g, err
	}
	return g, g.setAside()
}

// log notes a file of no bytes, and makes another one durable if the store is to be synced: one
// that was not may have left it in memory.
func (g *guarded) log(path string, synced bool) (used bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() == 0:
		g.empty = append(g.empty, path)
	case err == nil && synced:
		used, err = true, syncFile(path)
	case err == nil:
		used = true
	case errors.Is(err, os.ErrNotExist): // it is in the directory
		return false, &damageError{path + " is a link to nothing", "put back what it leads to, or restore the store from a backup"}
	}
	if err != nil {
		return false, fmt.Errorf("checkpoint: preparing %s: %w", path, err)
	}
	return used, nil
}

// removeEmpty removes the files of no bytes, see openDatabase.
func (g *guarded) removeEmpty() error {
	for _, path := range g.empty {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("checkpoint: preparing the database: %w", err)
		}
	}
	return nil
}

// makeDiscard makes a file of Badger's, of statistics that it has no use for here, as Badger does:
// but if Badger can't open that file, as on a device that has no room for another one, it ends the
// process.
func makeDiscard(dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checkpoint: making the database: %w", err)
		}
	}()
	path := filepath.Join(dir, "DISCARD")
	if info, err := os.Stat(path); err == nil {
		if kind := oddKind(info.Mode()); kind != "" {
			return &damageError{path + " is " + kind, "remove it: the database makes a file of that name"}
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = f.Truncate(1 << 20)
	}
	return errors.Join(err, f.Close())
}

// canOpen returns an error unless the process may have as many more files open as Badger has when
// it opens DISCARD: if it can't open that, or before it the directory, it ends the process. They
// are the logs of what is in memory, the tables, and fewer than filesAtOnce others; an Open that is
// to succeed needs more than that behind it. Who opens files meanwhile can still take them.
func (g *guarded) canOpen(dir string) error {
	files, err := os.ReadDir(dir)
	n := len(g.sums) + filesAtOnce
	for _, f := range files {
		if strings.HasSuffix(f.Name(), memLogExt) {
			n++
		}
	}
	for ; n > 0 && err == nil; n-- {
		var f *os.File
		if f, err = os.Open(dir); err == nil {
			defer func() { _ = f.Close() }()
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: opening the database: %w", err)
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func tableID(path string) (uint64, bool) {
	name, ok := strings.CutSuffix(filepath.Base(path), ".sst")
	id, err := strconv.ParseUint(name, 10, 64)
	return id, ok && err == nil
}

// tables checks the manifest, and every table that it names. A table that it does not name
// is one that a crash left half made or half removed: then all in it is elsewhere too.
func (g *guarded) tables(
	ctx context.Context, dir string, tables map[uint64]string, logs bool,
) error {
	named, err := readManifest(dir, len(tables) > 0 || logs)
	if err != nil {
		return err
	}
	for id := range named {
		if err := ctx.Err(); err != nil {
			return err
		}
		path, ok := tables[id]
		if !ok {
			return fmt.Errorf("%w: table %d is missing", checkpoint.ErrCorrupt, id)
		}
		version, sum, err := checkTable(path)
		if err != nil && ofSystem(err) != 0 {
			return fmt.Errorf("checkpoint: reading a table: %w", err)
		}
		if err != nil {
			return fmt.Errorf("%w: table %s: %w", checkpoint.ErrCorrupt, path, err)
		}
		g.newest = max(g.newest, version)
		g.sums[id] = sum
		delete(tables, id)
	}
	for _, path := range tables {
		g.loose = append(g.loose, looseTable{path: path})
	}
	newest := g.newest
	for _, ts := range g.logged {
		newest = max(newest, ts)
	}
	for _, t := range g.loose {
		version, _, err := checkTable(t.now())
		if err != nil && ofSystem(err) != 0 {
			return fmt.Errorf("checkpoint: reading a table: %w", err)
		}
		if err == nil && version > newest {
			return fmt.Errorf("%w: the manifest does not name the newest table, %s",
				checkpoint.ErrCorrupt, t.now())
		}
	}
	return nil
}

// readManifest returns the tables that the manifest names. There must be a manifest if
// there is anything else.
func readManifest(dir string, expected bool) (map[uint64]badger.TableManifest, error) {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) && !expected {
		return nil, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: the manifest of %s is missing", checkpoint.ErrCorrupt, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the manifest: %w", err)
	}
	defer func() { _ = f.Close() }()
	manifest, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir))
	if err != nil && ofSystem(err) != 0 {
		return nil, fmt.Errorf("checkpoint: reading the manifest: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest of %s: %w", checkpoint.ErrCorrupt, dir, err)
	}
	return manifest.Tables, nil
}

// leastIndex is less than the index of a table with one block has, and enough to be read.
const leastIndex = 32

// checkTable checks the checksums of a table's index and blocks, and returns the newest version in
// it, and a digest of the checksums. A table is blocks, the index, and then, each with its length
// behind it, the index's length and checksum; a block ends in its own checksum and that one's
// length.
func checkTable(path string) (newest uint64, digest tableSum, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, digest, err
	}
	rest, sum, ok := cutSized(b)
	if !ok || len(rest) < 4 {
		return 0, digest, errors.New("it is cut off")
	}
	data, index, ok := cutSized(rest)
	if !ok || len(index) < leastIndex {
		return 0, digest, errors.New("its index is cut off")
	}
	if err := checkSum(index, sum); err != nil {
		return 0, digest, fmt.Errorf("its index: %w", err)
	}
	t := fb.GetRootAsTableIndex(index, 0)
	if t.OffsetsLength() == 0 {
		return 0, digest, errors.New("it has no blocks")
	}
	sums := sha256.New()
	for i := range t.OffsetsLength() {
		var at fb.BlockOffset
		if !t.Offsets(&at, i) || uint64(at.Offset())+uint64(at.Len()) > uint64(len(data)) {
			return 0, digest, fmt.Errorf("block %d is cut off", i)
		}
		block, sum, ok := cutSized(data[at.Offset() : at.Offset()+at.Len()])
		if !ok {
			return 0, digest, fmt.Errorf("block %d is damaged", i)
		}
		if err := checkSum(block, sum); err != nil {
			return 0, digest, fmt.Errorf("block %d: %w", i, err)
		}
		sums.Write(sum)
	}
	sums.Write(index)
	return t.MaxVersion(), tableSum(sums.Sum(nil)), nil
}

// cutSized cuts off the end of b what stands before its length in 4 bytes.
func cutSized(b []byte) (before, sized []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	end := len(b) - 4
	size := binary.BigEndian.Uint32(b[end:])
	if uint64(size) > uint64(end) {
		return nil, nil, false
	}
	return b[:end-int(size)], b[end-int(size) : end], true
}

// checkSum checks data against a checksum as Badger writes it: a message of which only the
// second field is set, a CRC-32C, and not even that if it is 0.
func checkSum(data, sum []byte) error {
	const field2 = 2 << 3
	var want uint64
	if len(sum) > 0 {
		n := 0
		if sum[0] == field2 {
			want, n = binary.Uvarint(sum[1:])
		}
		if n <= 0 || n != len(sum)-1 {
			return errors.New("its checksum can't be read")
		}
	}
	if uint64(crc32.Checksum(data, castagnoli)) != want {
		return errors.New("its checksum differs")
	}
	return nil
}
