package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A device on which no further file can be made, at whatever moment of making, opening or closing a store,
// is ErrFull, though it has free bytes. With room again the store is whole.
func TestDeviceWithoutRoomForFiles(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
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

// openWithFiles opens and closes a store on a device that has room for so many files, and then for more.
func openWithFiles(t *testing.T, files int) (opened bool, err error) {
	mount := t.TempDir()
	room := func(files int, flags uintptr) error {
		return syscall.Mount("pawl", mount, "tmpfs", flags, fmt.Sprint("size=200m,nr_inodes=", files))
	}
	if err := room(files, 0); err != nil {
		t.Skip("mounting a small file system:", err)
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
