package main

import (
	"bytes"
	"context"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A copied is a store that was closed, and a copy of its database, which a bare Badger reads.
type copied struct {
	store, bare string // directories
}

// copyStore closes the store of b and copies what is in it.
func copyStore(s session, b *bed) (c copied, err error) {
	if err := b.close(); err != nil {
		return c, err
	}
	if c.bare, err = os.MkdirTemp(s.dir, "copy-"); err != nil {
		return c, err
	}
	c.store = b.dir
	return c, os.CopyFS(filepath.Join(c.bare, "db"), os.DirFS(filepath.Join(b.dir, "db")))
}

func (c copied) discard() {
	_ = os.RemoveAll(c.store)
	_ = os.RemoveAll(c.bare)
}

// opened opens the store for each window, and do reads something in it once: what is read was not
// read before, but for the pages of the files that the system still has.
func (c copied) opened(do func(ctx context.Context, store *badgerstore.Store) error) stage {
	return func(int) (func() error, func(), error) {
		b, err := reopenBed(c.store, false)
		if err != nil {
			return nil, nil, err
		}
		return func() error { return do(context.Background(), b.store) }, func() { _ = b.close() }, nil
	}
}

// scanned opens the copy for each window, and finds each key of the log and its value, which is
// given to what look returns.
func (c copied) scanned(look func() func(value []byte)) stage {
	return func(int) (func() error, func(), error) {
		db, err := openBadger(filepath.Join(c.bare, "db"), false)
		if err != nil {
			return nil, nil, err
		}
		return func() error { return scan(db, look()) }, func() { _ = db.Close() }, nil
	}
}

// untouched looks at nothing of a value.
func untouched() func([]byte) { return func([]byte) {} }

// copying copies each value.
func copying() func([]byte) {
	var last []byte
	return func(value []byte) { last = append(last[:0], value...) }
}

// checking checks each value as a log is checked, and copies it to keep it.
func checking() func([]byte) {
	var kept [][]byte
	return func(value []byte) {
		_ = crc32.Checksum(value, castagnoli)
		kept = append(kept, slices.Clone(value))
	}
}

// behindEntries is how many bytes of an append are its digest and its checksum.
const behindEntries = 36

// checkingEntries checks each value, and looks where each of its strings is, which is how its
// entries are told apart. It keeps nothing of it.
func checkingEntries() func([]byte) {
	return func(value []byte) {
		_ = crc32.Checksum(value, castagnoli)
		for range told(value[bytes.Index(value, []byte(`{"kind"`)) : len(value)-behindEntries]) {
		}
	}
}

// scan finds all appends there are, under keys that begin with l.
func scan(db *badger.DB, each func(value []byte)) error {
	txn := db.NewTransactionAt(db.MaxVersion(), false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.Prefix, o.PrefetchValues = []byte("l"), false
	it := txn.NewIterator(o)
	defer it.Close()
	bytes := 0
	for it.Rewind(); it.Valid(); it.Next() {
		err := it.Item().Value(func(v []byte) error {
			bytes += len(v)
			each(v)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if bytes == 0 {
		return badger.ErrKeyNotFound
	}
	return nil
}

// sizeOfFiles returns how many bytes the files below dir have.
func sizeOfFiles(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
