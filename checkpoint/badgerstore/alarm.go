package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// An alarm hears of tables that Badger could not write, which it tells nobody but its log, and
// stops the store.
//
// Badger tries again, and that does harm: when the manifest was written and could not be synced it
// removes the table that the manifest names by now, and the next Open finds a table missing. So the
// goroutine that failed ends here, when the manifest has been mended. What it was to write is in
// the log of what is in memory still.
//
// It also holds up compactions before they write a table: into a directory that is not the store's
// (see home), or where no file can be made. Of a table whose file it can't make Badger's compaction
// drops the error, and then it removes the tables that it has compacted.
type alarm struct {
	dir    string // of the database
	home   *home
	failed atomic.Pointer[error]       // the first failure
	stop   atomic.Pointer[func(error)] // of the store, once there is one

	// crowded says that a commit may have to wait until a table is written: when Badger last began
	// to collect anew in memory, as much was waiting to become tables as may.
	crowded atomic.Bool
}

// How the messages begin, or what they hold.
const (
	flushFailed      = "error flushing memtable to disk"
	compactionFailed = "LOG Compact FAILED"
	tableIsFull      = "[%d] LOG Compact. Added" // said before a compaction writes it

	// Said in a commit, when what is collected in memory is to become a table: how large it is, and
	// how many wait with it.
	memoryIsFull = "Flushing memtable, mt.size=%d size of flushChan: %d"
)

// Errorf implements badger.Logger.
func (a *alarm) Errorf(format string, args ...any) {
	if strings.HasPrefix(format, flushFailed) {
		a.sound(format, args)
	}
}

// Warningf implements badger.Logger.
func (a *alarm) Warningf(format string, args ...any) {
	if strings.Contains(format, compactionFailed) {
		a.sound(format, args)
	}
}

// Infof implements badger.Logger.
func (*alarm) Infof(string, ...any) {}

// Debugf implements badger.Logger.
func (a *alarm) Debugf(format string, args ...any) {
	switch {
	case strings.HasPrefix(format, tableIsFull):
		a.awaitRoom()
	case strings.HasPrefix(format, memoryIsFull):
		n, ok := args[1].(int)
		a.crowded.Store(!ok || n >= memTables)
	}
}

// awaitRoom waits until the directory is where it was and files can be made in it, and stops the
// store if that is not so. The compaction that waits can't be ended: of one whose goroutine ends
// Badger takes the half that is written for all of it.
func (a *alarm) awaitRoom() {
	for err := a.room(); err != nil; err = a.room() {
		if stop := a.stop.Load(); stop != nil {
			(*stop)(err)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// filesAtOnce is more than Badger makes before it says again that it will make one: it writes eight
// tables of a compaction at a time.
const filesAtOnce = 12

// probe begins the names of files that room makes for a moment, and leaves if the process is killed
// then.
const probe = "probe-"

// removeProbes removes from a directory what a killed process has left of room: files of no bytes
// whose names go on with digits alone. The database is open by then, and may just have room look:
// those are gone at any moment.
func removeProbes(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		digits, ok := strings.CutPrefix(f.Name(), probe)
		if err != nil || !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		var info os.FileInfo
		if info, err = f.Info(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			err = os.Remove(filepath.Join(dir, f.Name()))
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("checkpoint: removing what a killed process has left: %w", err)
	}
	return nil
}

func (a *alarm) room() error {
	if err := a.home.check(); err != nil {
		return err
	}
	for range filesAtOnce {
		f, err := os.CreateTemp(a.dir, probe+"*") // which may be a link to, or a mount of, another device than the store's
		if err != nil {
			return fmt.Errorf("no table can be made for a compaction: %w", typed(err))
		}
		defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	}
	return nil
}

// sound stops the store, and ends the goroutine of Badger that has failed.
func (a *alarm) sound(format string, args []any) {
	err := fmt.Errorf("the database could not write a table: "+format, args...)
	if moved := a.home.check(); moved != nil {
		err = moved
	} else if mending := voidGhosts(a.dir); mending != nil {
		err = fmt.Errorf("%w; %w", err, mending)
	}
	a.fail(err)
	runtime.Goexit()
}

// fail says that err was the first failure, unless there was one, and stops the store.
func (a *alarm) fail(err error) {
	if !a.failed.CompareAndSwap(nil, &err) {
		return
	}
	if stop := a.stop.Load(); stop != nil {
		(*stop)(err)
	}
}

// arm has the alarm stop the store from now on, and returns the failure that it has heard of
// before. It looks for that last, as fail looks for stop last: so one of the two finds the other.
func (a *alarm) arm(stop func(error)) error {
	a.stop.Store(&stop)
	return a.err()
}

// err is the first failure.
func (a *alarm) err() error {
	if err := a.failed.Load(); err != nil {
		return *err
	}
	return nil
}
