package badgerstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// closedStore is a closed store with a few tables, and what it holds.
func closedStore(t *testing.T) image {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 9<<20)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return image{dir, want}
}

func tablesOf(t *testing.T, dir string) []string {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%q, %v, want tables", tables, err)
	}
	for i := range tables {
		tables[i] = filepath.Join("db", filepath.Base(tables[i]))
	}
	return tables
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

func inventoryOf(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "tables"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A table that is as sound as the one in whose place it stands, of this store or of another one
// that made the same runs, is found when the store is opened, and the store is whole when the right
// one is back.
func TestTablesOfOthersAreFound(t *testing.T) {
	t.Parallel()
	of, other := closedStore(t), closedStore(t)
	tables, theirs := tablesOf(t, of.dir), tablesOf(t, other.dir)
	refused := func(from, at string) {
		t.Helper()
		err := of.withDamage(t, func(dir string) error { return copyFile(from, filepath.Join(dir, at)) }, at)
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(at)) || !strings.HasSuffix(err.Error(), "has the tables taken as they are") {
			t.Errorf("%s is %s: Open = %v, want ErrCorrupt, its name, and what to do", at, from, err)
		}
	}
	for i, at := range tables {
		if len(tables) > 1 {
			refused(filepath.Join(of.dir, tables[(i+1)%len(tables)]), at)
		}
		refused(filepath.Join(other.dir, theirs[min(i, len(theirs)-1)]), at)
	}
	t.Logf("%d tables", len(tables))
}

// So it is in the directory of a process that was killed, for tables that were there when that
// opened the store.
func TestTablesOfOthersAreFoundBehindACrash(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	tables := tablesOf(t, of.dir)
	if err := os.Remove(filepath.Join(of.dir, "tables")); err != nil { // as in a store of a version before
		t.Fatal(err)
	}
	s := open(t, of.dir)
	killed := image{copyDir(t, of.dir), of.want}
	s.Close()
	other := closedStore(t)
	err := killed.withDamage(t, func(dir string) error {
		return copyFile(filepath.Join(other.dir, tablesOf(t, other.dir)[0]), filepath.Join(dir, tables[0]))
	}, tables[0])
	if !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Open = %v, want ErrCorrupt", err)
	}
}

// The inventory forgets tables that are gone, before their numbers can be used again. Where there
// is none, as in a store of a version before, or an empty file, the tables are taken as they are.
func TestInventoriesHinderNobody(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	was := inventoryOf(t, of.dir)
	const header, entry = 42, 40
	if n := len(tablesOf(t, of.dir)); len(was) != header+n*entry+4 {
		t.Fatalf("the inventory of %d tables has %d bytes", n, len(was))
	}
	for name, b := range map[string][]byte{"missing": nil, "empty": {}, "stale": badgerstore.WithTable(was, 999)} {
		dir := copyDir(t, of.dir)
		path := filepath.Join(dir, "tables")
		err := os.Remove(path)
		if b != nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err != nil {
			t.Errorf("%s: Open = %v", name, err)
			continue
		}
		if now := inventoryOf(t, dir); !bytes.Equal(now, was) {
			t.Errorf("%s: while the store is open the inventory has %d bytes, want the %d of the tables that there are", name, len(now), len(was))
		}
		s.Close()
	}
}

// An inventory that is damaged, or that of another store, is ErrCorrupt, and one of a later version
// ErrVersion: no crash leaves one, and the tables can't be checked by it. Nothing is changed, and
// an empty file in its place opens the store, as the error says.
func TestDamagedInventoriesAreFound(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	was := inventoryOf(t, of.dir)
	flipped := func(at int) []byte {
		b := bytes.Clone(was)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"cut":                {was[:len(was)-1], checkpoint.ErrCorrupt},
		"short":              {was[:10], checkpoint.ErrCorrupt},
		"shorter":            {was[:1], checkpoint.ErrCorrupt},
		"no inventory":       {flipped(0), checkpoint.ErrCorrupt},
		"of a later version": {badgerstore.ReSum(append(append(bytes.Clone(was[:4]), 2), was[5:]...)), checkpoint.ErrVersion},
		"another id":         {flipped(10), checkpoint.ErrCorrupt},
		"another table":      {flipped(50), checkpoint.ErrCorrupt},
		"another sum":        {flipped(len(was) - 1), checkpoint.ErrCorrupt},
		"zeros":              {make([]byte, len(was)), checkpoint.ErrCorrupt},
		"of another store":   {badgerstore.ReSum(bytes.Replace(was, was[6:10], []byte("else"), 1)), checkpoint.ErrCorrupt},
	} {
		dir := copyDir(t, of.dir)
		path := filepath.Join(dir, "tables")
		if err := os.WriteFile(path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		before := snapshotOf(t, dir)
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "an empty file in its place") ||
			strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: Open = %v, want %v and what to do", name, err, c.want)
			continue
		}
		if snapshotOf(t, dir) != before {
			t.Errorf("%s: the directory has changed", name)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		open(t, dir).Close()
		if now := inventoryOf(t, dir); !bytes.Equal(now, was) {
			t.Errorf("%s: then the inventory has %d bytes, want the %d of the tables that there are", name, len(now), len(was))
		}
	}
}

// Where a database was, none is begun anew in silence: the tables that it had are in the inventory.
// Whether the witness is missing as well does not matter.
func TestAMissingDatabaseIsFound(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	for name, missing := range map[string][]string{
		"database":                     {"db"},
		"database and witness":         {"db", "witness"},
		"files and witness":            {"db/*", "witness"},
		"tables, manifest and witness": {"db/*.sst", "db/MANIFEST", "witness"},
	} {
		dir := copyDir(t, of.dir)
		for _, pattern := range missing {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("%s: %q are %q, %v", name, pattern, paths, err)
			}
			for _, path := range paths {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := snapshotOf(t, dir)
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Join(dir, "db")) {
			t.Errorf("without its %s: Open = %v, want ErrCorrupt and what is missing", name, err)
		}
		if snapshotOf(t, dir) != before {
			t.Errorf("without its %s: the directory has changed", name)
		}
	}
}

// That it forgets is durable before Badger may use a number again.
func TestInventoryForgetsBeforeTheDatabaseOpens(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	was := inventoryOf(t, of.dir)
	registry := filepath.Join(of.dir, "db", "KEYREGISTRY")
	if err := errors.Join(os.WriteFile(filepath.Join(of.dir, "tables"), badgerstore.WithTable(was, 999), 0o600), os.WriteFile(registry, []byte("no registry of any kind is this"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), of.dir, small); err == nil {
		t.Fatal("a damaged registry is opened by Badger")
	}
	if now := inventoryOf(t, of.dir); !bytes.Equal(now, was) {
		t.Errorf("the inventory has %d bytes, want %d", len(now), len(was))
	}
}

// What is merged and made anew while a store is open is in the inventory when it is closed, and
// opens.
func TestInventoryFollowsMerges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 4 {
		s := open(t, dir)
		l, err := s.Acquire(t.Context(), fmt.Sprint("run ", i), "owner")
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		for j := range 12 {
			e := checkpoint.Entry{Kind: checkpoint.Done, Step: j, Path: "a", Delta: fmt.Appendf(nil, "%q", noise(700<<10))}
			if j == 0 {
				e = checkpoint.Entry{Kind: checkpoint.Opened, Data: []byte(`{"graph":"g","digest":"d"}`)}
			}
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n, want := badgerstore.TablesIn(t, dir), len(tablesOf(t, dir)); n != want {
			t.Fatalf("the inventory has %d tables, and there are %d", n, want)
		}
	}
}
