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

// A forkstoreGate stops the next write of a store when it is armed.
type forkstoreGate struct {
	armed       atomic.Bool
	began, goOn chan struct{}
}

// forkstoreGated returns the gate of a store in which nothing was written yet.
func forkstoreGated(s *badgerstore.Store) *forkstoreGate {
	g := &forkstoreGate{began: make(chan struct{}), goOn: make(chan struct{})}
	s.CommitWith(func(next func() error) error {
		if g.armed.CompareAndSwap(true, false) {
			g.began <- struct{}{}
			<-g.goOn
		}
		return next()
	})
	return g
}

// stop begins a call and returns when it is being written. release lets it go on.
func (g *forkstoreGate) stop(call func() error) (err <-chan error, release func()) {
	done := make(chan error, 1)
	g.armed.Store(true)
	go func() { done <- call() }() // who is given the channel waits for it
	<-g.began
	return done, func() { g.goOn <- struct{}{} }
}

func forkstoreQueued(s *badgerstore.Store, n int) {
	for s.Queued() < n {
		runtime.Gosched()
	}
}

// The last run of a base is deleted in the transaction in which a fork is to refer to it, and the
// other way round: the fork has the base, and nothing is left of it when the fork is gone too.
func TestForkstoreLastDeletionBesideFork(t *testing.T) {
	t.Parallel()
	for name, base := range map[string][]byte{"small": []byte("{}"), "large": forkstoreBase(1)} {
		for _, deleteFirst := range []bool{true, false} {
			s := openUnsynced(t, t.TempDir())
			gate := forkstoreGated(s)
			if err := s.Fork(t.Context(), forkstoreFork(base, 10, "last")); err != nil {
				t.Fatal(err)
			}
			calls := []func() error{
				func() error { return s.Delete(t.Context(), "last") },
				func() error { return s.Fork(t.Context(), forkstoreFork(base, 10, "fork")) },
			}
			if !deleteFirst {
				calls[0], calls[1] = calls[1], calls[0]
			}
			stopped, release := gate.stop(func() error { return forkstoreGrow(t.Context(), s, "bystander", 1) })
			errs := make(chan error, 2)
			for i, call := range calls {
				go func() { errs <- call() }() // waited for below
				forkstoreQueued(s, i+1)
			}
			release()
			if err := errors.Join(<-errs, <-errs, <-stopped); err != nil {
				t.Fatalf("%s base, deleted first: %v: %v", name, deleteFirst, err)
			}
			if _, err := s.Base(t.Context(), "fork", checkpoint.BaseDigest(base)); err != nil {
				t.Errorf("%s base, deleted first: %v: Base = %v", name, deleteFirst, err)
			}
			forkstoreAudit(t, s)
			if err := s.Delete(t.Context(), "fork"); err != nil {
				t.Fatal(err)
			}
			forkstoreAudit(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A toldContext tells when somebody waits for its end.
type toldContext struct {
	context.Context
	waits func()
}

func (c toldContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

// A Trim that waits for another one of the same lease is told that the head has moved: what it was
// to drop up to is gone, and nothing is damaged.
func TestForkstoreTrimBehindATrim(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	gate := forkstoreGated(s)
	if err := forkstoreGrow(t.Context(), s, "run", 15); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	trim := func(ctx context.Context, first uint64) error {
		data := fmt.Appendf(nil, `{"first":%d,"base":%q}`, first, checkpoint.BaseDigest([]byte("{}")))
		return second(s.Trim(ctx, l, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, []byte("{}")))
	}
	won, release := gate.stop(func() error { return trim(t.Context(), 25) })
	waits, lost := make(chan struct{}), make(chan error, 1)
	go func() { // received below
		lost <- trim(toldContext{t.Context(), sync.OnceFunc(func() { close(waits) })}, 5)
	}()
	<-waits // for its turn
	release()
	if err := <-won; err != nil {
		t.Fatal(err)
	}
	if err := <-lost; !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("the Trim that waited = %v, want ErrConflict", err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	forkstoreAudit(t, s)
}

// A Fork, and a Trim, whose caller gives up while they are written are unknown to him; who reads
// afterwards waits and finds them done, and nobody holds the new runs.
func TestForkstoreGivenUpWhileWritten(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	gate := forkstoreGated(s)
	if err := forkstoreGrow(t.Context(), s, "parent", 4); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"Fork": func(ctx context.Context) error { return s.Fork(ctx, forkstoreFork([]byte("{}"), 10, "a", "b")) },
		"Trim": func(ctx context.Context) error { return forkstoreTrim(ctx, s, "parent", 4, []byte("{}")) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		given, release := gate.stop(func() error { return call(ctx) })
		cancel()
		if err := <-given; !errors.Is(err, checkpoint.ErrCommitUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s that is given up = %v", name, err)
		}
		release()
	}
	for _, run := range []string{"a", "b"} {
		if info, err := s.Stat(t.Context(), run); err != nil || info.Owner != "" || info.Head.Seq != 2 {
			t.Errorf("Stat(%q) = %+v, %v", run, info, err)
		}
		if err := forkstoreGrow(t.Context(), s, run, 1); err != nil {
			t.Error(err)
		}
	}
	if info, err := s.Stat(t.Context(), "parent"); err != nil || info.First != 4 {
		t.Errorf("Stat of what was trimmed = %+v, %v", info, err)
	}
	for _, run := range []string{"a", "b", "parent"} {
		if err := s.Delete(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
	if keys := keysOf(s); len(keys) > 0 {
		t.Errorf("%d keys are left, %q the first", len(keys), keys[0])
	}
}
