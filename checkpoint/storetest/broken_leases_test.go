package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// leases remembers the last lease of each run.
type leases struct {
	mu  sync.Mutex
	all map[string]checkpoint.Lease
}

func newLeases() *leases { return &leases{all: make(map[string]checkpoint.Lease)} }

func (m *leases) set(l checkpoint.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[l.Run] = l
}

func (m *leases) of(run string) checkpoint.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[run]
}

// anyLease appends under whatever lease is held.
type anyLease struct {
	sound
	last *leases
}

func (s *anyLease) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if err == nil {
		s.last.set(l)
	}
	return l, err
}

func (s *anyLease) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if errors.Is(err, checkpoint.ErrFenced) {
		return s.Faulty.Append(ctx, s.last.of(l.Run), after, entries)
	}
	return head, err
}

// anyOwner gives a lease that is held to whoever asks.
type anyOwner struct {
	sound
	last *leases
}

func (s *anyOwner) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if errors.Is(err, checkpoint.ErrBusy) {
		return s.last.of(run), nil
	}
	if err == nil {
		s.last.set(l)
	}
	return l, err
}

// oneEpoch gives leases of epoch 1 alone.
type oneEpoch struct {
	sound
	last *leases
}

func (s *oneEpoch) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if err == nil {
		s.last.set(l)
		l.Epoch = 1
	}
	return l, err
}

// real is the lease that is meant.
func (s *oneEpoch) real(l checkpoint.Lease) checkpoint.Lease {
	if last := s.last.of(l.Run); last.Owner == l.Owner {
		return last
	}
	return l
}

func (s *oneEpoch) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	return s.Faulty.Append(ctx, s.real(l), after, entries)
}

func (s *oneEpoch) Release(ctx context.Context, l checkpoint.Lease) error {
	return s.Faulty.Release(ctx, s.real(l))
}

// givesWay takes the lease away from who only amends.
type givesWay struct{ sound }

func (s givesWay) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if info, err := s.Faulty.Stat(ctx, run); err == nil && checkpoint.Amends(info.Owner) {
		_ = s.Faulty.Release(ctx, checkpoint.Lease{Run: run, Epoch: info.Epoch, Owner: info.Owner})
	}
	return s.Faulty.Acquire(ctx, run, owner)
}
