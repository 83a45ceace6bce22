package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

var _ checkpoint.Archiver = (*Store)(nil)

// Envelopes implements [checkpoint.Archiver].
func (s *Store) Envelopes(ctx context.Context, id string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		_, appends, err := s.span(ctx, id, 0, 0)
		if err != nil {
			yield(nil, err)
			return
		}
		for data, err := range lend(ctx, appends) {
			if !yield(data, err) || err != nil {
				return
			}
		}
	}
}

// Restore implements [checkpoint.Archiver].
func (s *Store) Restore(
	ctx context.Context, l checkpoint.Lease, a checkpoint.Archive,
) (checkpoint.Info, error) {
	if _, err := s.vacant(ctx, l); err != nil { // before any of the archive is read
		return checkpoint.Info{}, err
	}
	s.mu.Unlock()
	made, err := restored(ctx, l.Run, a)
	if err != nil {
		return checkpoint.Info{}, err
	}
	r, err := s.vacant(ctx, l)
	if err != nil {
		return checkpoint.Info{}, err
	}
	defer s.mu.Unlock()
	s.made++
	made.number = s.made
	made.info.Epoch = max(made.info.Epoch, r.info.Epoch)
	*r = *made
	s.refer(nil, r.info.Bases(), a.Bases...)
	s.logs.Tell(l.Run)
	return r.info.Own(), nil
}

// vacant returns the run of a lease that must be held, and which must not exist. The store is
// locked then, but for an error.
func (s *Store) vacant(ctx context.Context, l checkpoint.Lease) (*run, error) {
	if err := s.begin(ctx, l.Run); err != nil {
		return nil, err
	}
	r, err := s.held(l)
	if err == nil && r.exists() {
		err = fmt.Errorf("%w: run %q", checkpoint.ErrExists, l.Run)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return r, nil
}

// restored makes a run that belongs to no store.
func restored(ctx context.Context, id string, a checkpoint.Archive) (*run, error) {
	r := new(run)
	log := checkpoint.NewLog(id)
	if a.Envelopes == nil {
		return nil, a.Complete(log)
	}
	for data, err := range a.Envelopes {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		before := log.Info().Head.Seq
		if err := log.Add(data); err != nil {
			return nil, checkpoint.Corrupt(id, before+1, err)
		}
		e, _ := checkpoint.Unseal(data) // as Add has
		r.appends = append(r.appends, envelope{first: e.First, data: slices.Clone(data)})
	}
	if err := a.Complete(log); err != nil {
		return nil, err
	}
	r.info = log.Info()
	for _, p := range a.Posts {
		p.At, p.Data = p.At.UTC(), slices.Clone(p.Data)
		r.post(p)
	}
	return r, nil
}
