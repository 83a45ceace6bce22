package badgerstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A page tells of each run what its last append says, however many a run has and whichever runs
// stand beside it.
func TestPageTellsOfLastAppends(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	s.ForgetIdle()
	heads := map[string]checkpoint.Head{}
	for i := range 40 {
		run := fmt.Sprintf("run %d", i)
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		for n := range 1 + i*7%20 {
			entry := checkpoint.Entry{Kind: checkpoint.Done}
			if n == 0 {
				entry.Kind = checkpoint.Opened
			}
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{entry}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if heads[run] = head; i%6 == 5 {
			delete(heads, run)
			if err := s.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 100})
	if err != nil || len(page) != len(heads) {
		t.Fatalf("a page of %d runs, %v, want %d", len(page), err, len(heads))
	}
	for _, info := range page {
		if info.Head != heads[info.Run] {
			t.Errorf("%s stands at %+v, want %+v", info.Run, info.Head, heads[info.Run])
		}
	}
}

// A listing goes on behind a run of which any one value is damaged, and names that run by its id.
func TestListingGoesOnBehindDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	for _, run := range []string{"a", "b", "c"} {
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		var head checkpoint.Head
		for _, kind := range []checkpoint.Kind{checkpoint.Opened, checkpoint.Done, checkpoint.Waiting, checkpoint.Noted} {
			// The logs differ, even if all is written in one millisecond: by their digests a row is
			// known to be another run's.
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: kind, Path: run}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Close()
	flipped := func(key []byte) func(txn *badger.Txn) error {
		return func(txn *badger.Txn) error {
			value := valueOf(t, txn, key)
			value[len(value)-1] ^= 1
			return txn.Set(key, value)
		}
	}
	for name, test := range map[string]struct {
		edit func(txn *badger.Txn) error
		want string
	}{
		"the last append":          {flipped(badgerstore.LogKey(2, 4)), "c [b] a"},
		"the append of its status": {flipped(badgerstore.LogKey(2, 3)), "c [b] a"},
		"the row":                  {flipped(badgerstore.RowKey(2)), "c [b] a"},
		"the row, as that of another run": {func(txn *badger.Txn) error {
			from, to := badgerstore.RowKey(3), badgerstore.RowKey(2)
			return txn.Set(to, badgerstore.Reframe(t, from, to, valueOf(t, txn, from), nil))
		}, "c [b] a"},
		"its number": {flipped(badgerstore.IDKey("b")), "c b a"}, // of which a listing has no need, but to go on behind it
		"the row, and its number": {func(txn *badger.Txn) error {
			return errors.Join(flipped(badgerstore.RowKey(2))(txn), flipped(badgerstore.IDKey("b"))(txn))
		}, "c !"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyDir(t, dir)
			badgerstore.Raw(t, dir, small, test.edit)
			s := open(t, dir)
			for _, limit := range []int{0, 1, 2} {
				var got []string
				for info, err := range checkpoint.Runs(t.Context(), s, checkpoint.Filter{Limit: limit}) {
					var hurt *checkpoint.CorruptError
					switch {
					case err == nil:
						got = append(got, info.Run)
					case !errors.As(err, &hurt) || hurt.Run != info.Run || hurt.Run == "" && !strings.Contains(err.Error(), "number 2"):
						t.Errorf("of run %q: %v", info.Run, err)
					case hurt.Run == "":
						got = append(got, "!")
					default:
						got = append(got, "["+hurt.Run+"]")
					}
				}
				if got := strings.Join(got, " "); got != test.want {
					t.Errorf("in pages of %d: %s, want %s", limit, got, test.want)
				}
			}
		})
	}
}

func valueOf(t testing.TB, txn *badger.Txn, key []byte) []byte {
	t.Helper()
	item, err := txn.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	value, err := item.ValueCopy(nil)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
