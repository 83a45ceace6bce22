package badgerstore_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A watchful cipher calls a function when it is first to open something: in an Open that is when
// the database is open, and before anything relies on its being the store's.
type watchfulCipher struct {
	checkpoint.Cipher
	behindBadger func() error
}

func (c *watchfulCipher) Open(dst, sealed, place []byte) ([]byte, error) {
	if do := c.behindBadger; do != nil {
		c.behindBadger = nil
		if err := do(); err != nil {
			return nil, err
		}
	}
	return c.Cipher.Open(dst, sealed, place)
}

// sealedStore is a closed store that is sealed with the first key, and the options to open it with
// and to seal it anew with the second, which call that function when the database is open.
func sealedStore(t *testing.T) (dir string, first, second badgerstore.Options, during func(func() error)) {
	t.Helper()
	one, two := keyOf(t, "k1", 1), keyOf(t, "k2", 2)
	dir, first, second = t.TempDir(), sealedBy(t, one), sealedBy(t, two, one)
	s, err := badgerstore.Open(t.Context(), dir, first)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	closes(t, s)
	cipher := &watchfulCipher{Cipher: second.Cipher}
	second.Cipher = cipher
	return dir, first, second, func(do func() error) { cipher.behindBadger = do }
}

// laterWitness makes the witness at that path one of a transaction that the store has not been at.
func laterWitness(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[42] = 1
	return os.WriteFile(path, badgerstore.ReSum(b), 0o600)
}

// An Open that is refused when Badger has the database open, but before it is known that it is the
// store's and that nothing is missing, has changed nothing that says so: whoever puts right what
// was wrong has the store.
func TestRefusedBehindBadger(t *testing.T) {
	t.Parallel()
	down := errors.New("the key service is down")
	for name, c := range map[string]struct {
		during func(witness string) error
		want   error
	}{
		"by the cipher":  {func(string) error { return down }, down},
		"by the witness": {laterWitness, checkpoint.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, first, second, during := sealedStore(t)
			tables, witness := filepath.Join(dir, "tables"), filepath.Join(dir, "witness")
			empty := []string{tables} // says nothing
			if c.want == down {
				empty = append(empty, witness)
			}
			for _, path := range empty {
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
			}
			begin(t, dir, "000777.sst")
			during(func() error { return c.during(witness) })
			if _, err := badgerstore.Open(t.Context(), dir, second); !errors.Is(err, c.want) {
				t.Fatalf("Open = %v, want %v", err, c.want)
			}
			for _, path := range empty {
				if info, err := os.Stat(path); err != nil || info.Size() > 0 {
					t.Errorf("Open has written %s: %v", path, err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "db", "000777.sst")); err != nil {
				t.Errorf("a table that the manifest does not name is not where it was: %v", err)
			}
			if err := os.Truncate(witness, 0); err != nil {
				t.Fatal(err)
			}
			s, err := badgerstore.Open(t.Context(), dir, first)
			if err != nil {
				t.Fatalf("Open with the key that the store was sealed with = %v", err)
			}
			closes(t, s)
		})
	}
}

// An Open that is refused before Badger opens the database has changed no file of it.
func TestRefusedBeforeBadger(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	for name, harm := range map[string]func(dir string) error{
		"by the witness": func(dir string) error { return laterWitness(filepath.Join(dir, "witness")) },
		"by the inventory": func(dir string) error {
			b := inventoryOf(t, dir)
			b[42+8] ^= 1
			return os.WriteFile(filepath.Join(dir, "tables"), badgerstore.ReSum(b), 0o600)
		},
	} {
		dir := copyDir(t, of.dir)
		err := errors.Join(harm(dir), os.Remove(filepath.Join(dir, "db", "DISCARD")),
			os.WriteFile(filepath.Join(dir, "db", "00099.mem"), nil, 0o600))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "tables"), badgerstore.WithTable(inventoryOf(t, dir), 999), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		begin(t, dir, "000777.sst")
		files, before := filesOf(t, dir), snapshotOf(t, dir)
		if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: Open = %v, want ErrCorrupt", name, err)
		}
		if after := filesOf(t, dir); !slices.Equal(files, after) || before != snapshotOf(t, dir) {
			t.Errorf("%s: Open has left %q of %q, or changed one", name, after, files)
		}
	}
}

// Nor is the database opened where there is no room for that: Badger writes what was in memory, and
// on a full device that ends the process.
func TestRefusedForWantOfRoomBeforeBadger(t *testing.T) {
	t.Parallel()
	dir, _ := interrupted(t)
	before, o := snapshotOf(t, dir), small
	o.FreeSpace = math.MaxInt64
	if _, err := badgerstore.Open(t.Context(), dir, o); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("Open = %v, want ErrFull", err)
	}
	if snapshotOf(t, dir) != before {
		t.Error("Open has changed the files")
	}
}

// A mark that can't be read, of what an earlier process has left to be removed, is found by Open
// when the store is all but open. Nothing is left of that.
func TestRefusedWhenAllButOpen(t *testing.T) {
	others := map[string]bool{} // of tests before this one
	for _, stack := range goroutines() {
		others[goroutineOf(stack)] = true
	}
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	closes(t, s)
	badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error { return txn.Set(badgerstore.TrimmedKey(1), []byte("no mark")) })
	for range 2 {
		if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Fatalf("Open = %v, want ErrCorrupt", err)
		}
	}
	noGoroutineIsLeft(t, others)
}
