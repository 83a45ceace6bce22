package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/internal/lacking"
)

// On a device that really is full the process lives, the store can be read, and goes on when
// there is room again.
func TestFullDevice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	if err := syscall.Mount("pawl", dir, "tmpfs", 0, "size=80m"); err != nil {
		lacking.Skip(t, "mounting a small file system:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	leases := acquire(t, s, 2)
	var head, big checkpoint.Head
	entries := []checkpoint.Entry{{
		Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(60_000)),
	}}
	huge := []checkpoint.Entry{{
		Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(4<<20)),
	}}
	n := 0
	for err == nil {
		var next checkpoint.Head
		if next, err = s.Append(t.Context(), leases[0], head, entries); err == nil {
			head = next
		}
		if n++; err == nil && n%50 == 0 {
			if next, err = s.Append(t.Context(), leases[1], big, huge); err == nil {
				big = next
			}
		}
	}
	if !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Append %d = %v, want ErrFull", n, err)
	}
	t.Logf("full after %d appends", n)
	check := func() {
		t.Helper()
		for i, want := range []checkpoint.Head{head, big} {
			got := 0
			for _, err := range s.Read(t.Context(), leases[i].Run, 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got++
			}
			if got != int(want.Seq) {
				t.Errorf("%s has %d entries, want %d", leases[i].Run, got, want.Seq)
			}
		}
	}
	check()
	if err := syscall.Mount("pawl", dir, "tmpfs", syscall.MS_REMOUNT, "size=160m"); err != nil {
		t.Fatal(err)
	}
	if head, err = s.Append(t.Context(), leases[0], head, entries); err != nil {
		t.Errorf("Append with room = %v", err)
	}
	check()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// However little Options.FreeSpace asks for, a write, and an Open, need room for what is in memory
// to become tables: where a device of a few megabytes is full the process lives, and the store goes
// on when there is room.
func TestFullDeviceWithoutReserve(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	o := small
	o.FreeSpace = 1
	for _, mib := range []int{4, 6, 8, 12} {
		dir := t.TempDir()
		room := func(bytes int, flags uintptr) error {
			return syscall.Mount("pawl", dir, "tmpfs", flags, fmt.Sprint("size=", bytes))
		}
		if err := room(mib<<20, 0); err != nil {
			lacking.Skip(t, "mounting a small file system:", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		s, err := badgerstore.Open(t.Context(), dir, o)
		opened(t, s, err)
		l := acquire(t, s, 1)[0]
		var head, next checkpoint.Head
		entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(60_000))}}
		for err == nil {
			if next, err = s.Append(t.Context(), l, head, entries); err == nil {
				head = next
			}
		}
		if !errors.Is(err, checkpoint.ErrFull) || head.Seq < uint64(mib) {
			t.Fatalf("with %d MiB: Append behind entry %d = %v, want ErrFull", mib, head.Seq, err)
		}
		if mib == 4 { // in which nothing has become a table yet
			openKilled(t, dir, o)
		}
		if err := room(160<<20, syscall.MS_REMOUNT); err != nil {
			t.Fatal(err)
		}
		if head, err = s.Append(t.Context(), l, head, entries); err != nil {
			t.Errorf("with %d MiB: Append with room = %v", mib, err)
		}
		n := uint64(0)
		for _, err := range s.Read(t.Context(), l.Run, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if err := s.Close(); err != nil || n != head.Seq {
			t.Errorf("with %d MiB: Close = %v; %d entries were read, want %d", mib, err, n, head.Seq)
		}
	}
}

// The room that counts is that of the device with the database, which may be another one than that
// of the store's directory.
func TestFullDeviceOfTheDatabase(t *testing.T) {
	t.Parallel()
	dir, room := databaseElsewhere(t)
	room("size=8m")
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Open without room = %v, want ErrFull", err)
	}
	room("size=160m")
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	room("size=8m")
	for range 100_000 { // it is asked every few milliseconds
		var next checkpoint.Head
		if next, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
			break
		}
		head = next
	}
	if !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("Append without room = %v, want ErrFull", err)
	}
	room(fmt.Sprint("size=", used(t, filepath.Join(dir, "db"))+300<<10))
	if err := s.Close(); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("Close without room = %v, want ErrFull", err)
	}
	room("size=160m")
	for s, err = badgerstore.Open(t.Context(), dir, small); errors.Is(err, checkpoint.ErrLocked); { // it closes by itself
		s, err = badgerstore.Open(t.Context(), dir, small)
	}
	wantHead(t, opened(t, s, err), head)
}

// Whether files can be made for tables is asked of the device that has the database, also where the
// store is on another one.
func TestNoFilesWhereTheDatabaseIs(t *testing.T) {
	t.Parallel()
	dir, mount := databaseElsewhere(t)
	var at syscall.Statfs_t
	if err := syscall.Statfs(filepath.Join(dir, "db"), &at); err != nil {
		t.Fatal(err)
	}
	mount(fmt.Sprint("size=160m,nr_inodes=", at.Files-at.Ffree+8)) // enough to open it, and too few for eight tables and what they need
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Open where no tables can be merged = %v, want ErrFull", err)
	}
	mount("size=160m,nr_inodes=1000")
	open(t, dir).Close()
}

// So it is where killed processes have left files of that kind: those are removed first, and the
// store opens.
func TestFilesThatAreLeftTakeNoRoom(t *testing.T) {
	t.Parallel()
	dir, mount := databaseElsewhere(t)
	for n := range 12 { // as many as there are at once
		if err := os.WriteFile(filepath.Join(dir, "db", fmt.Sprint("probe-", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var at syscall.Statfs_t
	if err := syscall.Statfs(filepath.Join(dir, "db"), &at); err != nil {
		t.Fatal(err)
	}
	mount(fmt.Sprint("size=160m,nr_inodes=", at.Files-at.Ffree+8))
	open(t, dir).Close()
}

// databaseElsewhere makes a store whose database is on a device of its own, and returns what mounts
// that with other options.
func databaseElsewhere(t *testing.T) (dir string, mount func(options string)) {
	t.Helper()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	dir = t.TempDir()
	open(t, dir).Close()
	device, db := t.TempDir(), filepath.Join(dir, "db")
	if err := syscall.Mount("pawl", device, "tmpfs", 0, "size=160m"); err != nil {
		lacking.Skip(t, "mounting a small file system:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(device, syscall.MNT_DETACH) })
	there := filepath.Join(device, "db")
	if err := errors.Join(copySparse(db, there), os.RemoveAll(db), os.Symlink(there, db)); err != nil {
		t.Fatal(err)
	}
	return dir, func(options string) {
		if err := syscall.Mount("pawl", device, "tmpfs", syscall.MS_REMOUNT, options); err != nil {
			t.Fatal(err)
		}
	}
}

// used returns how many bytes of the device at that path are in use.
func used(t *testing.T, path string) int64 {
	t.Helper()
	var at syscall.Statfs_t
	if err := syscall.Statfs(path, &at); err != nil {
		t.Fatal(err)
	}
	return (int64(at.Blocks) - int64(at.Bfree)) * int64(at.Bsize)
}

// A file system that does not tell how large it is, as one in memory without a limit, has room.
func TestRoomOfADeviceThatDoesNotTell(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("pawl", dir, "ramfs", 0, ""); err != nil {
		lacking.Skip(t, "mounting a file system in memory:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s, err := badgerstore.Open(t.Context(), filepath.Join(dir, "store"), small)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // more than one table
		if err := appendNoise(t, s, i, 60); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	open(t, filepath.Join(dir, "store")).Close()
}

// openKilled opens a store as a process leaves it that was killed, on a device with hardly any room
// beside it.
func openKilled(t *testing.T, of string, o badgerstore.Options) {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("pawl", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	if err := copySparse(of, dir); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("pawl", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", used(t, dir)+300<<10)); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), dir, o); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("Open without room for what is in memory = %v, want ErrFull", err)
	}
	if err := syscall.Mount("pawl", dir, "tmpfs", syscall.MS_REMOUNT, "size=160m"); err != nil {
		t.Fatal(err)
	}
	s, err := badgerstore.Open(t.Context(), dir, o)
	if err := opened(t, s, err).Close(); err != nil {
		t.Error(err)
	}
}

// copySparse copies a store, the logs of the database without the zeros behind what was written to
// them.
func copySparse(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at = filepath.Join(to, at)
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		err = os.WriteFile(at, bytes.TrimRight(b, "\x00"), 0o600)
		return errors.Join(err, os.Truncate(at, int64(len(b))))
	})
}
