package badgerstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	base := []byte(fmt.Sprintf("{\"text\":%q}", strings.Repeat("x", 10<<20)))
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
	if one-empty > len(base)+8<<10 || (all-one)/999 > 1<<10 {
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

// More runs than one transaction can make are refused, and nothing is left of them.
func TestForkstoreTooMany(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	var runs []string
	for i := range 4000 {
		runs = append(runs, fmt.Sprintf("run-%d", i))
	}
	err := s.Fork(t.Context(), forkstoreFork(forkstoreBase(1), 0, runs...))
	if want := checkpoint.ErrTooLarge; !errors.Is(err, want) {
		t.Errorf("Fork = %v, want %v", err, want)
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
	if err := s.Fork(t.Context(), forkstoreFork(forkstoreBase(1), 0, runs[:800]...)); err != nil {
		t.Errorf("Fork of fewer = %v", err)
	}
	forkstoreAudit(t, s)
}
