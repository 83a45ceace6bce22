package badgerstore

import (
	"context"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const (
	// mostNew is how many new tables there may be in a store that was opened. While one is written
	// to there are hardly more than fifteen.
	mostNew = 32
	// mergeWithin is how long Open waits for them to be merged. Badger begins with that up to a
	// second after it was opened.
	mergeWithin = 5 * time.Second
)

// awaitMerge waits until the database has merged its new tables, if it has very many. Each process
// that opens a store leaves one at least, and where none has it open for as long as Badger takes to
// begin, as programs that make one step each, they would become more and more, until they are more
// than the files that a process may have open: each is one. What can't be merged in time, for there
// is much of it or no room, is no reason to refuse the store.
func awaitMerge(ctx context.Context, db *badger.DB) error {
	late := time.After(mergeWithin)
	for newTables(db) > mostNew {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return nil
		case <-time.After(10 * time.Millisecond): // Badger tells nobody
		}
	}
	return nil
}

// newTables returns how many tables there are that were not yet merged.
func newTables(db *badger.DB) int {
	for _, level := range db.Levels() {
		if level.Level == 0 {
			return level.NumTables
		}
	}
	return 0
}
