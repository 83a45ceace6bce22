package badgerstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/internal/lacking"
)

// What a synced store has acknowledged is on the disk: nothing of the log of what is in memory,
// whichever of its files it is in, is in the memory of the system alone.
func TestNothingAcknowledgedIsUnwritten(t *testing.T) {
	t.Parallel()
	needsADisk(t)
	files, most := appendLarge(t, badgerstore.Open)
	if most > 0 {
		t.Errorf("%d pages were not written when an append was acknowledged", most)
	}
	if files < 3 {
		t.Errorf("there were %d files of the log, want more", files)
	}
	// Or else this test would not see it.
	if _, most := appendLarge(t, badgerstore.OpenUnsynced); most == 0 {
		t.Error("everything was written in a store that is not synced")
	}
}

// A new file of the log that the store can't open, as where no descriptor is to be had, is synced
// all the same, and so are those behind it.
func TestNothingAcknowledgedIsUnwrittenInAFileThatCantBeOpened(t *testing.T) {
	t.Parallel()
	needsADisk(t)
	open := func(ctx context.Context, dir string, o badgerstore.Options) (*badgerstore.Store, error) {
		s, err := badgerstore.Open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		s.SyncWith(func(next func() error) error {
			logs, err := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
			if err != nil || logs[len(logs)-1] < filepath.Join(dir, "db", "00002.mem") {
				return errors.Join(err, next())
			}
			newest, aside := logs[len(logs)-1], filepath.Join(dir, "aside")
			err = errors.Join(os.Rename(newest, aside), os.Symlink(newest, newest))
			return errors.Join(err, next(), os.Rename(aside, newest))
		})
		return s, nil
	}
	files, most := appendLarge(t, open)
	if files < 3 || most > 0 {
		t.Errorf("of %d files of the log, want more, %d pages were not written when an append was acknowledged", files, most)
	}
}

// The files that a store writes beside its database, its name, its inventory and its witness, are
// on the disk when Open or Close has returned: a power cut that empties the name leaves no store.
func TestFilesBesideTheDatabaseAreWritten(t *testing.T) {
	t.Parallel()
	needsADisk(t)
	store := filepath.Join(t.TempDir(), "store")
	for _, when := range []string{"made", "opened again"} {
		s := open(t, store)
		for _, name := range []string{"pawl.json", "tables", "witness"} {
			if pages := unwritten(t, filepath.Join(store, name)); pages > 0 {
				t.Errorf("when the store was %s %d pages of %s were not written", when, pages, name)
			}
		}
		l := acquire(t, s, 1)[0]
		info, err := s.Stat(t.Context(), l.Run)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), l, info.Head, oneEntry); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tables", "witness"} {
			if pages := unwritten(t, filepath.Join(store, name)); pages > 0 {
				t.Errorf("when the store that was %s was closed %d pages of %s were not written", when, pages, name)
			}
		}
	}
}

// appendLarge appends what fills several files of the log, in one key and in pieces. It returns how
// many files there were, and the most pages that were not written behind an append.
func appendLarge(t *testing.T, open func(context.Context, string, badgerstore.Options) (*badgerstore.Store, error)) (files, most int) {
	t.Helper()
	dir := t.TempDir()
	s, err := open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	seen := make(map[string]bool)
	for i := range 30 {
		data, _ := json.Marshal(noise([]int{1, 300, 900}[i%3] << 10))
		entry := checkpoint.Entry{Kind: checkpoint.Done, Delta: data}
		if i == 0 {
			entry.Kind = checkpoint.Opened
		}
		if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		logs, err := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
		if err != nil {
			t.Fatal(err)
		}
		pages := 0
		for _, path := range logs {
			seen[path] = true
			pages += unwritten(t, path)
		}
		most = max(most, pages)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return len(seen), most
}

// needsADisk skips a test where what is written stays in the memory of the system, as in a tmpfs:
// nothing there is ever unwritten.
func needsADisk(t *testing.T) {
	t.Helper()
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, []byte("what nobody has synced"), 0o600); err != nil {
		t.Fatal(err)
	}
	if unwritten(t, own) == 0 {
		lacking.Skip(t, "to know what is not written needs a file system on a disk: set TMPDIR to a directory of one")
	}
}

// unwritten returns how many pages of a file are in the memory of the system and not, or not yet,
// on the device.
func unwritten(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0 // it has become a table
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const cachestat = 451
	whole := [2]uint64{}
	var stat struct{ cached, dirty, writing, evicted, recently uint64 }
	_, _, errno := syscall.Syscall6(cachestat, f.Fd(), uintptr(unsafe.Pointer(&whole)), uintptr(unsafe.Pointer(&stat)), 0, 0, 0)
	if errno != 0 {
		lacking.Skip(t, "the system doesn't tell what it has not written: ", errno)
	}
	return int(stat.dirty + stat.writing)
}
