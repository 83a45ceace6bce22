package badgerstore_test

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// versions are the values that a key of an open store has had, oldest first.
func versions(t testing.TB, s *badgerstore.Store, key []byte) (all [][]byte) {
	t.Helper()
	txn := s.Badger().NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	it := txn.NewKeyIterator(key, badger.IteratorOptions{AllVersions: true})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		value, err := it.Item().ValueCopy(nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
	}
	slices.Reverse(all)
	return all
}

// What a store said of a run when it was opened, put back when the log is longer, is found by Stat,
// List and Acquire where the last append says otherwise, and by Verify in any case.
func TestOlderRowIsFound(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	ctx := t.Context()
	for run, c := range map[string]struct {
		kinds []checkpoint.Kind // of the appends that follow
		shown bool              // by the last one
	}{
		"runs":                   {[]checkpoint.Kind{checkpoint.Done}, true},
		"has run for a while":    {[]checkpoint.Kind{checkpoint.Done, checkpoint.EffectBegun, checkpoint.Done}, true},
		"waits":                  {[]checkpoint.Kind{checkpoint.Done, checkpoint.Waiting}, true},
		"is completed":           {[]checkpoint.Kind{checkpoint.Done, checkpoint.Completed}, true},
		"was rewound":            {[]checkpoint.Kind{checkpoint.Done, checkpoint.Rewound}, true},
		"has another graph":      {[]checkpoint.Kind{checkpoint.Migrated}, true},
		"waits and has a note":   {[]checkpoint.Kind{checkpoint.Done, checkpoint.Waiting, checkpoint.Noted}, false},
		"runs, behind a note":    {[]checkpoint.Kind{checkpoint.Noted, checkpoint.Done}, true},
		"waits, and is answered": {[]checkpoint.Kind{checkpoint.Waiting, checkpoint.Answered}, false},
	} {
		t.Run(run, func(t *testing.T) {
			want := rests(t, s, run, append([]checkpoint.Kind{checkpoint.Opened}, c.kinds...))
			if found := verified(t, s); len(found) > 0 {
				t.Fatalf("Verify finds %q before anything was done", found)
			}
			key := badgerstore.RowKey(badgerstore.NumberOf(t, s, run))
			rows := versions(t, s, key)
			if err := s.Put(ctx, key, rows[0]); err != nil {
				t.Fatal(err)
			}
			_, stat := s.Stat(ctx, run)
			_, list := s.List(ctx, checkpoint.Filter{})
			l, acquire := s.Acquire(ctx, run, "heir")
			for name, err := range map[string]error{"Stat": stat, "List": list, "Acquire": acquire} {
				var where *checkpoint.CorruptError
				if c.shown && (!errors.As(err, &where) || where.Run != run) || !c.shown && err != nil {
					t.Errorf("%s = %v, want that it is found: %v", name, err, c.shown)
				}
			}
			if acquire == nil {
				_ = s.Release(ctx, l) // else the run would stay in memory
			}
			if found := verified(t, s); len(found) != 1 {
				t.Errorf("Verify finds %q, want one thing", found)
			}
			if err := s.Put(ctx, key, rows[len(rows)-1]); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Stat(ctx, run); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("with its own row: Stat = %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

// So is by Verify what a store said of a run earlier with the same status, as of a run that has
// waited before: only the time since when it does is another one.
func TestOlderRowOfTheSameStatusIsFound(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	s.ForgetIdle()
	ctx := t.Context()
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	var info checkpoint.Info
	for _, kind := range []checkpoint.Kind{checkpoint.Opened, checkpoint.Waiting, checkpoint.Done, checkpoint.Waiting, checkpoint.Noted} {
		for !time.Now().After(info.Updated.Add(time.Millisecond)) { // which has whole ones
			runtime.Gosched()
		}
		var err error
		if head, err = s.Append(ctx, l, head, []checkpoint.Entry{{Kind: kind}}); err != nil {
			t.Fatal(err)
		}
		if info, err = s.Stat(ctx, l.Run); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	if found := verified(t, s); len(found) > 0 {
		t.Fatalf("Verify finds %q before anything was done", found)
	}
	key := badgerstore.RowKey(badgerstore.NumberOf(t, s, l.Run))
	rows := versions(t, s, key)
	if err := s.Put(ctx, key, rows[len(rows)-3]); err != nil { // it ran in between
		t.Fatal(err)
	}
	if got, err := s.Stat(ctx, l.Run); err != nil || got.Status != info.Status || !got.Updated.Before(info.Updated) {
		t.Fatalf("Stat = %+v, %v, want an earlier %+v", got, err, info)
	}
	if found := verified(t, s); len(found) != 1 {
		t.Errorf("Verify finds %q, want one thing", found)
	}
}

// rests makes a run with an append of each of these kinds, and returns what is known of it.
func rests(t *testing.T, s *badgerstore.Store, run string, kinds []checkpoint.Kind) checkpoint.Info {
	t.Helper()
	ctx := t.Context()
	l, err := s.Acquire(ctx, run, "owner")
	var head checkpoint.Head
	for _, kind := range kinds {
		if err == nil {
			head, err = s.Append(ctx, l, head, []checkpoint.Entry{{Kind: kind}})
		}
	}
	err = errors.Join(err, s.Release(ctx, l))
	info, statErr := s.Stat(ctx, run)
	if err := errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	return info
}
