package badgerstore_test

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// byCaller counts the commits of s that were made on the goroutine of who appends, and those that were not.
func byCaller(s *badgerstore.Store) (lone, grouped *atomic.Int64) {
	lone, grouped = new(atomic.Int64), new(atomic.Int64)
	s.CommitAnywhereWith(func(next func() error) error {
		if strings.Contains(string(debug.Stack()), ").Append(") {
			lone.Add(1)
		} else {
			grouped.Add(1)
		}
		return next()
	})
	return lone, grouped
}

// Who appends alone to a store that waits for no disk commits himself, without a hand-over.
func TestLoneAppendsAreCommittedByTheirCaller(t *testing.T) {
	t.Parallel()
	const appends = 100
	observed := 0 // by the committer
	for name, c := range map[string]struct {
		store *badgerstore.Store
		lone  int64
	}{
		"unsynced": {openUnsynced(t, t.TempDir()), appends},
		"synced":   {open(t, t.TempDir()), 0},
		"observed": {func() *badgerstore.Store {
			s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{Observe: func(checkpoint.Group) { observed++ }})
			return opened(t, s, err)
		}(), 0},
	} {
		lone, grouped := byCaller(c.store)
		l := acquire(t, c.store, 1)[0]
		var head checkpoint.Head
		var err error
		for range appends {
			if head, err = c.store.Append(t.Context(), l, head, oneEntry); err != nil {
				t.Fatal(err)
			}
		}
		wantHead(t, c.store, head)
		if err := c.store.Close(); err != nil {
			t.Fatal(err)
		}
		if lone.Load() != c.lone || lone.Load()+grouped.Load() != appends {
			t.Errorf("%s: of %d appends %d were committed by their caller and %d were not, want %d", name, appends, lone.Load(), grouped.Load(), c.lone)
		}
	}
	if observed != appends {
		t.Errorf("the observer was told of %d writes, want %d", observed, appends)
	}
}

// While one commits himself others wait for the committer, which groups them, and is then the next.
func TestAppendsBesideALoneOneAreGrouped(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := openUnsynced(t, t.TempDir())
	leases := acquire(t, s, runs)
	began, goOn := make(chan struct{}), make(chan struct{})
	var commits atomic.Int64
	s.CommitAnywhereWith(func(next func() error) error {
		if commits.Add(1) == 1 {
			close(began)
			<-goOn
		}
		return next()
	})
	var all sync.WaitGroup
	for i, l := range leases {
		all.Go(func() {
			if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			<-began
		}
	}
	for !s.Claimed() { // the committer has one
		runtime.Gosched()
	}
	forkstoreQueued(s, runs-2)
	close(goOn)
	all.Wait()
	if n := commits.Load(); n != 2 {
		t.Errorf("an append, and %d that came meanwhile, took %d commits, want 2", runs-1, n)
	}
}

// A lone append that is refused, or for which there is no room, leaves all as it was.
func TestLoneAppendsThatFail(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	lone, _ := byCaller(s)
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	var full atomic.Bool
	full.Store(true)
	free := func() (int64, error) {
		if full.Swap(false) {
			return 0, nil
		}
		return 1 << 40, nil
	}
	s.FreeWith(free)
	if _, err := s.Append(t.Context(), l, head, oneEntry); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("an append without room = %v, want ErrFull", err)
	}
	s.FreeWith(free) // it is asked again
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("an append to another head = %v, want ErrConflict", err)
	}
	if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
		t.Fatal(err)
	}
	wantHead(t, s, head)
	if lone.Load() != 2 {
		t.Errorf("%d appends were committed by their caller, want 2", lone.Load())
	}
}

// If the database fails or panics in a commit nobody knows what it has done: the store stops, whoever committed.
func TestLoneCommitThatFailsStopsTheStore(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	for name, fail := range map[string]func() error{
		"fails":  func() error { return broken },
		"panics": func() error { panic(broken) },
	} {
		s := openUnsynced(t, t.TempDir())
		l := acquire(t, s, 1)[0]
		head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		s.CommitAnywhereWith(func(func() error) error { return fail() })
		func() {
			defer func() {
				if p := recover(); (p != nil) != (name == "panics") {
					t.Errorf("%s: recovered %v", name, p)
				}
			}()
			if _, err := s.Append(t.Context(), l, head, oneEntry); !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, broken) {
				t.Errorf("%s: Append = %v, want ErrCommitUnknown and the cause", name, err)
			}
		}()
		if _, err := s.Append(t.Context(), l, head, oneEntry); !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: the next Append = %v, want ErrClosed", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
	}
}
