package dispatcher_test

import (
	"context"
	"iter"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// A tampered store is a store with a test between itself and its callers.
type tampered struct {
	checkpoint.Store
	// before is told of a call that is to be made. If it returns an error that is the
	// call's, and the store never hears of it. Nil lets all calls through.
	before func(ctx context.Context, c call) error
	// after is told what came of a call and returns what its caller is told. Nil is told
	// nothing.
	after func(c call, err error) error

	mu    sync.Mutex
	calls map[string]int
}

// A call is one call of a method of a store.
type call struct {
	method  string
	n       int // of this method, counted from 1
	entries []checkpoint.Entry
}

func (s *tampered) enter(ctx context.Context, method string, entries []checkpoint.Entry) (call, error) {
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[method]++
	c := call{method, s.calls[method], entries}
	s.mu.Unlock()
	if s.before == nil {
		return c, nil
	}
	return c, s.before(ctx, c)
}

func (s *tampered) leave(c call, err error) error {
	if s.after == nil {
		return err
	}
	return s.after(c, err)
}

func (s *tampered) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	c, err := s.enter(ctx, "Acquire", nil)
	if err != nil {
		return checkpoint.Lease{}, err
	}
	l, err := s.Store.Acquire(ctx, run, owner)
	return l, s.leave(c, err)
}

func (s *tampered) Release(ctx context.Context, l checkpoint.Lease) error {
	c, err := s.enter(ctx, "Release", nil)
	if err != nil {
		return err
	}
	return s.leave(c, s.Store.Release(ctx, l))
}

func (s *tampered) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	c, err := s.enter(ctx, "Append", entries)
	if err != nil {
		return checkpoint.Head{}, err
	}
	h, err := s.Store.Append(ctx, l, after, entries)
	if err = s.leave(c, err); err != nil {
		return checkpoint.Head{}, err
	}
	return h, nil
}

func (s *tampered) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	c, err := s.enter(ctx, "Stat", nil)
	if err != nil {
		return checkpoint.Info{}, err
	}
	i, err := s.Store.Stat(ctx, run)
	return i, s.leave(c, err)
}

func (s *tampered) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		if _, err := s.enter(ctx, "Read", nil); err != nil {
			yield(checkpoint.Entry{}, err)
			return
		}
		s.Store.Read(ctx, run, from, to)(yield)
	}
}

func (s *tampered) Post(ctx context.Context, run string, p checkpoint.Post) error {
	c, err := s.enter(ctx, "Post", nil)
	if err != nil {
		return err
	}
	return s.leave(c, s.Store.Post(ctx, run, p))
}

func (s *tampered) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	c, err := s.enter(ctx, "Posts", nil)
	if err != nil {
		return nil, err
	}
	posts, err := s.Store.Posts(ctx, run)
	return posts, s.leave(c, err)
}

func (s *tampered) PutSnapshot(ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot) error {
	c, err := s.enter(ctx, "PutSnapshot", nil)
	if err != nil {
		return err
	}
	return s.leave(c, s.Store.PutSnapshot(ctx, l, snap))
}

func (s *tampered) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	c, err := s.enter(ctx, "Snapshot", nil)
	if err != nil {
		return checkpoint.Snapshot{}, err
	}
	snap, err := s.Store.Snapshot(ctx, run, upTo)
	return snap, s.leave(c, err)
}

func (s *tampered) Trim(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, e checkpoint.Entry, bases ...[]byte) (checkpoint.Head, error) {
	c, err := s.enter(ctx, "Trim", nil)
	if err != nil {
		return after, err
	}
	head, err := s.Store.Trim(ctx, l, after, e, bases...)
	return head, s.leave(c, err)
}

func (s *tampered) PutGraph(ctx context.Context, digest string, graph []byte) error {
	c, err := s.enter(ctx, "PutGraph", nil)
	if err != nil {
		return err
	}
	return s.leave(c, s.Store.PutGraph(ctx, digest, graph))
}

// Watch passes on what the store tells, if it can.
func (s *tampered) Watch(run string) (posted <-chan struct{}, stop func()) {
	_, _ = s.enter(context.Background(), "Watch", nil)
	if w, ok := s.Store.(checkpoint.Watcher); ok {
		return w.Watch(run)
	}
	return nil, func() {}
}

// fails makes call n of method return err, and the store never hear of it.
func fails(method string, n int, err error) func(context.Context, call) error {
	return func(_ context.Context, c call) error {
		if c.method == method && c.n == n {
			return err
		}
		return nil
	}
}

// hangs makes call n of method wait for free, whatever its context says, before the store
// hears of it.
func hangs(method string, n int, free <-chan struct{}) func(context.Context, call) error {
	return func(_ context.Context, c call) error {
		if c.method == method && c.n == n {
			<-free
		}
		return nil
	}
}
