package badgerstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// forkstoreStored returns how many bytes of keys and values the store holds.
func forkstoreStored(s *badgerstore.Store) (bytes int) {
	txn := s.Badger().NewTransactionAt(^uint64(0), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		bytes += len(it.Item().Key()) + int(it.Item().ValueSize())
	}
	return bytes
}

// A thousand forks of one machine of 10 MiB, made at once and one by one, take what they say
// themselves and the machine once; deleted by many in any order, the last takes the machine along.
func TestForkstoreThousandForks(t *testing.T) {
	t.Parallel()
	s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{MemTableSize: 16 << 20})
	opened(t, s, err)
	if err := forkstoreGrow(t.Context(), s, "parent", 1); err != nil {
		t.Fatal(err)
	}
	base := []byte(fmt.Sprintf("{\"text\":%q}", noise(10<<20)))
	empty := forkstoreStored(s)
	runs := []string{"parent"}
	for i := range 1000 {
		runs = append(runs, fmt.Sprintf("run-%04d", i))
	}
	if err := s.Fork(t.Context(), forkstoreFork(base, 20, runs[1])); err != nil {
		t.Fatal(err)
	}
	one := forkstoreStored(s)
	if err := s.Fork(t.Context(), forkstoreFork(base, 20, runs[2:900]...)); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs[900:] {
		if err := s.Fork(t.Context(), forkstoreFork(base, 20, run)); err != nil {
			t.Fatal(err)
		}
	}
	all := forkstoreStored(s)
	t.Logf("the base and a fork: %d bytes; each further fork: %d bytes", one-empty, (all-one)/999)
	if one-empty > len(base)+16<<10 || (all-one)/999 > 1<<10 {
		t.Errorf("the base and a fork take %d bytes, each further fork %d", one-empty, (all-one)/999)
	}
	forkstoreAudit(t, s)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	forkstoreDeleteAll(t, s, runs[:990])
	forkstoreAudit(t, s)
	for _, run := range runs[990:] {
		if err := s.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		forkstoreAudit(t, s)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}

// forkstoreDeleteAll deletes the runs, many at once.
func forkstoreDeleteAll(t *testing.T, s *badgerstore.Store, runs []string) {
	t.Helper()
	queue := make(chan string, len(runs))
	for _, run := range runs {
		queue <- run
	}
	close(queue)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() { // waited for below
			for run := range queue {
				if err := s.Delete(t.Context(), run); err != nil {
					t.Errorf("Delete(%q) = %v", run, err)
				}
			}
		})
	}
	all.Wait()
}

// Runs that refer to a base and a shelf are deleted in every order: with the last of each the
// machine or the shelf is gone, and nothing is left of any of them.
func TestForkstoreShelvesInEveryOrder(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	base, first, second := forkstoreBase(1), forkstoreBase(2), []byte("{}")
	runs := []string{"a", "b", "c", "d"}
	for order := range 24 {
		for _, f := range []checkpoint.Fork{
			forkstoreShelved(base, first, 10, "a"), forkstoreShelved(base, second, 10, "b"),
			forkstoreShelved(first, base, 10, "c"), forkstoreShelved(second, second, 10, "d"),
		} {
			if err := s.Fork(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		left := slices.Clone(runs)
		for n, k := order, len(left); k > 0; n, k = n/k, k-1 {
			run := left[n%k]
			left = slices.Delete(left, n%k, n%k+1)
			if err := s.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			forkstoreAudit(t, s)
		}
		if keys := keysOf(s); len(keys) > 0 {
			t.Fatalf("order %d: %d keys are left, %q the first", order, len(keys), keys[0])
		}
	}
}

// More runs than one transaction can make are refused before anything is written, also bases and
// large logs; the error says how many it can, and so many are made.
func TestForkstoreTooMany(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	groups := 0
	s.CommitWith(func(next func() error) error { groups++; return next() }) // while a call waits
	var runs []string
	for i := range 4000 {
		runs = append(runs, fmt.Sprintf("run-%04d", i))
	}
	for _, f := range []struct {
		base, shelf []byte
		size        int
	}{{forkstoreBase(1), nil, 0}, {forkstoreBase(1), []byte("{}"), 0}, {forkstoreBase(1), forkstoreBase(2), 500}} {
		before := groups
		err := s.Fork(t.Context(), forkstoreShelved(f.base, f.shelf, f.size, runs...))
		var n, fit int
		if !errors.Is(err, checkpoint.ErrTooLarge) {
			t.Fatalf("Fork = %v, want %v", err, checkpoint.ErrTooLarge)
		}
		text := err.Error()[strings.LastIndex(err.Error(), "large: ")+len("large: "):]
		if _, err := fmt.Sscanf(text, "%d forks at once: one transaction holds about %d", &n, &fit); err != nil || n != 4000 {
			t.Errorf("Fork = %q, which says no number: %v", text, err)
		}
		if keys := keysOf(s); len(keys) > 0 || groups != before {
			t.Errorf("%d keys are left, and %d groups were written", len(keys), groups-before)
		}
		if err := s.Fork(t.Context(), forkstoreShelved(f.base, f.shelf, f.size, runs[:fit]...)); err != nil {
			t.Errorf("Fork of %d = %v", fit, err)
		}
		forkstoreDeleteAll(t, s, runs[:fit])
		forkstoreAudit(t, s)
	}
}

// With Large Options ten thousand runs are made at once.
func TestForkstoreTenThousandAtOnce(t *testing.T) {
	t.Parallel()
	s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Large())
	opened(t, s, err)
	f := forkstoreShelved(forkstoreBase(1), forkstoreBase(2), 100, make([]string, 10_000)...)
	for i := range f.Runs {
		f.Runs[i].Run = fmt.Sprintf("01920000-0000-7000-8000-%012d", i)
	}
	if err := s.Fork(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	page, err := s.List(t.Context(), checkpoint.Filter{Limit: 1 << 20})
	if err != nil || len(page) != 10_000 {
		t.Errorf("there are %d runs, %v", len(page), err)
	}
}
