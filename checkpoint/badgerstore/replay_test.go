package badgerstore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Badger cuts a log of what was in memory at the first record that it can't read, and what is sound behind it
// would be lost by an Open that is refused. So nothing is cut, however often it is refused: with the bit as it was, or the
// witness back, all is there.
func TestARefusedOpenCutsNoLog(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	logs, err := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%q, %v, want one log", logs, err)
	}
	log, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	used := int64(len(bytes.TrimRight(log, "\x00"))) * 8
	refused := func(what string) {
		t.Helper()
		before := snapshotOf(t, dir)
		for range 2 {
			if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Fatalf("%s: Open = %v, want ErrCorrupt", what, err)
			}
			if snapshotOf(t, dir) != before {
				t.Fatalf("%s: a refused Open has changed the files", what)
			}
		}
	}
	for _, at := range []int64{20 * 8, 21 * 8, 40 * 8, used / 3, used / 2, used - 9} {
		if err := flip(logs[0], at); err != nil {
			t.Fatal(err)
		}
		refused("a flipped bit")
		if err := flip(logs[0], at); err != nil {
			t.Fatal(err)
		}
	}
	witness := filepath.Join(dir, "witness")
	if err := errors.Join(flip(logs[0], used/2), os.Rename(witness, witness+".kept")); err != nil {
		t.Fatal(err)
	}
	refused("a flipped bit and no witness")
	if err := errors.Join(flip(logs[0], used/2), os.Rename(witness+".kept", witness)); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
}

// Of two logs the first is not cut either where the second goes on behind what is missing.
func TestARefusedOpenCutsNoFirstLog(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	logs, _ := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
	at := 4 * badgerstore.SplitLog(t, logs[0], filepath.Join(dir, "db", "00002.mem"))
	if err := os.WriteFile(filepath.Join(dir, "witness"), nil, 0o600); err != nil { // says nothing
		t.Fatal(err)
	}
	if err := flip(logs[0], at); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("Open = %v, want ErrCorrupt and what is missing", err)
	}
	if err := flip(logs[0], at); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
}
