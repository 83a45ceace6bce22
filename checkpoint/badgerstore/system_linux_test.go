package badgerstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/internal/lacking"
)

// A device on which no further file can be made, at whatever moment of making, opening or closing a
// store, is ErrFull, though it has free bytes. With room again the store is whole.
func TestDeviceWithoutRoomForFiles(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	refused := 0
	for files := 2; ; files++ { // the first is the mount
		opened, err := openWithFiles(t, files)
		if err == nil {
			break
		}
		if !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("with room for %d files: opened %v, %v, want ErrFull", files, opened, err)
		}
		if !opened {
			refused++
		}
	}
	if refused < 6 {
		t.Errorf("%d times the store was not opened, want more", refused)
	}
}

// A store on a device that is mounted to be read is not opened, and Open says what to do.
func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	mount := t.TempDir()
	if err := syscall.Mount("pawl", mount, "tmpfs", 0, "size=200m"); err != nil {
		lacking.Skip(t, "mounting a small file system:", err)
	}
	defer func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) }()
	dir := filepath.Join(mount, "store")
	open(t, dir).Close()
	if err := syscall.Mount("pawl", mount, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		lacking.Skip(t, "mounting it to be read:", err)
	}
	_, err := badgerstore.Open(t.Context(), dir, small)
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "opened for writing, also to read it: copy it") {
		t.Errorf("Open = %v, want EROFS and what to do", err)
	}
	open(t, copyDir(t, dir)).Close() // so it is done
}

// openWithFiles opens and closes a store on a device that has room for so many files, and then for
// more.
func openWithFiles(t *testing.T, files int) (opened bool, err error) {
	mount := t.TempDir()
	room := func(files int, flags uintptr) error {
		return syscall.Mount("pawl", mount, "tmpfs", flags, fmt.Sprint("size=200m,nr_inodes=", files))
	}
	if err := room(files, 0); err != nil {
		lacking.Skip(t, "mounting a small file system:", err)
	}
	defer func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) }()
	dir := filepath.Join(mount, "store")
	s, err := badgerstore.Open(t.Context(), dir, small)
	opened = err == nil
	if opened {
		err = s.Close()
	}
	if err := room(1000, syscall.MS_REMOUNT); err != nil {
		t.Fatal(err)
	}
	s, again := badgerstore.Open(t.Context(), dir, small)
	if again == nil {
		again = s.Close()
	}
	if again != nil {
		t.Fatalf("with room again, behind %v: %v", err, again)
	}
	return opened, err
}

// Whatever can't be made when tables are written and compacted, nothing that was acknowledged is
// lost: the store stops, and is whole when files can be made again.
func TestNoRoomForTheFilesOfTables(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	stopped := 0
	for left := range 8 {
		if writeWithFiles(t, left) {
			stopped++
		}
	}
	if stopped == 0 {
		t.Error("no store has stopped for want of files")
	}
}

// writeWithFiles writes until the store stops, or long enough, on a device that has room for so
// many more files once it is at work. It reports whether the store stopped.
func writeWithFiles(t *testing.T, left int) (stopped bool) {
	mount := t.TempDir()
	room := func(files int, flags uintptr) {
		if err := syscall.Mount("pawl", mount, "tmpfs", flags, fmt.Sprint("size=300m,nr_inodes=", files)); err != nil {
			lacking.Skip(t, "mounting a small file system:", err)
		}
	}
	room(1000, 0)
	defer func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) }()
	dir := filepath.Join(mount, "store")
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for range 300 { // a few tables, most of them compacted
		if err := appendNoise(t, s, acknowledged, 60); err != nil {
			t.Fatal(err)
		}
		acknowledged++
	}
	used := 0
	if err := filepath.WalkDir(mount, func(string, os.DirEntry, error) error { used++; return nil }); err != nil {
		t.Fatal(err)
	}
	room(used+left, syscall.MS_REMOUNT)
	for acknowledged < 900 && err == nil {
		if err = appendNoise(t, s, acknowledged, 60); err == nil {
			acknowledged++
		}
	}
	stopped = err != nil
	room(1000, syscall.MS_REMOUNT)
	switch err := s.Close(); {
	case errors.Is(err, context.DeadlineExceeded): // it closes in the background, and its directory is locked until it has
		dir = copyDir(t, dir)
	case err != nil && (!stopped || !errors.Is(err, checkpoint.ErrFull)): // one that has stopped may say so again
		t.Errorf("room for %d more files, and then for all: Close = %v", left, err)
	}
	again, err := badgerstore.OpenUnsynced(t.Context(), dir, small)
	if err != nil {
		t.Fatalf("room for %d more files: %v", left, err)
	}
	defer func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range acknowledged {
		if _, err := again.Stat(t.Context(), fmt.Sprint("run-", i)); err != nil {
			t.Fatalf("room for %d more files, %d runs acknowledged: %v", left, acknowledged, err)
		}
	}
	for finding, err := range again.Verify(t.Context(), nil) {
		t.Errorf("room for %d more files: %v, %v", left, finding, err)
	}
	return stopped
}

// appendNoise opens a run with an entry of so many KiB.
func appendNoise(t *testing.T, s *badgerstore.Store, run, kib int) error {
	l, err := s.Acquire(t.Context(), fmt.Sprint("run-", run), "a test")
	if err != nil {
		return err
	}
	data, _ := json.Marshal(noise(kib << 10))
	_, err = s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Delta: data}})
	return errors.Join(err, s.Release(t.Context(), l))
}

// When no further file of the log of what is in memory can be made the store stops. Calls that have
// begun before go on, or are ErrClosed, and none panics.
func TestCallsBesideALogThatCantBeBegun(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	mount := t.TempDir()
	room := func(files int, flags uintptr) {
		if err := syscall.Mount("pawl", mount, "tmpfs", flags, fmt.Sprint("size=200m,nr_inodes=", files)); err != nil {
			lacking.Skip(t, "mounting a small file system:", err)
		}
	}
	room(1000, 0)
	defer func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) }()
	s, err := badgerstore.OpenUnsynced(t.Context(), filepath.Join(mount, "store"), small)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // of one that has stopped, it may say so again
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	for range 4 {
		if head, err = s.Append(t.Context(), l, head, slices.Repeat(oneEntry, 500)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Post(t.Context(), l.Run, checkpoint.Post{ID: "a message that Posts reads"}); err != nil {
		t.Fatal(err)
	}
	read, stop := iter.Pull2(s.Read(t.Context(), l.Run, 1, 0)) // behind the first few hundred entries it looks anew
	defer stop()
	if _, err, _ := read(); err != nil {
		t.Fatal(err)
	}
	used := 0
	if err := filepath.WalkDir(mount, func(string, os.DirEntry, error) error { used++; return nil }); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Acquire":  func() error { _, err := s.Acquire(t.Context(), "another run", "owner"); return err },
		"List":     func() error { _, err := s.List(t.Context(), checkpoint.Filter{}); return err },
		"Posts":    func() error { _, err := s.Posts(t.Context(), l.Run); return err },
		"Snapshot": func() error { _, err := s.Snapshot(t.Context(), l.Run, 0); return err },
		"Graph":    func() error { _, err := s.Graph(t.Context(), "sha256:0"); return err },
	}
	told := make(chan error, len(calls))
	s.CommitAnywhereWith(func(next func() error) error {
		err := next()
		if err == nil {
			return nil
		}
		for name, call := range calls { // when the database has failed, and the store has not stopped yet
			go func() { told <- fmt.Errorf("%s: %w", name, call()) }() // waited for below
		}
		// With the Read and the Append; those that come when a table could not be made either are
		// told at once, as the Append is.
		for len(told)+s.Entered() < 2+len(calls) && !s.Alarmed() {
			runtime.Gosched()
		}
		return err
	})
	room(used, syscall.MS_REMOUNT)
	defer room(1000, syscall.MS_REMOUNT) // for Close
	for i := 1; err == nil; i++ {
		err = appendNoise(t, s, i, 60)
	}
	if !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Fatalf("Append = %v, want ErrCommitUnknown", err)
	}
	for range calls {
		if err := <-told; !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
	n := 1
	for err = error(nil); err == nil; n++ {
		var ok bool
		if _, err, ok = read(); !ok {
			break
		}
	}
	if err != nil && !errors.Is(err, checkpoint.ErrClosed) || err == nil && n != int(head.Seq) {
		t.Errorf("behind %d entries of %d: %v, want them all or ErrClosed", n, head.Seq, err)
	}
}
