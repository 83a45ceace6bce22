package badgerstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"

	"github.com/pawlgo/pawl/checkpoint"
)

// guard checks the files of the database before Badger sees them, for what Badger does with
// damaged ones can't be undone or survived: without a manifest it removes all tables, and
// some kinds of damage make it panic in goroutines of its own.
func guard(ctx context.Context, dir string, synced bool) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checkpoint: reading the database's directory: %w", err)
	}
	tables := make(map[uint64]string)
	logs := false // of transactions that are not yet in a table
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		info, err := f.Info()
		if err != nil {
			return fmt.Errorf("checkpoint: reading the database's directory: %w", err)
		}
		switch filepath.Ext(path) {
		case ".mem", ".vlog":
			if info.Size() == 0 { // see openDatabase
				if err := os.Remove(path); err != nil {
					return fmt.Errorf("checkpoint: removing an empty file: %w", err)
				}
				continue
			}
			if synced {
				// An unsynced store may have left it only in memory.
				if err := syncFile(path); err != nil {
					return err
				}
			}
			logs = logs || filepath.Ext(path) == ".mem"
		case ".sst":
			if id, ok := tableID(f.Name()); ok {
				tables[id] = path
			}
		}
	}
	return guardTables(ctx, dir, tables, logs)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("checkpoint: syncing %s: %w", path, err)
	}
	return nil
}

func tableID(name string) (uint64, bool) {
	var id uint64
	n, err := fmt.Sscanf(strings.TrimSuffix(name, ".sst"), "%d", &id)
	return id, n == 1 && err == nil
}

// guardTables checks the manifest, and every table that it names. A table that it does not
// name is one that a crash left half made or half removed: then all in it is elsewhere too.
func guardTables(
	ctx context.Context, dir string, tables map[uint64]string, logs bool,
) error {
	named, err := readManifest(dir, len(tables) > 0 || logs)
	if err != nil {
		return err
	}
	var newest uint64
	for id := range named {
		if err := ctx.Err(); err != nil {
			return err
		}
		path, ok := tables[id]
		if !ok {
			return fmt.Errorf("%w: table %d is missing", checkpoint.ErrCorrupt, id)
		}
		version, err := checkTable(path)
		if err != nil {
			return fmt.Errorf("%w: table %s: %w", checkpoint.ErrCorrupt, path, err)
		}
		newest = max(newest, version)
		delete(tables, id)
	}
	if logs {
		return nil // what is missing is found out by noGaps
	}
	for _, path := range tables {
		version, err := checkTable(path)
		if err == nil && version > newest {
			return fmt.Errorf("%w: the manifest does not name the newest table, %s",
				checkpoint.ErrCorrupt, path)
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
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest of %s: %w", checkpoint.ErrCorrupt, dir, err)
	}
	return manifest.Tables, nil
}

// checkTable checks the checksums of a table's index and blocks, and returns the newest
// version in it. A table is blocks, the index, and then, each with its length behind it, the
// index's length and checksum; a block ends in its own checksum and that one's length.
func checkTable(path string) (newest uint64, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	rest, sum, ok := cutSized(b)
	if !ok || len(rest) < 4 {
		return 0, errors.New("it is cut off")
	}
	data, index, ok := cutSized(rest)
	if !ok {
		return 0, errors.New("its index is cut off")
	}
	if err := checkSum(index, sum); err != nil {
		return 0, fmt.Errorf("its index: %w", err)
	}
	t := fb.GetRootAsTableIndex(index, 0)
	for i := range t.OffsetsLength() {
		var at fb.BlockOffset
		if !t.Offsets(&at, i) || uint64(at.Offset())+uint64(at.Len()) > uint64(len(data)) {
			return 0, fmt.Errorf("block %d is cut off", i)
		}
		block, sum, ok := cutSized(data[at.Offset() : at.Offset()+at.Len()])
		if !ok {
			return 0, fmt.Errorf("block %d is damaged", i)
		}
		if err := checkSum(block, sum); err != nil {
			return 0, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return t.MaxVersion(), nil
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
