package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/misuse"
)

// databaseDir is the directory of the database in that of the store.
const databaseDir = "db"

// Open opens the store in dir, or makes one if dir is empty or does not exist; directories above it
// that are missing are made too, for the user alone (0700), so a path with a slip in it is a new
// store. ErrLocked if another process has it open, or its witness, ErrVersion if its format is one
// that this version does not know, ErrCorrupt if something in it is damaged or missing, ErrFull if
// the device has too little room, ErrKey if it is encrypted and Options.Cipher is not given or does
// not have its key, ErrPlaintext if it is not encrypted and there is a Cipher. If a call of the
// system fails, as a sync does with syscall.EIO, errors.Is finds its error. What holds anything
// else is refused with a *checkpoint.ArgumentError and left as it is: a file, and what would be
// below one, a directory of other files, a database of Badger that no store has made, or of which
// nobody can tell since all that the store has beside it is missing. A relative dir, or
// Options.Witness, is what it names when Open is called, wherever the program goes then.
//
// If ctx ends Open returns its error, at the latest a second later. What then still opens, since a
// disk does not answer, is closed in the background, and the directory is locked until it is:
// another Open is ErrLocked and says so.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, true)
}

// OpenUnsynced opens the store in dir like [Open], but what it then appends survives only
// the death of the process, not of the machine. It is for tests, and for work that can be
// done again.
func OpenUnsynced(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, false)
}

func open(ctx context.Context, dir string, o Options, synced bool) (*Store, error) {
	switch {
	case ctx == nil:
		return nil, &checkpoint.ArgumentError{Call: "badgerstore.Open", Argument: "context",
			Reason: misuse.NoContext}
	case dir == "":
		return nil, refuseDir("is empty: name the one that the store is in, or is to be in")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	dir, o, err := absolute(dir, o)
	if err != nil {
		return nil, err
	}
	type opened struct {
		s   *Store
		err error
	}
	done, abandoned := make(chan opened), make(chan struct{})
	go func() { // waited for, or left when ctx has ended
		r := opened{err: errLeft}
		defer func() {
			select {
			case done <- r:
			case <-abandoned:
				if r.err == nil {
					_ = r.s.Close()
				}
			}
		}()
		r.s, r.err = openNow(ctx, dir, o.withDefaults(dir), synced)
	}()
	var late <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case r := <-done:
			return r.s, remedied(typed(r.err))
		case <-ended:
			ended, late = nil, time.After(abandonAfter)
		case <-late:
			close(abandoned)
			err := ctx.Err()
			if cause := context.Cause(ctx); cause != err {
				err = fmt.Errorf("%w: %w", err, cause)
			}
			return nil, fmt.Errorf("checkpoint: opening the store: the disk does not answer: %w", err)
		}
	}
}

// absolute makes the paths absolute, for the program may change its directory.
func absolute(dir string, o Options) (string, Options, error) {
	dir, err := filepath.Abs(dir)
	if err == nil && o.Witness != "" {
		o.Witness, err = filepath.Abs(o.Witness)
	}
	if err != nil {
		err = fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	return dir, o, err
}

// A damageError says what is damaged, and all that there is to do about it, so remedied adds
// nothing. errors.Is finds ErrCorrupt.
type damageError struct{ reason, way string }

func (e *damageError) Error() string {
	return checkpoint.ErrCorrupt.Error() + ": " + e.reason + ": " + e.way
}

func (e *damageError) Unwrap() error { return checkpoint.ErrCorrupt }

// remedied adds to the error of damage what to do, if it does not say so.
func remedied(err error) error {
	var known *damageError
	if !errors.Is(err, checkpoint.ErrCorrupt) || errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("%w: restore the store from a backup", err)
}

// abandonAfter is how long Open waits, when its ctx has ended, for what it is doing.
const abandonAfter = time.Second

// errLeft says that the goroutine that opens a store has ended before it was open. Nobody but a
// cipher, which is the caller's, does that.
var errLeft = &checkpoint.CipherError{Call: "Key, Seal or Open",
	Reason: "ended the goroutine that opens the store, as runtime.Goexit does: let it return an error"}

func openNow(ctx context.Context, dir string, o Options, synced bool) (opened *Store, err error) {
	if o.Cipher != nil {
		if _, err := carefully(o.Cipher).key(); err != nil {
			return nil, err
		}
	}
	if err := checkWitness(o.Witness, dir); err != nil {
		return nil, err
	}
	lock, n, err := claim(dir, o.FreeSpace)
	if err != nil {
		return nil, err
	}
	undo := []func() error{func() error { return unlockFile(lock) }}
	defer func() {
		for i := len(undo) - 1; opened == nil && i >= 0; i-- { // also of what a cipher has left: see errLeft
			_ = undo[i]()
		}
	}()
	seen, err := lockWitness(o.Witness)
	if err != nil {
		return nil, err
	}
	undo = append(undo, seen.release)
	_, below := o.merges(n.Format)
	room := space{dir: dir, reserve: o.FreeSpace, below: below, memory: o.inMemory(), free: freeSpace}
	if err := room.check(time.Now(), 0); err != nil {
		return nil, err
	}
	if err := missesDatabase(dir, o.Witness); err != nil {
		return nil, err
	}
	had, err := readInventory(dir, n.Store)
	if err != nil {
		return nil, err
	}
	at, err := newHome(dir, lock)
	if err != nil {
		return nil, err
	}
	a := &alarm{dir: filepath.Join(dir, databaseDir), home: at}
	with := func(g *guarded) badger.Options {
		o.MemTableSize = max(o.MemTableSize, g.memTable())
		return o.forBadger(a.dir, synced && !syncsMapped, n.Format).WithLogger(a)
	}
	db, g, err := openDatabase(ctx, with, a.dir, synced, func(g *guarded) error {
		still, err := g.compare(had, dir)
		if err == nil {
			err = g.isWhole(o.Witness, n.Store)
		}
		if err == nil {
			err = still.replace(had, dir, n.Store)
		}
		return err
	})
	undo = append(undo, g.putBack)
	if err != nil {
		return nil, err
	}
	undo = append(undo, db.Close)
	a.crowded.Store(len(g.ends) >= memTables) // Badger does not say how many of them still wait
	s := newStore(o, db, db.MaxVersion())
	if synced && syncsMapped {
		if s.log, err = openMemLog(db, a.dir); err != nil {
			return nil, err
		}
		undo = append(undo, s.log.close)
	}
	_, room.below = o.merges(n.Format)
	room.memory, room.db, room.home = o.inMemory(), db, at
	s.name, s.kinds, s.lock, s.home, s.space, s.synced = n, kindsOf[n.Format], lock, at, room, synced
	known := s.ts > 1
	if s.ts == 0 {
		err = s.create()
	} else {
		err = s.recognize(ctx, g.newest)
	}
	if err != nil {
		return nil, err
	}
	if err := seen.open(n.Store, s.ts, known, synced); err != nil {
		return nil, err
	}
	s.witness = seen
	if err := g.dropLoose(); err != nil {
		return nil, err
	}
	if err := g.sums.replace(had, dir, n.Store); err != nil {
		return nil, err
	}
	s.tables = g.sums
	if err := errors.Join(removeProbes(dir), removeProbes(a.dir)); err != nil { // earlier versions made them beside the database
		return nil, err
	}
	if err := a.room(); err != nil { // better now than when the first tables are merged
		return nil, fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	if err := awaitMerge(ctx, db); err != nil {
		return nil, err
	}
	if err := s.sealAgain(); err != nil {
		return nil, err
	}
	if err := s.sweepAll(ctx); err != nil {
		return nil, err
	}
	if err := sayState(lock, isOpen); err != nil {
		return nil, err
	}
	s.alarm = a
	alarmed := sync.OnceFunc(func() { close(s.alarmed) })
	stop := func(err error) {
		s.poison(err)
		alarmed()
	}
	a.stop.Store(&stop)
	if err := a.err(); err != nil {
		return nil, fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	go s.commitLoop(new(group)) // Close waits for it, and ends it
	return s, nil
}

// forkLimit is how long Badger's own lock may be held although nobody has the store open: by a
// process that was being forked when the store was closed, until it runs its program.
const forkLimit = 5 * time.Second

// openDatabase opens Badger, having checked its files. Files of no bytes are what a crash
// leaves of ones that were being made or removed; Badger fails on them, and sometimes leaves
// one when it fails, so it gets a second chance.
func openDatabase(
	ctx context.Context, with func(*guarded) badger.Options, dir string, synced bool, check func(*guarded) error,
) (*badger.DB, guarded, error) {
	began := time.Now()
	for try := 1; ; try++ {
		g, err := guard(ctx, dir, synced)
		if err != nil {
			return nil, g, err
		}
		if err := check(&g); err != nil {
			return nil, g, err
		}
		if err := g.removeEmpty(); err != nil {
			return nil, g, err
		}
		if err := makeDiscard(dir); err != nil {
			return nil, g, err
		}
		if err := g.canOpen(dir); err != nil {
			return nil, g, err
		}
		db, err := tryBadger(with(&g))
		switch {
		case err == nil:
			return db, g, nil
		case strings.Contains(err.Error(), "Cannot acquire directory lock") && time.Since(began) < forkLimit && ctx.Err() == nil:
			select { // the next try begins with a ctx that may be done, and says so
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			try--
		case strings.Contains(err.Error(), "Cannot acquire directory lock"):
			return nil, g, fmt.Errorf("%w by another process: %s: end that one, or use another directory", checkpoint.ErrLocked, dir)
		case try == 1: // guard puts back what it set aside
		case ofSystem(err) != 0:
			return nil, g, fmt.Errorf("checkpoint: opening the database: %w", err)
		default:
			return nil, g, fmt.Errorf("%w: opening the database: %w", checkpoint.ErrCorrupt, err)
		}
	}
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

// newID returns the id of a new store.
func newID() string { return uuid.NewString() }
