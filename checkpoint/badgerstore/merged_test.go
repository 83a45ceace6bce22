package badgerstore_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// What earlier runs have appended is not written again when what newer ones append is merged. In a store of format 1 it is, but for large values.
func TestOlderRunsAreNotMergedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  opener
		value int
		kept  bool
	}{
		"newest format":       {openUnsynced, 100 << 10, true},
		"in pieces":           {openUnsynced, 800 << 10, true},
		"format 1":            {openFormat1, 100 << 10, false},
		"format 1, in pieces": {openFormat1, 800 << 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.open(t, t.TempDir())
			older := merged(t, s, "older", c.value) // all but its last tables: it ends in the midst of one, behind which all else stands
			if len(older) < 6 {
				t.Fatalf("there are %d tables of appends", len(older))
			}
			now := make(map[uint64]bool)
			for _, id := range merged(t, s, "newer", c.value) {
				now[id] = true
			}
			kept := 0
			for _, id := range older[:len(older)-2] {
				if now[id] {
					kept++
				}
			}
			if want := len(older) - 2; c.kept && kept != want || !c.kept && kept > 1 {
				t.Errorf("%d tables of %d have not been merged again", kept, want)
			}
		})
	}
}

// merged writes 32 MB and more in runs one after the other, has all new tables merged, and returns those of appends or their pieces alone, in their order.
func merged(t *testing.T, s *badgerstore.Store, name string, value int) (tables []uint64) {
	t.Helper()
	check := fatal(t)
	data := fmt.Appendf(nil, "%q", noise(value))
	for i := 0; i < 8<<20/value || len(tablesBelow(s)) == 0; i++ { // as long as Badger has merged none there is nothing to flatten
		l, err := s.Acquire(t.Context(), fmt.Sprint(name, i), "owner")
		check(err)
		var head checkpoint.Head
		for range 4 {
			head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Noted, Data: data}})
			check(err)
		}
		check(s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: head, Data: []byte(`"snapshot"`)}))
		check(s.Release(t.Context(), l))
	}
	check(s.Badger().Flatten(1))
	for _, table := range tablesBelow(s) {
		if kind := table.Left[0]; kind == table.Right[0] && (kind == 'l' || kind == 'c') {
			tables = append(tables, table.ID)
		}
	}
	return tables
}

// tablesBelow returns the tables that have been merged, in the order of their keys.
func tablesBelow(s *badgerstore.Store) []badger.TableInfo {
	tables := slices.DeleteFunc(s.Badger().Tables(), func(t badger.TableInfo) bool { return t.Level == 0 })
	slices.SortFunc(tables, func(a, b badger.TableInfo) int { return bytes.Compare(a.Left, b.Left) })
	return tables
}
