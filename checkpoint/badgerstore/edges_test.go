package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A store needs a directory, and one that this process has open says so.
func TestEdgesOpen(t *testing.T) {
	t.Parallel()
	var e *checkpoint.ArgumentError
	_, err := badgerstore.Open(t.Context(), "", small)
	if !errors.As(err, &e) || e.Argument != "directory" {
		t.Errorf("Open of no directory returns %v", err)
	}
	dir := t.TempDir()
	open(t, dir)
	_, err = badgerstore.Open(t.Context(), dir, small)
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "locked by this process") {
		t.Errorf("Open again returns %v, want that this process has it", err)
	}
}

// What holds something else is refused by a typed error that says what it holds and what to do, and
// nothing in it changes.
func TestEdgesOpenOfSomethingElse(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(t *testing.T, dir string) string{
		"a file": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "notes.txt")
			write(t, path)
			return path
		},
		"a link to nothing": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "link")
			if err := os.Symlink(filepath.Join(dir, "nothing"), path); err != nil {
				t.Skip(err)
			}
			return path
		},
		"other files":     func(t *testing.T, dir string) string { write(t, filepath.Join(dir, "notes.txt")); return dir },
		"other manifests": func(t *testing.T, dir string) string { write(t, filepath.Join(dir, "MANIFEST")); return dir },
		"another database": func(t *testing.T, dir string) string {
			db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := fill(t, dir)
			before := listed(t, dir)
			_, err := badgerstore.Open(t.Context(), path, small)
			var e *checkpoint.ArgumentError
			if !errors.As(err, &e) || e.Argument != "directory" || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), ": name a") {
				t.Errorf("Open returns %v", err)
			}
			if after := listed(t, dir); !slices.Equal(before, after) {
				t.Errorf("the directory held %q, and holds %q", before, after)
			}
		})
	}
	var e *checkpoint.ArgumentError
	if _, err := badgerstore.Open(t.Context(), t.TempDir(), badgerstore.Options{Waiting: -1}); !errors.As(err, &e) || e.Argument != "option Waiting" {
		t.Errorf("Open with a negative option returns %v", err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("not a store"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listed are the files in a directory, with their sizes.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(e.Name(), info.Size()))
	}
	return all
}

// A Store that nobody opened is closed, and kills nobody.
func TestEdgesZeroStoreIsClosed(t *testing.T) {
	var s badgerstore.Store
	if _, err := s.Acquire(t.Context(), "run", "owner"); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Acquire: %v", err)
	}
	if _, err := s.Stat(t.Context(), "run"); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Stat: %v", err)
	}
	if _, err := s.List(t.Context(), checkpoint.Filter{}); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("List: %v", err)
	}
	if err := s.PutGraph(t.Context(), strings.Repeat("0", 64), []byte("{}")); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("PutGraph: %v", err)
	}
	if _, err := s.Graph(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Graph: %v", err)
	}
	if err := s.Close(); err != nil && !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// So is a nil one.
func TestEdgesNilStoreIsClosed(t *testing.T) {
	var s *badgerstore.Store
	ctx, lease, digest := t.Context(), checkpoint.Lease{Run: "run", Epoch: 1}, strings.Repeat("0", 64)
	for name, call := range map[string]func() error{
		"Acquire": func() error { _, err := s.Acquire(ctx, "run", "owner"); return err },
		"Renew":   func() error { _, err := s.Renew(ctx, lease); return err },
		"Release": func() error { return s.Release(ctx, lease) },
		"Append": func() error {
			_, err := s.Append(ctx, lease, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened}})
			return err
		},
		"Stat":        func() error { _, err := s.Stat(ctx, "run"); return err },
		"List":        func() error { _, err := s.List(ctx, checkpoint.Filter{}); return err },
		"List after":  func() error { _, err := s.List(ctx, checkpoint.Filter{After: "run"}); return err },
		"Post":        func() error { return s.Post(ctx, "run", checkpoint.Post{ID: "p", Kind: "k"}) },
		"Posts":       func() error { _, err := s.Posts(ctx, "run"); return err },
		"Delete":      func() error { return s.Delete(ctx, "run") },
		"PutSnapshot": func() error { return s.PutSnapshot(ctx, lease, checkpoint.Snapshot{}) },
		"Snapshot":    func() error { _, err := s.Snapshot(ctx, "run", 0); return err },
		"PutGraph":    func() error { return s.PutGraph(ctx, digest, []byte("{}")) },
		"Graph":       func() error { _, err := s.Graph(ctx, digest); return err },
		"Trim":        func() error { _, err := s.Trim(ctx, lease, checkpoint.Head{}, checkpoint.Entry{}); return err },
		"Base":        func() error { _, err := s.Base(ctx, "run", digest); return err },
		"Verify": func() error {
			for _, err := range s.Verify(ctx, nil) {
				return err
			}
			return nil
		},
		"Read": func() error {
			for _, err := range s.Read(ctx, "run", 0, 0) {
				return err
			}
			return nil
		},
		"Close": s.Close,
	} {
		if err := call(); !errors.Is(err, checkpoint.ErrClosed) || !strings.Contains(err.Error(), "make it with Open") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory whose path holds a NUL is refused as the directory, also where its witness is to be
// in it: no option is to blame.
func TestADirectoryWithANUL(t *testing.T) {
	t.Parallel()
	beside := small
	beside.Witness = filepath.Join(t.TempDir(), "witness")
	for _, o := range []badgerstore.Options{small, beside} {
		_, err := badgerstore.Open(t.Context(), filepath.Join(t.TempDir(), "st\x00ore"), o)
		var refused *checkpoint.ArgumentError
		if !errors.As(err, &refused) || refused.Argument != "directory" || strings.ContainsRune(err.Error(), 0) {
			t.Errorf("Open = %v, want an ArgumentError of the directory", err)
		}
	}
}

// A witness whose path holds a NUL is refused by the name of the option, before anything is made.
func TestAWitnessWithANUL(t *testing.T) {
	t.Parallel()
	dir, o := filepath.Join(t.TempDir(), "store"), small
	o.Witness = filepath.Join(t.TempDir(), "wit\x00ness")
	_, err := badgerstore.Open(t.Context(), dir, o)
	var refused *checkpoint.ArgumentError
	if !errors.As(err, &refused) || refused.Argument != "option Witness" || strings.ContainsRune(err.Error(), 0) {
		t.Errorf("Open = %v, want an ArgumentError of the option Witness", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open has made the directory: %v", err)
	}
}
