// Package lapse is for tests that need a store whose leases have an end.
package lapse

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// Term is how long a lease lasts if Store.Term does not say it.
const Term = 30 * time.Second

// A Store keeps runs in memory, and its leases have an end. [New] makes one.
type Store struct {
	*memory.Faulty
	Term time.Duration // of a lease; zero means Term

	*leases
}

// leases are those that were given, by run.
type leases struct {
	mu  sync.Mutex
	all map[string]checkpoint.Lease
}

// New returns a store over f.
func New(f *memory.Faulty) *Store {
	return &Store{Faulty: f, leases: &leases{all: map[string]checkpoint.Lease{}}}
}

// Over returns a store over f that has the leases of s, as the next process of a durable one would.
func (s *Store) Over(f *memory.Faulty) *Store {
	next := New(f)
	next.Term, next.leases = s.Term, s.leases
	return next
}

// End ends the lease of a run now, by the clock of the store: its owner has slept and does not know
// it.
func (s *Store) End(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.all[run]; ok {
		l.Until = time.Now()
		s.all[run] = l
	}
}

// keep has the lease last from now on, and returns it.
func (s *Store) keep(l checkpoint.Lease) checkpoint.Lease {
	term := s.Term
	term = cmp.Or(term, Term)
	l.Until = time.Now().Add(term)
	s.all[l.Run] = l
	return l
}

// Lapsed returns ErrFenced if that lease has ended by itself.
func (s *Store) Lapsed(l checkpoint.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lapsed(l)
}

func (s *Store) lapsed(l checkpoint.Lease) error {
	if held := s.all[l.Run]; held.Epoch == l.Epoch && held.Owner == l.Owner && s.over(held) {
		return fmt.Errorf("%w: run %q, epoch %d: it has ended", checkpoint.ErrFenced, l.Run, l.Epoch)
	}
	return nil
}

// over reports whether a lease that was given has ended by itself.
func (s *Store) over(l checkpoint.Lease) bool { return l.Epoch > 0 && !time.Now().Before(l.Until) }

// Free gives back the lease of a run if it has ended, so that the run is nobody's.
func (s *Store) Free(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[run]; s.over(l) {
		_ = s.Store.Release(context.Background(), l) // never fails
		delete(s.all, run)
	}
}

// Acquire implements [checkpoint.Store].
func (s *Store) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	s.Free(run)
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if err != nil {
		return l, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keep(l), nil
}

// Renew implements [checkpoint.Store].
func (s *Store) Renew(ctx context.Context, l checkpoint.Lease) (checkpoint.Lease, error) {
	renewed, err := s.Faulty.Renew(ctx, l)
	if err != nil {
		return renewed, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lapsed(l); err != nil {
		return checkpoint.Lease{}, err
	}
	return s.keep(l), nil
}

// Append implements [checkpoint.Store].
func (s *Store) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	if err := s.Lapsed(l); err != nil {
		return checkpoint.Head{}, err
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

// Release implements [checkpoint.Store].
func (s *Store) Release(ctx context.Context, l checkpoint.Lease) error {
	if s.Lapsed(l) != nil {
		return nil
	}
	return s.Faulty.Release(ctx, l)
}

// PutSnapshot implements [checkpoint.Store].
func (s *Store) PutSnapshot(ctx context.Context, l checkpoint.Lease, snapshot checkpoint.Snapshot) error {
	if err := s.Lapsed(l); err != nil {
		return err
	}
	return s.Faulty.PutSnapshot(ctx, l, snapshot)
}

// Trim implements [checkpoint.Store].
func (s *Store) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	if err := s.Lapsed(l); err != nil {
		return checkpoint.Head{}, err
	}
	return s.Faulty.Trim(ctx, l, after, entry, bases...)
}

// Restore implements [checkpoint.Archiver]. The lease has to last until the archive is read.
func (s *Store) Restore(ctx context.Context, l checkpoint.Lease, a checkpoint.Archive) (checkpoint.Info, error) {
	if err := s.Lapsed(l); err != nil {
		return checkpoint.Info{}, err
	}
	if envelopes := a.Envelopes; envelopes != nil {
		a.Envelopes = func(yield func([]byte, error) bool) {
			for data, err := range envelopes {
				if !yield(data, err) {
					return
				}
			}
			if err := s.Lapsed(l); err != nil {
				yield(nil, err)
			}
		}
	}
	return s.Faulty.Restore(ctx, l, a)
}

// Stat implements [checkpoint.Store].
func (s *Store) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	return s.told(info), err
}

// List implements [checkpoint.Store].
func (s *Store) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Faulty.List(ctx, f)
	for i := range page {
		page[i] = s.told(page[i])
	}
	return page, err
}

// told is info without an owner whose lease has ended.
func (s *Store) told(info checkpoint.Info) checkpoint.Info {
	if s.Lapsed(checkpoint.Lease{Run: info.Run, Epoch: info.Epoch, Owner: info.Owner}) != nil {
		info.Owner = ""
	}
	return info
}

// Delete implements [checkpoint.Store].
func (s *Store) Delete(ctx context.Context, run string) error {
	s.Free(run)
	return s.Faulty.Delete(ctx, run)
}

// Fork implements [checkpoint.Store].
func (s *Store) Fork(ctx context.Context, f checkpoint.Fork) error {
	for _, r := range f.Runs {
		s.Free(r.Run)
	}
	return s.Faulty.Fork(ctx, f)
}
