package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// patient is the context of a call that need not return before it is done.
func patient(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

// byCaller counts the commits of s that were made on the goroutine of who appends, and those that
// were not.
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
			if head, err = c.store.Append(patient(t), l, head, oneEntry); err != nil {
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

// While one commits himself others wait for the committer, which groups them. Behind a group the
// next append goes to it as well, since more may be coming, and then who is alone commits himself
// again.
func TestAppendsBesideALoneOneAreGrouped(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := openUnsynced(t, t.TempDir())
	leases := acquire(t, s, runs)
	began, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	lone, grouped := byCaller(s)
	s.CommitAnywhereWith(func(next func() error) error {
		first.Do(func() {
			close(began)
			<-goOn
		})
		return next()
	})
	var all sync.WaitGroup
	heads := make([]checkpoint.Head, runs)
	for i, l := range leases {
		all.Go(func() {
			var err error
			if heads[i], err = s.Append(patient(t), l, checkpoint.Head{}, oneEntry); err != nil {
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
	if lone.Load() != 1 || grouped.Load() != 1 {
		t.Errorf("an append, and %d that came meanwhile, took %d commits of a caller and %d of the committer, want 1 and 1", runs-1, lone.Load(), grouped.Load())
	}
	for i := range 2 {
		var err error
		if heads[0], err = s.Append(patient(t), leases[0], heads[0], oneEntry); err != nil {
			t.Fatal(err)
		}
		if lone.Load() != 1+int64(i) || grouped.Load() != 2 {
			t.Errorf("append %d behind a group: %d commits of a caller and %d of the committer, want %d and 2", i+1, lone.Load(), grouped.Load(), 1+i)
		}
	}
}

// A lone append for which there is no room leaves all as it was.
func TestLoneAppendWithoutRoom(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	lone, _ := byCaller(s)
	l := acquire(t, s, 1)[0]
	head, err := s.Append(patient(t), l, checkpoint.Head{}, oneEntry)
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
	if _, err := s.Append(patient(t), l, head, oneEntry); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("an append without room = %v, want ErrFull", err)
	}
	s.FreeWith(free) // it is asked again
	if head, err = s.Append(patient(t), l, head, oneEntry); err != nil {
		t.Fatal(err)
	}
	wantHead(t, s, head)
	if lone.Load() != 2 {
		t.Errorf("%d appends were committed by their caller, want 2", lone.Load())
	}
}

// A lone append whose head is another one by the time at which it is committed is refused.
func TestLoneAppendToAHeadThatWasLeft(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	const word = "too late"
	cipher := &waitingCipher{Cipher: o.Cipher, word: word, began: make(chan struct{}), goOn: make(chan struct{})}
	o.Cipher = cipher
	s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), o)
	s = opened(t, s, err)
	lone, grouped := byCaller(s)
	l := acquire(t, s, 1)[0]
	entry := oneEntry[0]
	entry.Data = []byte(`"` + word + `"`)
	refused := make(chan error)
	go func() { // received below
		refused <- second(s.Append(patient(t), l, checkpoint.Head{}, []checkpoint.Entry{entry}))
	}()
	<-cipher.began // it has found the head where it should be
	head, err := s.Append(patient(t), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	close(cipher.goOn)
	if err := <-refused; !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("an append to the head before = %v, want ErrConflict", err)
	}
	if head, err = s.Append(patient(t), l, head, oneEntry); err != nil {
		t.Fatal(err)
	}
	wantHead(t, s, head)
	if lone.Load() != 2 || grouped.Load() != 0 {
		t.Errorf("%d appends were committed by their caller and %d were not, want 2 and none", lone.Load(), grouped.Load())
	}
}

// Who has a deadline does not commit himself: from a database that hangs he returns in time.
func TestWhoHasADeadlineDoesNotCommitHimself(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	began, goOn := make(chan struct{}), make(chan struct{})
	s.CommitAnywhereWith(func(next func() error) error {
		close(began)
		<-goOn
		return next()
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() { failed <- second(s.Append(ctx, l, checkpoint.Head{}, oneEntry)) }() // received below
	<-began
	cancel()
	if err := <-failed; !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("an append that was given up = %v, want ErrCommitUnknown and Canceled", err)
	}
	close(goOn)
}

// If the database fails or panics in a commit nobody knows what it has done: the store stops,
// whoever committed.
func TestLoneCommitThatFailsStopsTheStore(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	for name, fail := range map[string]func() error{
		"fails":  func() error { return broken },
		"panics": func() error { panic(broken) },
	} {
		s := openUnsynced(t, t.TempDir())
		l := acquire(t, s, 1)[0]
		head, err := s.Append(patient(t), l, checkpoint.Head{}, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		s.CommitAnywhereWith(func(func() error) error { return fail() })
		if _, err := s.Append(patient(t), l, head, oneEntry); !errors.Is(err, checkpoint.ErrCommitUnknown) || !strings.Contains(err.Error(), "broken disk") {
			t.Errorf("%s: Append = %v, want ErrCommitUnknown and the cause", name, err)
		}
		if _, err := s.Append(patient(t), l, head, oneEntry); !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s: the next Append = %v, want ErrClosed", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
	}
}

// Who appends alone leaves it to the committer while as much waits to become tables as may, since a
// commit then waits for one that may never be written: also behind a process that was killed with
// that.
func TestNobodyCommitsHimselfBehindFullMemory(t *testing.T) {
	t.Parallel()
	for logs, alone := range map[int]int64{2: 1, 3: 0} {
		dir := t.TempDir()
		s := openUnsynced(t, dir)
		l := acquire(t, s, 1)[0]
		var head checkpoint.Head
		for range 16 {
			var err error
			if head, err = s.Append(patient(t), l, head, oneEntry); err != nil {
				t.Fatal(err)
			}
		}
		dir = copyDir(t, dir)
		log := func(n int) string { return filepath.Join(dir, "db", fmt.Sprintf("%05d.mem", n)) }
		for n := 1; n < logs; n++ {
			badgerstore.SplitLog(t, log(n), log(n+1))
		}
		s = openUnsynced(t, dir)
		lone, grouped := byCaller(s)
		l = acquire(t, s, 1)[0]
		if _, err := s.Append(patient(t), l, head, oneEntry); err != nil {
			t.Fatal(err)
		}
		if lone.Load() != alone || lone.Load()+grouped.Load() != 1 {
			t.Errorf("behind %d logs %d appends were committed by their caller and %d were not, want %d of 1", logs, lone.Load(), grouped.Load(), alone)
		}
	}
}

// An ending is a context that has ended once it is said so. Who waits for it already is not woken.
type ending struct {
	context.Context
	ended atomic.Bool
}

func (c *ending) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// An append whose context has ended behind its last piece is not made, also where its caller could
// commit it himself and goes on without it.
func TestAnAppendThatHasEndedBehindItsPieces(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	leases := acquire(t, s, 2)
	large := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(700<<10))}}
	commits, endAt := 0, 0
	ctx := &ending{Context: patient(t)}
	s.CommitAnywhereWith(func(next func() error) error {
		if commits++; commits == endAt {
			defer ctx.ended.Store(true)
		}
		return next()
	})
	if _, err := s.Append(attendedContext{ctx}, leases[0], checkpoint.Head{}, large); err != nil {
		t.Fatal(err)
	}
	endAt = 2*commits - 1 // of the other run the last piece
	if _, err := s.Append(attendedContext{ctx}, leases[1], checkpoint.Head{}, large); !errors.Is(err, context.Canceled) || errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("Append = %v, want Canceled alone", err)
	}
	if _, err := s.Stat(t.Context(), leases[1].Run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat of the run = %v, want ErrNotFound", err)
	}
}
