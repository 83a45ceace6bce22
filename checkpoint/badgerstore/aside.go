package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A guarded is what guard has found out.
type guarded struct {
	newest uint64   // version in a table
	logged []uint64 // transactions in logs of what is in memory
	ends   []end    // of these logs
	memory int64    // that the entries of the largest of them take
	empty  []string // files of no bytes, see openDatabase
	sums   inventory
	loose  []looseTable
}

// A looseTable is one that the manifest does not name. Badger would remove it, so it is set aside
// while Badger opens the database. Meanwhile Badger may use its number for another table, which
// stays where it is whatever comes then.
type looseTable struct {
	path  string
	aside string // where it is, or "" as long as it is at path
}

// asideExt is what the names of loose tables end in while Badger opens the database.
const asideExt = ".aside"

func (t *looseTable) now() string {
	if t.aside != "" {
		return t.aside
	}
	return t.path
}

// takeBack puts a table back that a process had set aside which died, and returns where it is then:
// it stays aside, and is loose, where Badger has used its number. What was not set aside is where
// it was.
func (g *guarded) takeBack(path string) (string, error) {
	if filepath.Ext(path) != asideExt {
		return path, nil
	}
	dir, base := filepath.Split(path)
	number, _, _ := strings.Cut(base, ".")
	table := filepath.Join(dir, number+".sst")
	if exists(table) {
		g.loose = append(g.loose, looseTable{table, path})
		return path, nil
	}
	if err := os.Rename(path, table); err != nil {
		return "", fmt.Errorf("checkpoint: putting a table back: %w", err)
	}
	return table, nil
}

// setAside hides the loose tables from Badger. If the database proves whole without them
// dropLoose removes them, if not putBack has them where they were.
func (g *guarded) setAside() error {
	for i := range g.loose {
		t := &g.loose[i]
		if t.aside != "" {
			continue
		}
		aside := t.path + asideExt
		for n := 2; exists(aside); n++ {
			aside = fmt.Sprintf("%s.%d%s", t.path, n, asideExt)
		}
		if err := os.Rename(t.path, aside); err != nil {
			return fmt.Errorf("checkpoint: setting a table aside: %w", err)
		}
		t.aside = aside
	}
	return nil
}

func (g *guarded) dropLoose() error {
	for _, t := range g.loose {
		if err := os.Remove(t.aside); err != nil {
			return fmt.Errorf("checkpoint: removing a table that a crash left: %w", err)
		}
	}
	return nil
}

// putBack leaves aside what the next Open finds there, where Badger has used its number.
func (g *guarded) putBack() error {
	var errs []error
	for _, t := range g.loose {
		if t.aside != "" && !exists(t.path) {
			errs = append(errs, os.Rename(t.aside, t.path))
		}
	}
	return errors.Join(errs...)
}

// exists is true of a file that can't be looked at, too.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
