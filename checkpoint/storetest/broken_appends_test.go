package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// anyHead appends after whatever head there is.
type anyHead struct{ sound }

func (s anyHead) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	for {
		head, err := s.Faulty.Append(ctx, l, after, entries)
		if !errors.Is(err, checkpoint.ErrConflict) {
			return head, err
		}
		info, err := s.Stat(ctx, l.Run)
		if err != nil {
			return checkpoint.Head{}, err
		}
		if info.Head == after { // it is no reason
			return checkpoint.Head{}, checkpoint.ErrConflict
		}
		after = info.Head
	}
}

// lateLock compares the head, lets others do so too, and then appends.
type lateLock struct {
	sound
	meet chan struct{}
}

func (s *lateLock) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	if info, err := s.Stat(ctx, l.Run); err == nil && info.Head != after {
		return checkpoint.Head{}, checkpoint.ErrConflict
	}
	select {
	case s.meet <- struct{}{}:
	case <-s.meet:
	case <-time.After(time.Millisecond): // nobody else is here
	}
	return anyHead{s.sound}.Append(ctx, l, after, entries)
}

// reopener takes an opening in the middle of a log for a change of the graph.
type reopener struct{ sound }

func (s reopener) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	entries = slices.Clone(entries)
	for i := range entries {
		if entries[i].Kind == checkpoint.Opened && after.Seq > 0 {
			entries[i] = migrated("another graph")
		}
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

// yesMan says that it has appended what it has refused.
type yesMan struct{ sound }

func (s yesMan) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if errors.Is(err, checkpoint.ErrConflict) {
		return checkpoint.Head{Seq: after.Seq + uint64(len(entries)), Digest: after.Digest}, nil
	}
	return head, err
}

// falseConflict says of every fifth append that it has refused it.
type falseConflict struct {
	sound
	n atomic.Int64
}

func (s *falseConflict) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if err == nil && s.n.Add(1)%5 == 0 {
		return checkpoint.Head{}, checkpoint.ErrConflict
	}
	return head, err
}

// goodPart appends what comes before a bad entry.
type goodPart struct{ sound }

func (s goodPart) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if err == nil || errors.Is(err, checkpoint.ErrConflict) || errors.Is(err, checkpoint.ErrFenced) || len(entries) < 2 {
		return head, err
	}
	_, _ = s.Faulty.Append(ctx, l, after, entries[:1])
	return head, err
}

// oneByOne appends each entry by itself.
type oneByOne struct{ sound }

func (s oneByOne) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (head checkpoint.Head, err error) {
	for i := range entries {
		if after, err = s.Faulty.Append(ctx, l, after, entries[i:i+1]); err != nil {
			return checkpoint.Head{}, err
		}
	}
	return after, nil
}

// uncancelled looks at no context.
type uncancelled struct{ sound }

func (s uncancelled) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	return s.Faulty.Append(context.WithoutCancel(ctx), l, after, entries)
}

// cancelledLate looks at the context once more when it has appended.
type cancelledLate struct{ sound }

func (s cancelledLate) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if ctx.Err() != nil {
		return checkpoint.Head{}, ctx.Err()
	}
	return head, err
}

// bounded keeps all rules, and makes no append of more bytes than that.
type bounded struct {
	sound
	most int
}

func (s bounded) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	size := 0
	for _, e := range entries {
		size += len(e.Delta) + len(e.Outer) + len(e.Data) + len(e.Post)
	}
	if size > s.most {
		return checkpoint.Head{}, checkpoint.ErrTooLarge
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

// quiet ends a log where it is damaged, or with an error that says something else.
type quiet struct {
	sound
	instead error
}

func (s quiet) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Faulty.Read(ctx, run, from, to) {
			if errors.Is(err, checkpoint.ErrCorrupt) {
				if s.instead != nil {
					yield(e, s.instead)
				}
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// forgetsLast leaves out the last entry of a range.
type forgetsLast struct{ sound }

func (s forgetsLast) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		var last []checkpoint.Entry
		for e, err := range s.Faulty.Read(ctx, run, from, to) {
			if err != nil {
				yield(e, err)
				return
			}
			if len(last) > 0 && !yield(last[0], nil) {
				return
			}
			last = []checkpoint.Entry{e}
		}
	}
}

// pageByPage reads a hundred entries, and then looks for the next ones.
type pageByPage struct{ sound }

func (s pageByPage) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		info, err := s.Stat(ctx, run)
		if err != nil {
			yield(checkpoint.Entry{}, err)
			return
		}
		if from == 0 {
			from = info.First
		}
		if to == 0 || to > info.Head.Seq {
			to = info.Head.Seq
		}
		for ; from <= to; from += 100 {
			for e, err := range s.Faulty.Read(ctx, run, from, min(from+99, to)) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// cached tells what it has told before, once, if something was appended since.
type cached struct {
	sound
	mu   sync.Mutex
	told map[string]checkpoint.Info
}

func (s *cached) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	if err != nil {
		return info, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = make(map[string]checkpoint.Info)
	}
	old, ok := s.told[run]
	s.told[run] = info
	if ok {
		return old, nil
	}
	return info, nil
}

// noClaims lets an entry drain a message that somebody else has posted.
type noClaims struct{ sound }

func (s noClaims) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Claims = false
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

// earlyClaims looks whether anything was posted, lets others post and look at the run, and then
// appends.
type earlyClaims struct {
	sound
	looked chan struct{}
}

func (s earlyClaims) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	posts, err := s.Posts(ctx, l.Run)
	if err != nil {
		return checkpoint.Head{}, err
	}
	claims := false
	for _, e := range entries {
		claims = claims || e.Claims
		if e.Claims && slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.ID == e.Post }) {
			return checkpoint.Head{}, checkpoint.Claimed(l.Run, e.Post)
		}
	}
	if claims {
		select {
		case <-s.looked:
		case <-time.After(10 * time.Millisecond): // nobody else is here
		}
	}
	return noClaims{s.sound}.Append(ctx, l, after, entries)
}

func (s earlyClaims) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	select {
	case s.looked <- struct{}{}:
	default:
	}
	return info, err
}
