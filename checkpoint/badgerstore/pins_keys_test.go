package badgerstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// tinyBases are so many bases of a few bytes, which no other run has.
func tinyBases(run string, n int) (bases [][]byte) {
	for i := range n {
		bases = append(bases, fmt.Appendf(nil, "{%q:%d}", run, i))
	}
	return bases
}

// Runs with many pins that are deleted at the same moment are not together more than a transaction
// can be, and nobody is told of another one's.
func TestManyPinsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	const runs, pins = 30, 110
	s := openUnsynced(t, t.TempDir())
	gate := forkstoreGated(s)
	for i := range runs {
		run := fmt.Sprint("run-", i)
		if err := forkstoreGrow(t.Context(), s, run, 1); err != nil {
			t.Fatal(err)
		}
		if err := pinned(t.Context(), s, run, tinyBases(run, pins), 0); err != nil {
			t.Fatal(err)
		}
	}
	forkstoreAudit(t, s)
	stopped, release := gate.stop(func() error { return forkstoreGrow(t.Context(), s, "first", 1) })
	errs := make(chan error, runs+1)
	for i := range runs {
		go func() { errs <- s.Delete(t.Context(), fmt.Sprint("run-", i)) }() // received below
	}
	go func() { errs <- forkstoreGrow(t.Context(), s, "another", 1) }() // received below
	forkstoreQueued(s, runs+1)
	release()
	for range runs + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	forkstoreAudit(t, s)
}

// A run with more pins than one transaction can give up is ErrTooLarge and stays as it was, however
// much else is written then; a store that is opened with a larger MemTableSize deletes it.
func TestMorePinsThanATransactionHolds(t *testing.T) {
	t.Parallel()
	const pins, step = 3400, 850
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	bases := tinyBases("run", pins)
	for n := step; n <= pins; n += step {
		if err := pinned(t.Context(), s, "run", bases[:n], n-step); err != nil {
			t.Fatal(err)
		}
	}
	before := forkstoreSummary(t, s)
	for name, err := range map[string]error{
		"Delete": s.Delete(t.Context(), "run"),
		"Trim":   pinned(t.Context(), s, "run", bases[:1], 1),
	} {
		if !errors.Is(err, checkpoint.ErrTooLarge) || !strings.Contains(err.Error(), "MemTableSize") {
			t.Errorf("%s of %d pins = %v, want ErrTooLarge, and what helps", name, pins, err)
		}
	}
	if after := forkstoreSummary(t, s); after != before {
		t.Errorf("there is %q, and there was %q", after, before)
	}
	forkstoreAudit(t, s)
	closes(t, s)
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, badgerstore.Options{})
	opened(t, s, err)
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}

// What the committer adds for bases is counted before, to the key: a call is ErrTooLarge that needs
// one more than a transaction may have, and is made if that is all.
func TestKeysOfBasesAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base   []byte
		damage bool
		call   func(t *testing.T, s *badgerstore.Store, base []byte) error
		keys   int
	}{
		"Delete of the last run of a small base": {base: []byte("{}"), keys: 3 + 2, call: deleteOne},
		"Delete of the last run of a large base": {base: forkstoreBase(1), keys: 3 + 3, call: deleteOne},
		"Trim to a small base that is there":     {base: []byte("{}"), keys: 3 + 1, call: trimOne},
		"Trim to a small base that it heals":     {base: []byte("{}"), damage: true, keys: 3 + 2, call: trimOne},
		"Trim to a large base that it heals":     {base: forkstoreBase(1), damage: true, keys: 3 + 4, call: trimOne},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, limit := range []int{c.keys - 1, c.keys} {
				dir := t.TempDir()
				s := openUnsynced(t, dir)
				if err := forkstoreGrow(t.Context(), s, "trimmed", 4); err != nil {
					t.Fatal(err)
				}
				if err := s.Fork(t.Context(), forkstoreFork(c.base, 10, "deleted")); err != nil {
					t.Fatal(err)
				}
				if key := badgerstore.BaseKey(s, checkpoint.BaseDigest(c.base)); c.damage {
					if len(c.base) > 1<<10 {
						key, _ = pieceOf(t, s, c.base)
					}
					put(t, s, key, []byte("damaged"))
				}
				s.LimitKeys(limit)
				switch err := c.call(t, s, c.base); {
				case limit == c.keys && err != nil:
					t.Errorf("with %d keys it = %v", limit, err)
				case limit < c.keys && !errors.Is(err, checkpoint.ErrTooLarge):
					t.Errorf("with %d keys it = %v, want ErrTooLarge", limit, err)
				}
			}
		})
	}
}

// The bytes of these keys are counted with those of the other ones, as who observes the store is
// told.
func TestBytesOfBasesAreCounted(t *testing.T) {
	t.Parallel()
	const pins = 100
	dir := t.TempDir()
	s := openUnsynced(t, dir)
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	if err := pinned(t.Context(), s, "run", tinyBases("run", pins), 0); err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	most := 0
	o := small
	o.Observe = func(g checkpoint.Group) { most = max(most, g.Bytes) }
	s = openWith(t, dir, o)
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	closes(t, s) // nobody observes any more
	if least := pins * 2 * len(badgerstore.BaseKey(s, checkpoint.BaseDigest(nil))); most < least {
		t.Errorf("a Delete that gives up %d bases is observed to write %d bytes, want %d and more", pins, most, least)
	}
}

func deleteOne(t *testing.T, s *badgerstore.Store, _ []byte) error {
	return s.Delete(t.Context(), "deleted")
}

func trimOne(t *testing.T, s *badgerstore.Store, base []byte) error {
	return forkstoreTrim(t.Context(), s, "trimmed", 4, base)
}
