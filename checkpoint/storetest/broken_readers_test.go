package storetest

import (
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// seenInPart shows the first entry of an append before the others.
type seenInPart struct {
	sound
	upTo *set // the entry, by run
}

func (s seenInPart) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	s.upTo.add(l.Run, binary.BigEndian.AppendUint64(nil, after.Seq+1))
	defer s.upTo.drop(l.Run)
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if len(entries) > 1 {
		soon()
	}
	return head, err
}

func (s seenInPart) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		upTo, part := s.upTo.get(run)
		for e, err := range s.Faulty.Read(ctx, run, from, to) {
			if part && e.Seq > binary.BigEndian.Uint64(upTo) || !yield(e, err) {
				return
			}
		}
	}
}

// drainsSoon takes messages away, and then appends.
type drainsSoon struct {
	sound
	gone *set // by run and id
}

func (s drainsSoon) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	for i := range entries {
		if id := l.Run + "/" + entries[i].Post; entries[i].Post != "" {
			s.gone.add(id, nil)
			defer s.gone.drop(id)
		}
	}
	if len(entries) > 1 {
		soon()
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

func (s drainsSoon) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	return slices.DeleteFunc(all, func(p checkpoint.Post) bool {
		_, gone := s.gone.get(run + "/" + p.ID)
		return gone
	}), err
}

// twoTables writes down the status of a run when it has written the entries.
type twoTables struct {
	sound
	status *set // that was, by run
}

func (s twoTables) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	info, missing := s.Faulty.Stat(ctx, l.Run)
	if missing == nil {
		s.status.add(l.Run, []byte(info.Status))
		defer s.status.drop(l.Run)
	}
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if missing == nil {
		soon()
	}
	return head, err
}

func (s twoTables) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	status, was := s.status.get(run)
	info, err := s.Faulty.Stat(ctx, run)
	if was {
		info.Status = checkpoint.Status(status)
	}
	return info, err
}
