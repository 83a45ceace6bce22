package badgerstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// An Open that has failed behind Badger closes it, and that makes tables. One of the number of a
// table that is aside stays in its place, and the other one where it is, for the next Open.
func TestTablesAreAsideUntilBadgerIsClosed(t *testing.T) {
	t.Parallel()
	x := opener{dir: t.TempDir(), options: Options{MemTableSize: leastMemTable}}
	x.options = x.options.withDefaults(x.dir)
	var err error
	if x.lock, err = lockDir(x.dir); err != nil {
		t.Fatal(err)
	}
	if err := x.makeHome(t.Context()); err != nil {
		t.Fatal(err)
	}
	table := tablePath(x.alarm.dir, 1)
	x.guarded.loose = []looseTable{{path: table, aside: table + asideExt}}
	if err := os.WriteFile(table+asideExt, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if x.db, err = badger.OpenManaged(x.badgerOptions()); err != nil {
		t.Fatal(err)
	}
	x.store = newStore(x.options, x.db, 0)
	if err := x.store.commitAlone(func(txn *badger.Txn) error { return txn.Set([]byte("k"), nil) }); err != nil {
		t.Fatal(err)
	}
	_ = x.undo(nil)
	if _, _, err := checkTable(table); err != nil {
		t.Errorf("the table that Badger has made: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(x.alarm.dir, "*"+asideExt)); err != nil || len(left) != 1 {
		t.Errorf("there are aside %q, %v, want one", left, err)
	}
}
