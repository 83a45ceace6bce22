package main

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// A bare is Badger as package badgerstore opens it, and nothing above it.
type bare struct {
	dir   string
	db    *badger.DB
	ts    atomic.Uint64
	value []byte

	log  *os.File // the newest file of Badger's log, for syncLog
	logs int      // its number
}

// openBare opens a database that writes values of so many bytes, keys included.
func openBare(s session, size int, synced bool) (*bare, error) {
	dir, err := os.MkdirTemp(s.dir, "bare-")
	if err != nil {
		return nil, err
	}
	db, err := openBadger(dir, synced)
	if err != nil {
		return nil, err
	}
	return &bare{dir: dir, db: db, value: make([]byte, max(size-keySize, 1))}, nil
}

// openBadger opens a database with the options of package badgerstore, but that a synced one is
// synced by Badger.
func openBadger(dir string, synced bool) (*badger.DB, error) {
	return badger.OpenManaged(badger.DefaultOptions(dir).
		WithSyncWrites(synced).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithValueThreshold(1 << 20).
		WithMemTableSize(16 << 20).
		WithNumMemtables(3).
		WithNumLevelZeroTables(5).
		WithNumLevelZeroTablesStall(15).
		WithBaseTableSize(8 << 20).
		WithBaseLevelSize(128 << 20).
		WithNumCompactors(2).
		WithValueLogFileSize(16 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.NoVerification).
		WithNumGoroutines(2).
		WithLogger(nil))
}

func (b *bare) discard() {
	_ = b.db.Close()
	_ = b.log.Close()
	_ = os.RemoveAll(b.dir)
}

const keySize = 17

// groups commits times transactions, each of which sets entries keys. It is as fast as
// grouped commits can be: nobody hands anything over to anybody.
func (b *bare) groups(entries int) contender {
	return func(times int) error {
		for range times {
			if err := b.commit(entries); err != nil {
				return err
			}
		}
		return nil
	}
}

// alone commits times transactions of one key from each of so many goroutines: what
// programs do that don't group.
func (b *bare) alone(goroutines int) contender {
	return func(times int) error {
		errs := make([]error, goroutines)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				for n := 0; n < times && errs[i] == nil; n++ {
					errs[i] = b.commit(1)
				}
			})
		}
		all.Wait()
		return cmp.Or(errs...)
	}
}

func (b *bare) commit(entries int) error { return b.commitAs('l', b.ts.Add(1), entries) }

// commitAs is commit as the transaction ts, under keys that begin with that.
func (b *bare) commitAs(kind byte, ts uint64, entries int) error {
	return b.commitValues(kind, ts, slices.Repeat([][]byte{b.value}, entries))
}

// commitValues commits those values as the transaction ts.
func (b *bare) commitValues(kind byte, ts uint64, values [][]byte) error {
	txn := b.db.NewTransactionAt(ts, true)
	defer txn.Discard()
	for i, value := range values {
		key := make([]byte, 0, keySize)
		key = append(key, kind)
		key = binary.BigEndian.AppendUint64(key, uint64(i))
		key = binary.BigEndian.AppendUint64(key, ts)
		if err := txn.SetEntry(badger.NewEntry(key, value)); err != nil {
			return err
		}
	}
	return txn.CommitAt(ts, nil)
}
