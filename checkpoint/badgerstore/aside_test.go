package badgerstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// interrupted is a copy of a store whose process died while it wrote its first table: of that there
// is a beginning, and all that is in it is still in the log of what was in memory.
func interrupted(t *testing.T) (dir string, want *library) {
	t.Helper()
	live := t.TempDir()
	s := open(t, live)
	stock(t, s, 1<<12)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(dir, os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	begin(t, dir, "000001.sst")
	return dir, want
}

// begin writes the beginning of a table.
func begin(t *testing.T, dir, table string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "db", table), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A table that the manifest does not name is set aside while a store is opened. If that fails
// behind Badger, which has written another table of the same number, that one stays, and so it does
// if the process died: what was aside is removed by the first that opens the store.
func TestTablesSetAsideReplaceNone(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	witness := filepath.Join(dir, "witness")
	testimony, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(witness); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("Open of a store without its witness = %v, want ErrCorrupt", err)
	}
	if err := os.WriteFile(witness, testimony, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"000001.sst.aside", "000001.sst.2.aside", "000002.sst.aside", "000002.sst.2.aside"} {
		begin(t, dir, left)
	}
	s := open(t, dir)
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
	if left, err := filepath.Glob(filepath.Join(dir, "db", "*.aside")); len(left) > 0 || err != nil {
		t.Errorf("the store is open and there are still %q, %v", left, err)
	}
}
