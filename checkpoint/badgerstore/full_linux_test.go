package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// On a device that really is full the process lives, the store can be read, and goes on when
// there is room again.
func TestFullDevice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	if err := syscall.Mount("pawl", dir, "tmpfs", 0, "size=80m"); err != nil {
		t.Skip("mounting a small file system:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
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
