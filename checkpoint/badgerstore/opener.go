package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// An opener opens one store.
type opener struct {
	dir     string
	options Options // those of Badger go by what guarded finds
	synced  bool

	lock    *os.File
	name    name
	witness *witness
	space   space
	had     inventory // when the store was last opened or closed
	home    *home
	alarm   *alarm
	guarded guarded
	db      *badger.DB
	store   *Store // as soon as there is a database
}

// openNow opens the store in dir, step by step. A step may change the more the more is known, so
// that what is refused is as it was and can be put right:
//
//   - Up to claim nothing is made.
//   - Up to openDatabase only what makes a directory a store. That step changes the database only
//     when it has found nothing missing.
//   - Up to openWitness nothing but the database, in which Badger may have the same in other files.
//   - Then it is known to be whole and this store's, and what said otherwise is removed.
func openNow(ctx context.Context, dir string, o Options, synced bool) (s *Store, err error) {
	x := opener{dir: dir, options: o, synced: synced}
	defer func() {
		if s == nil { // also where a cipher has ended the goroutine: see errLeft
			err = x.undo(err)
		}
	}()
	for _, step := range []func(context.Context) error{
		x.askCipher,
		x.checkWitness,
		x.claim, // before lockWitness: of a store that is open the directory is what is named

		x.lockWitness,  // before openDatabase reads it: whose it is may be writing to it
		x.checkRoom,    // before openDatabase: Badger does not survive a full device
		x.findDatabase, // before makeHome, which makes what may be missing
		x.readInventory,
		x.makeHome,
		x.openDatabase,

		x.makeStore,
		x.recognize,   // before the witness and the inventory say that this is the store's database
		x.findHome,    // before openWitness, which writes where dir leads by now
		x.openWitness, // before dropLoose: what it finds missing may be in a loose table

		x.dropLoose,
		x.takeInventory,
		x.removeProbes, // before checkFiles: they take the room that it looks for
		x.checkFiles,   // now, and not when the first tables are merged
		x.awaitMerge,
		x.finishOthers, // behind openWitness: it makes transactions
		x.begin,        // last: the committer ends with the store
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return x.store, nil
}

// undo ends what the steps have begun, the last first: while Badger closes it makes tables, perhaps
// of the number of one that is aside; and who gets a lock takes the files to be as they are. It
// returns err, which is why the store was not opened, or that the directory was moved.
func (x *opener) undo(err error) error {
	if x.db != nil {
		if moved := x.home.check(); moved != nil {
			return x.abandon(moved)
		}
		_ = errors.Join(x.closeLog(), x.db.Close())
	}
	_ = x.guarded.putBack()
	if x.witness != nil {
		_ = x.witness.release()
	}
	if x.lock != nil {
		_ = unlockFile(x.lock)
	}
	return err
}

// abandon is undo for a directory that was moved, as [Store.abandon] is Close.
func (x *opener) abandon(moved error) error {
	_ = sayState(x.lock, isLost) // it is for others to read
	_ = errors.Join(x.closeLog(), x.witness.release())
	return fmt.Errorf("checkpoint: opening the store: %w", moved)
}

// closeLog closes the store's own log, if there is a store by now.
func (x *opener) closeLog() error {
	if x.store == nil {
		return nil
	}
	return x.store.closeLog()
}

func (x *opener) askCipher(context.Context) error {
	if x.options.Cipher == nil {
		return nil
	}
	_, err := carefully(x.options.Cipher).key()
	return err
}

func (x *opener) checkWitness(context.Context) error { return checkWitness(x.options.Witness, x.dir) }

func (x *opener) claim(context.Context) (err error) {
	x.lock, x.name, err = claim(x.dir, x.options.FreeSpace)
	return err
}

func (x *opener) lockWitness(context.Context) (err error) {
	x.witness, err = lockWitness(x.options.Witness)
	return err
}

func (x *opener) checkRoom(context.Context) error {
	x.space = space{dir: x.dir, reserve: x.options.FreeSpace, free: freeSpace}
	x.measure()
	return x.space.check(time.Now(), 0)
}

// measure tells the space how much room what is in memory takes, and compactions. It is known anew
// when the logs are read: see badgerOptions.
func (x *opener) measure() {
	_, x.space.below = x.options.merges(x.name.Format)
	x.space.memory = x.options.inMemory()
}

func (x *opener) findDatabase(context.Context) error {
	return missesDatabase(x.dir, x.options.Witness)
}

func (x *opener) readInventory(context.Context) (err error) {
	x.had, err = readInventory(x.dir, x.name.Store)
	return err
}

func (x *opener) makeHome(context.Context) (err error) {
	if x.home, err = newHome(x.dir, x.lock); err != nil {
		return err
	}
	x.alarm = &alarm{dir: filepath.Join(x.dir, databaseDir), home: x.home}
	return nil
}

// makeStore makes the store over the open database.
func (x *opener) makeStore(context.Context) (err error) {
	x.measure()
	x.space.db, x.space.home = x.db, x.home
	x.alarm.crowded.Store(len(x.guarded.ends) >= memTables) // Badger does not say how many of them still wait
	s := newStore(x.options, x.db, x.db.MaxVersion())
	s.name, s.kinds = x.name, kindsOf[x.name.Format]
	s.lock, s.home, s.witness, s.alarm = x.lock, x.home, x.witness, x.alarm
	s.space, s.synced, s.tables = x.space, x.synced, x.guarded.sums
	x.store = s
	if x.synced && syncsMapped {
		s.log, err = openMemLog(x.db, x.alarm.dir)
	}
	return err
}

// recognize checks that the database is the store's, or makes it that if there is nothing in it.
func (x *opener) recognize(ctx context.Context) error {
	if x.store.ts == 0 {
		return x.store.create()
	}
	return x.store.recognize(ctx, x.guarded.newest)
}

func (x *opener) findHome(context.Context) error { return x.home.check() }

func (x *opener) openWitness(context.Context) error {
	known := x.store.ts > 1 // a process may have died between the first transaction and the witness
	return x.witness.open(x.name.Store, x.store.ts, known, x.synced)
}

func (x *opener) dropLoose(context.Context) error { return x.guarded.dropLoose() }

func (x *opener) takeInventory(context.Context) error {
	return x.guarded.sums.replace(x.had, x.dir, x.name.Store)
}

func (x *opener) removeProbes(context.Context) error {
	return errors.Join(removeProbes(x.dir), removeProbes(x.alarm.dir)) // earlier versions made them beside the database
}

func (x *opener) checkFiles(context.Context) error {
	if err := x.alarm.room(); err != nil {
		return fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	return nil
}

func (x *opener) awaitMerge(ctx context.Context) error { return awaitMerge(ctx, x.db) }

// finishOthers commits what processes before this one have left to be done.
func (x *opener) finishOthers(ctx context.Context) error {
	if err := x.store.sealAgain(); err != nil {
		return err
	}
	return x.store.sweepAll(ctx)
}

// begin has the store take calls. Nothing can fail behind it.
func (x *opener) begin(context.Context) error {
	if err := sayState(x.lock, isOpen); err != nil {
		return err
	}
	s := x.store
	alarmed := sync.OnceFunc(func() { close(s.alarmed) })
	err := x.alarm.arm(func(err error) {
		s.poison(err)
		alarmed()
	})
	if err != nil {
		return fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	go s.commitLoop(new(group)) // Close waits for it, and ends it
	return nil
}
