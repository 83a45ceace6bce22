//go:build linux || darwin || freebsd

package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A file that does not answer, here since it is a pipe, holds Open up for no longer than its
// context. What still opens closes by itself when it does.
func TestOpenOfAFileThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "db", "MANIFEST")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(manifest, manifest+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opened := make(chan *os.File, 1)
	go func() { // ends when Open reads the pipe, or with the test
		for t.Context().Err() == nil {
			if pipe, err := os.OpenFile(manifest, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // else nobody reads it
				opened <- pipe
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	if _, err := badgerstore.Open(ctx, dir, small); !errors.Is(err, context.Canceled) {
		t.Fatalf("Open = %v, want the end of its context", err)
	}
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("Open meanwhile = %v, want ErrLocked, by an Open that has not ended", err)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (<-opened).Close(); err != nil { // now it answers
		t.Fatal(err)
	}
	openSoon(t, dir)
}

// openSoon opens a store that somebody else has open for a moment still, and closes it.
func openSoon(t *testing.T, dir string) {
	t.Helper()
	for {
		s, err := badgerstore.Open(t.Context(), dir, small)
		if errors.Is(err, checkpoint.ErrLocked) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return
	}
}

// So it is of a store that is being made: Open ends with its context, whatever cause that gives,
// and says that the disk does not answer; when it does the store is there.
func TestFirstOpenOnADiskThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pawl.json.new")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ours := errors.New("a cause of ours")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() { // ends when Open has locked the directory and said so, or with the test
		for t.Context().Err() == nil {
			if said, _ := os.ReadFile(filepath.Join(dir, "LOCK")); bytes.Contains(said, []byte("\nopening\n")) {
				cancel(ours)
				return
			}
			runtime.Gosched()
		}
	}()
	_, err := badgerstore.Open(ctx, dir, small)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ours) || !strings.Contains(err.Error(), "the disk does not answer") {
		t.Fatalf("Open = %v, want the end of its context, and why", err)
	}
	soon, stop := context.WithTimeout(t.Context(), time.Minute) // an Open that is not refused waits for the pipe
	defer stop()
	for range 2 {
		_, err := badgerstore.Open(soon, dir, small)
		if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("Open meanwhile = %v, want ErrLocked, by an Open that has not ended", err)
		}
	}
	reader, err := os.Open(pipe) // now it answers: a pipe can't be synced, so that Open fails
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	openSoon(t, dir)
}

// A witness that is no regular file is refused before it is read, which might block or never end,
// and before anything is made. So is one in the directory of a store that is there.
func TestAWitnessThatIsNoFile(t *testing.T) {
	t.Parallel()
	open := func(dir, witness string) {
		t.Helper()
		o := small
		o.Witness = witness
		s, err := badgerstore.Open(t.Context(), dir, o)
		if err == nil {
			_ = s.Close()
		}
		var refused *checkpoint.ArgumentError
		if !errors.As(err, &refused) || refused.Argument != "option Witness" {
			t.Fatalf("Open with the witness %s = %v, want an ArgumentError of the option Witness", witness, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "witness")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", "/dev/zero", "/dev/full"} {
		if _, err := os.Stat(path); err != nil {
			continue // not every system has it
		}
		dir := filepath.Join(t.TempDir(), "store")
		open(dir, path)
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open with the witness %s has made its directory: %v", path, err)
		}
	}
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "witness")
	if err := errors.Join(os.Remove(inside), syscall.Mkfifo(inside, 0o600)); err != nil {
		t.Fatal(err)
	}
	open(dir, "")
}

// Nor is any other file of the store's own, beside its database, read or written that is no regular
// file, or far larger than it can be. Open says so at once, and changes nothing; a link to the file
// itself is as good as the file.
func TestStoreFilesThatAreNoFiles(t *testing.T) {
	t.Parallel()
	whole := closedStore(t).dir
	odd := map[string]func(path string) error{
		"a pipe":                func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":           func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a link to a directory": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"100 MiB": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 100<<20))
		},
	}
	for name, way := range map[string]string{
		"pawl.json": "restore the store from a backup", "tables": "an empty file in its place", "witness": "an empty file in its place", "LOCK": "remove it",
	} {
		for what, put := range odd {
			if name == "witness" && what != "100 MiB" || name == "LOCK" && what == "100 MiB" {
				continue // see TestAWitnessThatIsNoFile; of a lock only the beginning is read
			}
			dir := copyDir(t, whole)
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil && name != "LOCK" {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := badgerstore.Open(t.Context(), dir, small)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), way) {
				t.Errorf("%s is %s: Open = %v, want ErrCorrupt that names it and says %q", name, what, err, way)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
				t.Errorf("%s is %s: Open has changed it, %v", name, what, err)
			}
		}
		dir := copyDir(t, whole)
		path := filepath.Join(dir, name)
		if name == "LOCK" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		elsewhere := filepath.Join(t.TempDir(), name)
		if err := errors.Join(copyFile(path, elsewhere), os.Remove(path), os.Symlink(elsewhere, path)); err != nil {
			t.Fatal(err)
		}
		openSoon(t, dir)
	}
}

// Nor is the directory of the database made where something else has its name.
func TestStoreDatabaseThatIsNoDirectory(t *testing.T) {
	t.Parallel()
	whole := closedStore(t).dir
	for what, put := range map[string]func(path string) error{
		"a file":            func(path string) error { return os.WriteFile(path, []byte("database"), 0o600) },
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to nothing": func(path string) error { return os.Symlink(path+".old", path) },
	} {
		for _, witness := range []bool{true, false} {
			dir := copyDir(t, whole)
			path := filepath.Join(dir, "db")
			if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			if !witness {
				if err := os.Remove(filepath.Join(dir, "witness")); err != nil {
					t.Fatal(err)
				}
			}
			s, err := badgerstore.Open(t.Context(), dir, small)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), path+" is no directory: restore the store from a backup") {
				t.Errorf("the database is %s: Open = %v, want ErrCorrupt that names it", what, err)
			}
		}
	}
}
