//go:build linux || darwin || freebsd

package badgerstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// An Open that is refused gives its locks back when the database is closed, and not before: who has
// them takes the files to be as they are.
func TestLocksOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"LOCK", "witness"} {
		dir, _, o, during := sealedStore(t)
		down, beside := errors.New("the key service is down"), make(chan error, 1)
		during(func() error {
			go func() { // ends when Open has given the lock back: received below
				for lockable(filepath.Join(dir, name)) != nil {
					runtime.Gosched()
				}
				beside <- lockable(filepath.Join(dir, "db"))
			}()
			return down
		})
		if _, err := badgerstore.Open(t.Context(), dir, o); !errors.Is(err, down) {
			t.Fatalf("Open = %v, want %v", err, down)
		}
		if err := <-beside; err != nil {
			t.Errorf("when the %s was given back the database was still open: %v", name, err)
		}
	}
}

// lockable returns an error if somebody has the file locked, as Badger has its directory.
func lockable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// A copy of an open store that has the same witness is ErrLocked, whatever that says by then, and
// nothing of the copy has changed.
func TestACopyIsLockedBeforeItIsLookedAt(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	s, err := badgerstore.Open(t.Context(), dir, o)
	opened(t, s, err)
	stock(t, s, 1<<10)
	older := copyDir(t, dir)
	if err := s.PutGraph(t.Context(), "a digest", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	before := snapshotOf(t, older)
	if _, err := badgerstore.Open(t.Context(), older, o); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("Open of an older copy with the witness of an open store = %v, want ErrLocked", err)
	}
	if snapshotOf(t, older) != before {
		t.Error("Open has changed the copy")
	}
}
