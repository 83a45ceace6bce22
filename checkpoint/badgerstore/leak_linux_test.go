package badgerstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// An Open that fails leaves no file of the store open, nor mapped into memory, however far it came.
func TestFailedOpenLeavesNoFileOpen(t *testing.T) {
	t.Parallel()
	down := errors.New("the key service is down")
	write := func(name string, text []byte) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), text, 0o600) }
	}
	for name, harm := range map[string]func(dir string) error{
		"the name":        write("pawl.json", []byte("{")),
		"the inventory":   write("tables", []byte("no inventory")),
		"the witness":     func(dir string) error { return laterWitness(filepath.Join(dir, "witness")) },
		"the manifest":    write("db/MANIFEST", []byte("no manifest")),
		"no database":     func(dir string) error { return os.RemoveAll(filepath.Join(dir, "db")) },
		"the registry":    write("db/KEYREGISTRY", []byte("no registry of any kind is this")),
		"a log of values": func(dir string) error { return os.Mkdir(filepath.Join(dir, "db", "000009.vlog"), 0o700) },
		"the cipher":      nil,
		"what is to be removed": func(dir string) error {
			badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error { return txn.Set(badgerstore.TrimmedKey(1), []byte("no mark")) })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, o, during := sealedStore(t)
			if harm == nil {
				during(func() error { return down })
			} else if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := badgerstore.Open(t.Context(), dir, o); err == nil {
				t.Fatal("Open = nil")
			}
			if left := openIn(t, dir); len(left) > 0 {
				t.Errorf("open are still %q", left)
			}
		})
	}
}

// openIn returns the files in a directory that this process has open or mapped.
func openIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if path, err := os.Readlink(fd); err == nil && strings.HasPrefix(path, dir) {
			all = append(all, path)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
