//go:build linux || darwin || freebsd

package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Of two copies of a store with one witness the second is not opened beside the first, also by a
// name of the file that is a link. So nobody puts the witness back, and the copy that is older is
// found out.
func TestTwoCopiesWithOneWitness(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	again := func() *badgerstore.Store {
		t.Helper()
		s, err := badgerstore.Open(t.Context(), dir, o)
		return opened(t, s, err)
	}
	closes(t, again())
	older, link := copyDir(t, dir), o
	link.Witness = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(o.Witness, link.Witness); err != nil {
		t.Fatal(err)
	}
	s := again()
	for _, o := range []badgerstore.Options{o, link} {
		for name, open := range map[string]func(context.Context, string, badgerstore.Options) (*badgerstore.Store, error){
			"Open": badgerstore.Open, "OpenUnsynced": badgerstore.OpenUnsynced,
		} {
			_, err := open(t.Context(), older, o)
			if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "another open store, perhaps a copy of this one, has "+o.Witness+" as its witness") {
				t.Errorf("%s of a copy with the witness of an open store = %v, want ErrLocked that says so", name, err)
			}
		}
	}
	stock(t, s, 1<<10)
	closes(t, s)
	if _, err := badgerstore.Open(t.Context(), older, o); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Open of the older copy = %v, want ErrCorrupt", err)
	}
	closes(t, again()) // what was refused has left no lock
}

// So it is of a witness that the first Open makes.
func TestTwoCopiesWithANewWitness(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	closes(t, open(t, dir))
	o.Witness = filepath.Join(t.TempDir(), "witness")
	s, err := badgerstore.Open(t.Context(), copyDir(t, dir), o)
	opened(t, s, err)
	if _, err := badgerstore.Open(t.Context(), dir, o); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("Open with the witness that an open store has made = %v, want ErrLocked", err)
	}
}

// A witness that somebody puts in the place of another is that of who opens a store then: who has
// the other one open writes to that, and never to what is in its place.
func TestAWitnessThatIsReplaced(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	s, err := badgerstore.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	killed := copyDir(t, dir)
	b, err := os.ReadFile(o.Witness)
	if err == nil {
		err = os.WriteFile(o.Witness+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(o.Witness+".new", o.Witness)
	}
	if err != nil {
		t.Fatal(err)
	}
	beside, err := badgerstore.Open(t.Context(), killed, o)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, beside, 1<<10)
	before, _ := os.ReadFile(o.Witness)
	closes(t, s)
	if after, err := os.ReadFile(o.Witness); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the store that had the witness before has changed it: %v", err)
	}
	closes(t, beside)
}

// As its directory, the witness of a store that is closed beside a fork is free at once.
func TestWitnessClosedBesideAFork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := syscall.Dup(int(badgerstore.WitnessFile(s).Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Close(inherited) }()
		closes(t, s)
	}
}
