//go:build unix

package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// A witness that is replaced while the store is being opened is locked, and written, as it is then.
func TestWitnessReplacedWhileOpening(t *testing.T) {
	t.Parallel()
	path, id := filepath.Join(t.TempDir(), "witness"), newID()
	made, err := lockWitness(path)
	if err == nil {
		err = made.open(id, 7, false, true)
	}
	if err == nil {
		err = made.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := lockWitness(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.open(id, 8, true, true); err != nil {
		t.Fatal(err)
	}
	if _, err := lockWitness(path); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("another store locks it: %v", err)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
	var older *damageError
	if _, err := readWitness(path, id, 7, true); !errors.As(err, &older) {
		t.Errorf("a store that ends at transaction 7 is taken: %v", err)
	}
}

// What a store has in its directory, or makes there for a moment, is no witness, nor is the
// directory, which may not exist yet.
func TestWitnessOfAnotherName(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	for _, name := range []string{lockFile, nameFile, inventoryFile, databaseDir, nameFile + newExt, inventoryFile + newExt, "."} {
		var argument *checkpoint.ArgumentError
		if err := checkWitness(filepath.Join(dir, name), dir); !errors.As(err, &argument) {
			t.Errorf("%s: %v, want an ArgumentError", name, err)
		}
	}
	if err := checkWitness(filepath.Join(dir, "seen"), dir); err != nil {
		t.Error(err)
	}
}
