package badgerstore_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// What earlier runs have appended is not written again when what newer ones append is merged,
// whatever is done with them beside that. In a store of format 1 it is, but for large values, and
// in one of format 2 where a run was deleted, forked, trimmed or imported, or a graph is new.
func TestOlderRunsAreNotMergedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   opener
		value  int
		beside func(ctx context.Context, s *badgerstore.Store, run string) error
		kept   bool
	}{
		"newest format":       {openUnsynced, 100 << 10, nil, true},
		"in pieces":           {openUnsynced, 800 << 10, nil, true},
		"beside graphs":       {openUnsynced, 100 << 10, newGraph, true},
		"beside trims":        {openUnsynced, 100 << 10, trimmed, true},
		"beside forks":        {openUnsynced, 100 << 10, forked, true},
		"beside deletions":    {openUnsynced, 100 << 10, madeAndDeleted, true},
		"beside imports":      {openUnsynced, 100 << 10, imported, true},
		"format 2":            {openFormat(2), 100 << 10, nil, true},
		"format 2, deletions": {openFormat(2), 100 << 10, madeAndDeleted, false},
		"format 1":            {openFormat(1), 100 << 10, nil, false},
		"format 1, in pieces": {openFormat(1), 800 << 10, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.open(t, t.TempDir())
			older := merged(t, s, "older", c.value, nil) // all but its last tables: it ends in the midst of one, behind which all else stands
			if len(older) < 6 {
				t.Fatalf("there are %d tables of appends", len(older))
			}
			now := make(map[uint64]bool)
			for _, id := range merged(t, s, "newer", c.value, c.beside) {
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

func newGraph(ctx context.Context, s *badgerstore.Store, run string) error {
	return s.PutGraph(ctx, run, []byte(`{"nodes":[]}`))
}

func trimmed(ctx context.Context, s *badgerstore.Store, run string) error {
	if err := forkstoreGrow(ctx, s, run, 3); err != nil {
		return err
	}
	return forkstoreTrim(ctx, s, run, 3, []byte(run))
}

func forked(ctx context.Context, s *badgerstore.Store, run string) error {
	return s.Fork(ctx, forkstoreFork([]byte(run), 10, run))
}

func madeAndDeleted(ctx context.Context, s *badgerstore.Store, run string) error {
	if err := forkstoreGrow(ctx, s, run, 1); err != nil {
		return err
	}
	return s.Delete(ctx, run)
}

func imported(ctx context.Context, s *badgerstore.Store, run string) error {
	var from memory.Store
	var file bytes.Buffer
	l, err := from.Acquire(ctx, run, "owner")
	if err == nil {
		_, err = from.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Done}})
	}
	if err == nil {
		err = checkpoint.Export(ctx, &from, run, &file)
	}
	if err == nil {
		_, err = checkpoint.Import(ctx, s, &file, checkpoint.ImportOptions{})
	}
	return err
}

// merged writes 32 MB and more in runs one after the other, does that beside each, has all new
// tables merged, and returns those of appends or their pieces alone, in their order.
func merged(
	t *testing.T, s *badgerstore.Store, name string, value int, beside func(ctx context.Context, s *badgerstore.Store, run string) error,
) (tables []uint64) {
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
		if beside != nil {
			check(beside(t.Context(), s, fmt.Sprint("beside ", name, i)))
		}
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

// A loop over a log reads all of it also where the run was deleted when it had begun, and the
// tables that the run was in are merged before it comes to the next page.
func TestALoopReadsWhatIsMergedAway(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	leases := acquire(t, s, 2)
	const each, appends = 500, 4 // behind the first few hundred entries the loop looks anew
	var head checkpoint.Head
	entries := make([]checkpoint.Entry, each)
	for i := range entries {
		entries[i] = checkpoint.Entry{Kind: checkpoint.Done, Path: "a"}
	}
	for range appends {
		var err error
		if head, err = s.Append(t.Context(), leases[0], head, entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Release(t.Context(), leases[0]); err != nil {
		t.Fatal(err)
	}
	next, stop := iter.Pull2(s.Read(t.Context(), leases[0].Run, 1, 0))
	defer stop()
	if _, err, ok := next(); err != nil || !ok {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), leases[0].Run); err != nil {
		t.Fatal(err)
	}
	head = checkpoint.Head{}
	big := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(100<<10))}}
	for i := 0; i < 128 || len(tablesBelow(s)) == 0; i++ { // the database is told what it may forget, and merges its first tables
		var err error
		if head, err = s.Append(t.Context(), leases[1], head, big); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Badger().Flatten(1); err != nil {
		t.Fatal(err)
	}
	n := 1
	for {
		_, err, ok := next()
		if !ok {
			break
		}
		if err != nil {
			t.Fatalf("behind entry %d: %v", n, err)
		}
		n++
	}
	if n != each*appends {
		t.Errorf("read %d entries, want %d", n, each*appends)
	}
}
