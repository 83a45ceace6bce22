package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// The directory of an open store is moved, and another store is made in its place: neither is
// harmed. The one that was moved stops, as it does whatever becomes of its directory; what it has
// acknowledged is where it is now.
func TestDirectoryIsMovedWhileOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		move    func(t *testing.T, dir, to string)
		appends bool // meanwhile, until the store says that it has stopped
	}{
		"moved":                    {rename, false},
		"moved, and appended to":   {rename, true},
		"its database":             {renameDatabase, false},
		"its database, and append": {renameDatabase, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			to := dir + ".bak"
			s, err := badgerstore.Open(t.Context(), dir, small)
			if err != nil {
				t.Fatal(err)
			}
			l := acquire(t, s, 1)[0]
			head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
			if err != nil {
				t.Fatal(err)
			}
			c.move(t, dir, to)
			other, others := anotherStore(t, dir)
			for c.appends {
				next, err := s.Append(t.Context(), l, head, oneEntry)
				if err != nil {
					wantMoved(t, "Append", err, dir)
					break
				}
				head = next
			}
			before := snapshotOf(t, dir)
			wantMoved(t, "Close", s.Close(), dir)
			if snapshotOf(t, dir) != before {
				t.Error("the directory that took the place of the store's has changed")
			}
			if other == nil {
				return
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			if _, err := badgerstore.Open(t.Context(), to, small); !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "was moved") {
				t.Errorf("Open of what was moved, in the same process = %v, want ErrLocked", err)
			}
			wantHead(t, open(t, dir), others)
			wantHead(t, open(t, copyDir(t, to)), head) // as another process finds it when this one has ended
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func renameDatabase(t *testing.T, dir, to string) {
	t.Helper()
	rename(t, filepath.Join(dir, "db"), to)
	if err := os.Mkdir(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// anotherStore is made in dir if there is none, and has one run.
func anotherStore(t *testing.T, dir string) (*badgerstore.Store, checkpoint.Head) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		return nil, checkpoint.Head{}
	}
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Append(t.Context(), acquire(t, s, 1)[0], checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	return s, head
}

func wantMoved(t *testing.T, call string, err error, dir string) {
	t.Helper()
	if !errors.Is(err, checkpoint.ErrClosed) || !strings.Contains(fmt.Sprint(err), dir+" was moved, removed or replaced") {
		t.Errorf("%s = %v, want that the directory was moved", call, err)
	}
}

func wantHead(t *testing.T, s checkpoint.Store, head checkpoint.Head) {
	t.Helper()
	if info, err := s.Stat(t.Context(), "run-0"); err != nil || info.Head != head {
		t.Errorf("Stat = %+v, %v, want the head %+v", info, err, head)
	}
}

// So it is when the directory is moved while the store is being opened, also where what is in its
// place is an older copy of it, of a process that was killed: the log of that is not removed, nor
// its witness made a newer one. Open says what has happened.
func TestDirectoryIsMovedWhileOpening(t *testing.T) {
	t.Parallel()
	for name, logs := range map[string]bool{"by a copy": true, "by an empty directory": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			dir, other := filepath.Join(top, "store"), filepath.Join(top, "other")
			cipher := &watchfulCipher{Cipher: sealedBy(t, keyOf(t, "k1", 1)).Cipher}
			o := small
			o.Cipher = cipher
			s, err := badgerstore.Open(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			l := acquire(t, s, 1)[0]
			head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
			if err == nil && logs {
				err = os.CopyFS(other, os.DirFS(dir))
			} else if err == nil {
				err = os.Mkdir(other, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.Append(t.Context(), l, head, oneEntry)
			if err != nil {
				t.Fatal(err)
			}
			closes(t, s)
			before := snapshotOf(t, other)
			cipher.behindBadger = func() error {
				return errors.Join(os.Rename(dir, dir+".bak"), os.Rename(other, dir))
			}
			_, err = badgerstore.Open(t.Context(), dir, o)
			wantMoved(t, "Open", err, dir)
			if snapshotOf(t, dir) != before {
				t.Error("the directory that took the place of the store's has changed")
			}
			runtime.GC() // whatever nobody refers to is closed
			if _, err := badgerstore.Open(t.Context(), dir+".bak", o); !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "was moved") {
				t.Errorf("Open of what was moved, in the same process = %v, want ErrLocked", err)
			}
			wantHead(t, openWith(t, copyDir(t, dir+".bak"), o), last) // as another process finds it
			if logs {
				wantHead(t, openWith(t, dir, o), head)
			}
		})
	}
}

// A directory that is back where it was by then is closed like any other.
func TestDirectoryIsMovedAndBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	rename(t, dir, dir+".bak")
	var head checkpoint.Head
	for {
		next, err := s.Append(t.Context(), l, head, oneEntry)
		if err != nil {
			wantMoved(t, "Append", err, dir)
			break
		}
		head = next
	}
	rename(t, dir+".bak", dir)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s = open(t, dir); head.Seq > 0 {
		wantHead(t, s, head)
	}
}

// A store whose directory and witness were named by relative paths stays where it was opened when
// the program changes its own.
func TestDirectoryOfTheProgramChanges(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	o := small
	o.Witness = "witness"
	s, err := badgerstore.Open(t.Context(), "store", o)
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	t.Chdir(elsewhere)
	s.FreeWith(func() (int64, error) { return 1 << 40, nil }) // it is asked at the next append, which looks where the directory is
	if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
		t.Errorf("Append = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("the directory of the program holds %v, %v", entries, err)
	}
	o.Witness = filepath.Join(top, "witness")
	again, err := badgerstore.Open(t.Context(), filepath.Join(top, "store"), o)
	opened(t, again, err)
	wantHead(t, again, head)
}

// Close of a store whose directory is gone makes none.
func TestDirectoryIsRemovedWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, "Close", s.Close(), dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the directory = %v", err)
	}
}
