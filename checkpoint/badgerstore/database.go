package badgerstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
)

// databaseDir is the directory of the database in that of the store.
const databaseDir = "db"

// forkLimit is how long Badger's own lock may be held although nobody has the store open: by a
// process that was being forked when the store was closed, until it runs its program.
const forkLimit = 5 * time.Second

// openDatabase opens Badger, having prepared its files. Files of no bytes are what a crash leaves
// of ones that were being made or removed; Badger fails on them, and sometimes leaves one when it
// fails, so it gets a second chance.
func (x *opener) openDatabase(ctx context.Context) error {
	began := time.Now()
	for again := true; ; {
		if err := x.prepare(ctx); err != nil {
			return err
		}
		db, err := tryBadger(x.badgerOptions())
		switch {
		case err == nil:
			x.db = db
			return nil
		case strings.Contains(err.Error(), "Cannot acquire directory lock"):
			if time.Since(began) >= forkLimit || ctx.Err() != nil {
				return fmt.Errorf("%w by another process: %s: end that one, or use another directory", checkpoint.ErrLocked, x.alarm.dir)
			}
			select { // the next try begins with a ctx that may be done, and says so
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		case again: // prepare puts back what it set aside
			again = false
		case ofSystem(err) != 0:
			return fmt.Errorf("checkpoint: opening the database: %w", err)
		default:
			return fmt.Errorf("%w: opening the database: %w", checkpoint.ErrCorrupt, err)
		}
	}
}

// prepare makes the files of the database such that Badger can open them. Before it has found that
// all is there that is known of it changes nothing but what putBack undoes.
func (x *opener) prepare(ctx context.Context) (err error) {
	dir := x.alarm.dir
	if x.guarded, err = guard(ctx, dir, x.synced); err != nil {
		return err
	}
	g := &x.guarded
	still, err := g.compare(x.had, x.dir)
	if err == nil {
		err = g.isWhole(x.options.Witness, x.name.Store)
	}
	if err == nil { // Badger may use the numbers again of tables that are not there
		err = still.replace(x.had, x.dir, x.name.Store)
	}
	if err == nil {
		err = g.removeEmpty()
	}
	if err == nil {
		err = makeDiscard(dir)
	}
	if err == nil {
		err = g.canOpen(dir)
	}
	return err
}

// badgerOptions returns the options of a database whose files are prepared. A process that died may
// have left more in memory than there was to be.
func (x *opener) badgerOptions() badger.Options {
	x.options.MemTableSize = max(x.options.MemTableSize, x.guarded.memTable())
	return x.options.forBadger(x.alarm.dir, x.synced && !syncsMapped, x.name.Format).WithLogger(x.alarm)
}

// tryBadger opens the database. It panics on some kinds of damage.
func tryBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return badger.OpenManaged(o)
}
