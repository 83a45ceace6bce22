package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

var oneEntry = []checkpoint.Entry{{Kind: checkpoint.Done, Path: "node"}}

// acquire returns the leases of that many runs.
func acquire(t *testing.T, s *badgerstore.Store, runs int) []checkpoint.Lease {
	t.Helper()
	leases := make([]checkpoint.Lease, runs)
	for i := range leases {
		var err error
		if leases[i], err = s.Acquire(t.Context(), fmt.Sprintf("run-%d", i), "owner"); err != nil {
			t.Fatal(err)
		}
	}
	return leases
}

// The appends of runs that work at once share their writes, and each is written once. What waits
// when a write has ended goes into the next one, all of it.
func TestAppendsAreGrouped(t *testing.T) {
	t.Parallel()
	const runs, each = 100, 30
	var groups []int // appends in each
	var commits atomic.Int64
	o := small
	o.Observe = func(g checkpoint.Group) { // by one goroutine, which Close waits for
		groups = append(groups, g.Appends)
		if g.Err != nil || g.Bytes <= 0 || g.Duration <= 0 {
			t.Errorf("group %+v", g)
		}
		panic("the panic of an observer is its own affair")
	}
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	began, let := make(chan struct{}), make(chan struct{})
	s.CommitWith(func(next func() error) error {
		if commits.Add(1) == 1 {
			close(began)
			<-let
		}
		return next()
	})
	var all sync.WaitGroup
	for i, l := range acquire(t, s, runs) {
		all.Go(func() {
			var head checkpoint.Head
			for range each {
				var err error
				if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
					t.Error(err)
					return
				}
			}
		})
		if i == 0 {
			<-began // with one append
		}
	}
	for s.Queued() < runs-1 {
		runtime.Gosched()
	}
	close(let)
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	appends := 0
	for _, n := range groups {
		appends += n
	}
	if int64(len(groups)) != commits.Load() || appends != runs*each {
		t.Errorf("%d groups in %d commits with %d appends, want %d appends",
			len(groups), commits.Load(), appends, runs*each)
	}
	if groups[0] != 1 || groups[1] < runs-1 {
		t.Errorf("one append, and the %d that waited meanwhile, took groups of %d …", runs-1, groups[:2])
	}
}

// Small snapshots that wait share a group, so that no run waits at its end for the snapshots of
// others.
func TestSnapshotsAreGrouped(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := open(t, t.TempDir())
	leases := acquire(t, s, runs+1)
	heads := make([]checkpoint.Head, runs)
	for i := range heads {
		var err error
		if heads[i], err = s.Append(t.Context(), leases[i], checkpoint.Head{}, oneEntry); err != nil {
			t.Fatal(err)
		}
	}
	commits := 0
	began, let := make(chan struct{}), make(chan struct{})
	s.CommitWith(func(next func() error) error {
		if commits++; commits == 1 {
			close(began)
			<-let
		}
		return next()
	})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := s.Append(t.Context(), leases[runs], checkpoint.Head{}, oneEntry); err != nil {
			t.Error(err)
		}
	})
	<-began
	for i, head := range heads {
		all.Go(func() {
			if err := s.PutSnapshot(t.Context(), leases[i], checkpoint.Snapshot{Head: head, Data: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	for s.QueuedBulk() < runs {
		runtime.Gosched()
	}
	close(let)
	all.Wait()
	if err := s.Close(); err != nil { // the committer has ended
		t.Fatal(err)
	}
	if commits != 2 {
		t.Errorf("an append, and %d snapshots that came meanwhile, took %d commits, want 2", runs, commits)
	}
}

// When a commit fails, the appends in it are unknown, everything later is refused with the
// cause, and what the disk holds is found out by opening the store again.
func TestFailedCommitStopsTheStore(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{false, true} {
		t.Run(fmt.Sprintf("happened=%v", happened), func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			leases := acquire(t, s, 2)
			broken := errors.New("broken disk")
			n := 0
			s.CommitWith(func(next func() error) error {
				if n++; n == 1 {
					return next()
				}
				if happened {
					_ = next()
				}
				return broken
			})
			head, err := s.Append(t.Context(), leases[0], checkpoint.Head{}, oneEntry)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Append(t.Context(), leases[0], head, oneEntry)
			if !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, broken) {
				t.Errorf("Append = %v, want ErrCommitUnknown and the cause", err)
			}
			for name, err := range map[string]error{
				"Append":  second(s.Append(t.Context(), leases[1], checkpoint.Head{}, oneEntry)),
				"Acquire": second(s.Acquire(t.Context(), "another", "owner")),
				"Stat":    second(s.Stat(t.Context(), "run-0")),
				"Release": s.Release(t.Context(), leases[0]),
			} {
				if !errors.Is(err, checkpoint.ErrClosed) || !errors.Is(err, broken) {
					t.Errorf("%s = %v, want ErrClosed and the cause", name, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			want := uint64(1)
			if happened {
				want = 2
			}
			info, err := open(t, dir).Stat(t.Context(), "run-0")
			if err != nil || info.Head.Seq != want {
				t.Errorf("the head is %d, %v, want %d", info.Head.Seq, err, want)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// held makes commits wait: began receives when one begins, which goes on when it can send
// to let.
func held(s *badgerstore.Store) (began chan struct{}, let chan struct{}) {
	began, let = make(chan struct{}), make(chan struct{})
	s.CommitWith(func(next func() error) error {
		began <- struct{}{}
		<-let
		return next()
	})
	return began, let
}

// An append whose context ends while it waits has not happened. One whose context ends while
// it is written is unknown: the call returns at once, and who reads or acquires the run
// afterwards waits until it is known.
func TestContextEndsDuringAppend(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	leases := acquire(t, s, 2)
	began, let := held(s)

	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() { errs <- second(s.Append(ctx, leases[0], checkpoint.Head{}, oneEntry)) }()
	<-began
	waiting, stopWaiting := context.WithCancel(t.Context())
	go func() { errs <- second(s.Append(waiting, leases[1], checkpoint.Head{}, oneEntry)) }()
	for s.Queued() == 0 {
		runtime.Gosched()
	}
	stopWaiting()
	if err := <-errs; !errors.Is(err, context.Canceled) || errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("an append that was waiting = %v, want Canceled alone", err)
	}
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) || !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("an append that was being written = %v, want ErrCommitUnknown", err)
	}
	if err := s.Release(t.Context(), leases[0]); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Stat(short, "run-0"); !errors.Is(err, context.Canceled) {
		t.Errorf("Stat = %v", err)
	}
	infos := make(chan checkpoint.Info)
	go func() {
		info, err := s.Stat(t.Context(), "run-0")
		if err != nil {
			t.Error(err)
		}
		infos <- info
	}()
	acquired := make(chan error)
	go func() { acquired <- second(s.Acquire(t.Context(), "run-0", "next")) }()
	for !s.Awaited() { // by one of them at least
		runtime.Gosched()
	}
	close(let)
	if info := <-infos; info.Head.Seq != 1 {
		t.Errorf("Stat did not wait: the head is %d", info.Head.Seq)
	}
	if err := <-acquired; err != nil {
		t.Error(err)
	}
	if _, err := s.Stat(t.Context(), "run-1"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat of the run that never was = %v", err)
	}
	go func() {
		for range began { // later commits are not held
		}
	}()
	if _, err := s.Append(t.Context(), leases[1], checkpoint.Head{}, oneEntry); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(began)
}

// A store that is closed while many append ends all of them: each is durable, or was never
// begun.
func TestCloseWithAFullQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	const runs = 200
	heads := make([]checkpoint.Head, runs)
	leases := acquire(t, s, runs)
	began, let := held(s)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			for {
				head, err := s.Append(t.Context(), leases[i], heads[i], oneEntry)
				if err != nil {
					if !errors.Is(err, checkpoint.ErrClosed) {
						t.Errorf("Append = %v, want ErrClosed", err)
					}
					return
				}
				heads[i] = head
			}
		})
		if i == 0 {
			<-began // with one append: all others will wait
		}
	}
	for s.Queued() < runs-1 {
		runtime.Gosched()
	}
	go func() { // ends with the channel
		for range began {
		}
	}()
	close(let)
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	closers.Wait()
	all.Wait()
	close(began)
	s = open(t, dir)
	for i, head := range heads {
		info, err := s.Stat(t.Context(), leases[i].Run)
		if head.Seq == 0 && errors.Is(err, checkpoint.ErrNotFound) {
			continue
		}
		if err != nil || info.Head != head {
			t.Errorf("%s is at %d, %v, and was told %d", leases[i].Run, info.Head.Seq, err, head.Seq)
		}
	}
}
