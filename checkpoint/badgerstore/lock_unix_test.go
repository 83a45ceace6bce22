//go:build linux || darwin || freebsd

package badgerstore_test

import (
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A process that is forked while a store is open has its files for a moment, until it runs its
// program. A store that is closed meanwhile can be opened again at once.
func TestClosedBesideAFork(t *testing.T) {
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(badgerstore.LockFile(s).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(inherited) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = badgerstore.Open(t.Context(), dir, small); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
