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
		_, appends, err := s.span(ctx, id, 1, 0)
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
	ctx context.Context, l checkpoint.Lease, posts []checkpoint.Post,
	envelopes iter.Seq2[[]byte, error],
) (checkpoint.Info, error) {
	made, err := restored(ctx, l.Run, posts, envelopes)
	if err != nil {
		return checkpoint.Info{}, err
	}
	if err := s.begin(ctx, l.Run); err != nil {
		return checkpoint.Info{}, err
	}
	defer s.mu.Unlock()
	r, err := s.held(l)
	if err != nil {
		return checkpoint.Info{}, err
	}
	if r.exists() {
		return checkpoint.Info{}, fmt.Errorf("%w: run %q", checkpoint.ErrExists, l.Run)
	}
	s.made++
	made.number = s.made
	made.info.Epoch = max(made.info.Epoch, r.info.Epoch)
	*r = *made
	return r.known(), nil
}

// restored makes a run that belongs to no store.
func restored(
	ctx context.Context, id string, posts []checkpoint.Post, envelopes iter.Seq2[[]byte, error],
) (*run, error) {
	r := &run{info: checkpoint.Info{Run: id}}
	for data, err := range envelopes {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		first := r.info.Head.Seq + 1
		if r.info, err = r.info.Sealed(data); err != nil {
			return nil, checkpoint.Corrupt(id, first, err)
		}
		r.appends = append(r.appends, envelope{first: first, data: slices.Clone(data)})
	}
	if !r.exists() {
		return nil, checkpoint.Corrupt(id, 1, checkpoint.Damage("there is no append"))
	}
	for _, p := range posts {
		if err := p.Check(); err != nil {
			return nil, err
		}
		if r.posts == nil {
			r.posts = make(map[string]checkpoint.Post)
		}
		p.Data = slices.Clone(p.Data)
		r.posts[p.ID] = p
	}
	return r, nil
}
