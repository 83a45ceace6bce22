package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// soon is how long a store that looks first and then does what it was asked for waits in between.
// The tests of them are in bubbles, where whatever is called meanwhile has returned by then.
func soon() { <-time.After(time.Millisecond) }

// latePost looks whether there is such a run, and then keeps the message.
type latePost struct {
	sound
	mu   *sync.Mutex
	left map[string][]checkpoint.Post
}

func (s latePost) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if _, err := s.Stat(ctx, run); err != nil {
		return err
	}
	soon()
	err := s.Faulty.Post(ctx, run, p)
	if !errors.Is(err, checkpoint.ErrNotFound) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[run] = append(s.left[run], p)
	return nil
}

func (s latePost) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(all, s.left[run]...), err
}

// lateTelling tells who watches of a message when that has been posted already.
type lateTelling struct{ sound }

func (s lateTelling) Watch(run string) (<-chan struct{}, func()) {
	posted, stop := s.Faulty.Watch(run)
	late, ended := make(chan struct{}, 16), make(chan struct{})
	go func() { // stop ends it
		var due <-chan time.Time
		for {
			select {
			case <-ended:
				return
			case <-posted:
				due = time.After(time.Millisecond) // as soon does, which can't be stopped
			case <-due:
				late <- struct{}{}
			}
		}
	}()
	return late, sync.OnceFunc(func() { stop(); close(ended) })
}

// lateShare looks whether it has the base of a fork, and then makes the fork.
type lateShare struct{ sound }

func (s lateShare) Fork(ctx context.Context, f checkpoint.Fork) error {
	digest := checkpoint.BaseDigest(f.Base)
	has := func() bool {
		all, _ := s.Faulty.List(ctx, checkpoint.Filter{Limit: 1 << 20})
		return slices.ContainsFunc(all, func(i checkpoint.Info) bool { return i.Base == digest })
	}
	shared := has()
	if shared {
		soon()
	}
	lost := shared && !has()
	err := s.Faulty.Fork(ctx, f)
	if err == nil && lost {
		s.Spoil(f.Runs[0].Run, checkpoint.PartBase)
	}
	return err
}

// watchesOnlyRuns has nobody watch a run that is not there.
type watchesOnlyRuns struct{ sound }

func (s watchesOnlyRuns) Watch(run string) (<-chan struct{}, func()) {
	if _, err := s.Faulty.Stat(context.Background(), run); err != nil {
		return make(chan struct{}), func() {}
	}
	return s.Faulty.Watch(run)
}

// lateDelete looks whether somebody holds the run, and then deletes it.
type lateDelete struct {
	sound
	last *leases
}

func (s lateDelete) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if err == nil {
		s.last.set(l)
	}
	return l, err
}

func (s lateDelete) Delete(ctx context.Context, run string) error {
	if info, err := s.Stat(ctx, run); err == nil && info.Owner == "" {
		soon()
		_ = s.Release(ctx, s.last.of(run))
	}
	return s.Faulty.Delete(ctx, run)
}

// lateFork looks whether there is a run of one of the ids, and then makes those that there are not.
type lateFork struct{ sound }

func (s lateFork) Fork(ctx context.Context, f checkpoint.Fork) error {
	there := slices.ContainsFunc(f.Runs, func(r checkpoint.ForkedRun) bool {
		_, err := s.Stat(ctx, r.Run)
		return err == nil
	})
	soon()
	err := s.Faulty.Fork(ctx, f)
	if errors.Is(err, checkpoint.ErrExists) && !there {
		return nil
	}
	return err
}

// lateGraph looks whether another graph is kept, and then keeps what none is kept in the place of.
type lateGraph struct{ sound }

func (s lateGraph) PutGraph(ctx context.Context, digest string, graph []byte) error {
	_, before := s.Graph(ctx, digest)
	soon()
	err := s.Faulty.PutGraph(ctx, digest, graph)
	if errors.Is(err, checkpoint.ErrConflict) && before != nil {
		return nil
	}
	return err
}
