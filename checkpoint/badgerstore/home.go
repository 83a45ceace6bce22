package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawlgo/pawl/checkpoint"
)

// A home is the directory of an open store, known by the file that is locked in it, and that of its
// database. Badger makes, replaces and removes files by their paths: when these name another
// directory it would write there, where another store may be by then.
type home struct {
	dir      string
	lock, db os.FileInfo
	held     *os.File // the lock: it stays as long as Badger has goroutines, which know this home
}

// newHome makes the directory of the database if it is missing.
func newHome(dir string, lock *os.File) (*home, error) {
	db := filepath.Join(dir, databaseDir)
	if err := makeDir(db); err != nil {
		return nil, fmt.Errorf("checkpoint: making the database: %w", err)
	}
	h := &home{dir: dir, held: lock}
	var err error
	if h.lock, err = lock.Stat(); err == nil {
		h.db, err = os.Stat(db)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the store: %w", err)
	}
	return h, h.check()
}

// check returns a *movedError unless the paths name what was opened. Their inodes are not used
// again as long as the lock and Badger have them open.
func (h *home) check() error {
	for name, opened := range map[string]os.FileInfo{lockFile: h.lock, databaseDir: h.db} {
		info, err := os.Stat(filepath.Join(h.dir, name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !os.SameFile(info, opened) {
			return &movedError{h.dir, name}
		}
	}
	return nil // of another error Badger tells itself
}

// A movedError says that the directory of an open store is another one by now. errors.Is finds
// ErrClosed.
type movedError struct{ dir, name string }

func (e *movedError) Error() string {
	return fmt.Sprintf("%v: %s was moved, removed or replaced while it was open: %s in it is not the one that was opened: "+
		"what was acknowledged is in the directory that was opened: end this process, and open that one where it is now",
		checkpoint.ErrClosed, e.dir, e.name)
}

func (e *movedError) Unwrap() error { return checkpoint.ErrClosed }

// abandon gives the store up without closing Badger, which would write into a directory that is not
// the store's. Badger's goroutines, memory maps and files stay until the process ends, and with
// them what they hold: the locks. So nobody opens the directory, wherever it is, beside what is
// left of this Store.
func (s *Store) abandon(moved error) error {
	_ = sayState(s.lock, isLost) // it is for others to read
	return fmt.Errorf("checkpoint: closing the store: %w", errors.Join(moved, s.witness.close(), s.closeLog()))
}
