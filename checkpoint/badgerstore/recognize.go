package badgerstore

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// create writes the first transaction of a store, synced whatever the store will be.
func (s *Store) create() error {
	err := s.commitAlone(func(txn *badger.Txn) error {
		if err := s.setSeal(txn); err != nil {
			return err
		}
		return txn.Set(storeKey, frame(storeKey, s.name.inDatabase()))
	})
	if err == nil {
		err = s.db.Sync()
	}
	if err != nil {
		return fmt.Errorf("checkpoint: making the store: %w", err)
	}
	return nil
}

// recognize checks that the database is that of the store, with no transaction missing of
// those after tabled, the newest that was in a table before the database was opened.
func (s *Store) recognize(ctx context.Context, tabled uint64) error {
	v := s.viewWithin()
	defer v.close()
	value, err := v.get(storeKey)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%w: the database does not say of which store it is",
			checkpoint.ErrCorrupt)
	}
	payload, err := unframe(storeKey, value)
	if err != nil {
		return fmt.Errorf("checkpoint: the store's name: %w", err)
	}
	format, ok := bytes.CutPrefix(payload, []byte(s.name.Store))
	if !ok {
		return fmt.Errorf("%w: the database is that of store %.36q, not %s",
			checkpoint.ErrCorrupt, payload, s.name.Store)
	}
	if err := s.checkFormat(format); err != nil {
		return err
	}
	if err := v.checkSeal(); err != nil {
		return err
	}
	if err := v.noGaps(ctx, tabled); err != nil {
		return err
	}
	s.lastRun, err = v.lastRun()
	return err
}

// checkFormat checks that the database has the format that the store's name says. See
// name.inDatabase.
func (s *Store) checkFormat(inDatabase []byte) error {
	format := 1
	switch {
	case len(inDatabase) == 1 && inDatabase[0] > 1:
		format = int(inDatabase[0])
	case len(inDatabase) > 0:
		return fmt.Errorf("%w: the database does not say of which format it is", checkpoint.ErrCorrupt)
	}
	if format == s.name.Format {
		return nil
	}
	path := filepath.Join(s.home.dir, nameFile)
	return &damageError{fmt.Sprintf("the database is of format %d, and %s says %d", format, path, s.name.Format),
		fmt.Sprintf(`set "format" in %s back to %d`, path, format)}
}

// noGaps checks that the transactions that were not yet in tables are all there: what isWhole has
// seen in the logs must be what Badger has taken from them.
func (v *view) noGaps(ctx context.Context, tabled uint64) error {
	if v.ts == tabled {
		return nil
	}
	seen := make(map[uint64]bool)
	it := v.txn.NewIterator(badger.IteratorOptions{AllVersions: true, SinceTs: tabled})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		seen[it.Item().Version()] = true
	}
	for ts := tabled + 1; ts <= v.ts; ts++ {
		if !seen[ts] {
			return missing(ts, v.ts)
		}
	}
	return ctx.Err()
}

// lastRun returns the highest number that a run was ever given and that matters.
func (v *view) lastRun() (uint64, error) {
	var last uint64
	it, err := v.iterator([]byte{rowKey}, true)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	if it.Seek(seqKey(rowKey, ^uint64(0), 0)); it.Valid() {
		last = runOf(it.Item().Key())
	}
	value, err := v.get(nextKey)
	if err != nil || value == nil {
		return last, err
	}
	next, err := unframeNumber(nextKey, value, "it can't be read")
	if err != nil {
		return 0, fmt.Errorf("checkpoint: the number of the next run: %w", err)
	}
	return max(last, next-1), nil
}

// commitAlone commits one transaction while the committer does not run.
func (s *Store) commitAlone(fill func(*badger.Txn) error) error {
	txn := s.db.NewTransactionAt(s.ts+1, true)
	defer txn.Discard()
	if err := fill(txn); err != nil {
		return err
	}
	if err := s.commitAt(txn, s.ts+1); err != nil {
		return err
	}
	s.ts++
	s.durable = s.ts
	return nil
}
