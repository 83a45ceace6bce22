package storetest

import (
	"context"
	"errors"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// noDigests hands on when a context ends, and nothing that it says.
type noDigests struct{ sound }

type silent struct{ context.Context }

func (silent) Value(any) any { return nil }

func (s noDigests) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return s.Faulty.Read(silent{ctx}, run, from, to)
}

// noSnapshot has none where the newest is damaged.
type noSnapshot struct{ sound }

func (s noSnapshot) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	snap, err := s.Faulty.Snapshot(ctx, run, upTo)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Snapshot{}, checkpoint.ErrNotFound
	}
	return snap, err
}

// anySnapshot returns what it finds, damaged or not.
type anySnapshot struct{ sound }

func (s anySnapshot) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	snap, err := s.Faulty.Snapshot(ctx, run, upTo)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Snapshot{Data: []byte("state 3 of flippee")}, nil
	}
	return snap, err
}

// dropsDamaged leaves out messages that it can't read.
type dropsDamaged struct{ sound }

func (s dropsDamaged) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, nil
	}
	return all, err
}

// noBaseThere has none where it is damaged.
type noBaseThere struct{ sound }

func (s noBaseThere) Base(ctx context.Context, run, digest string) ([]byte, error) {
	base, err := s.Faulty.Base(ctx, run, digest)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, checkpoint.ErrNotFound
	}
	return base, err
}

// sharesDamaged has a fork stand on a base that it can't read.
type sharesDamaged struct{ sound }

func (s sharesDamaged) Fork(ctx context.Context, f checkpoint.Fork) error {
	all, err := s.Faulty.List(ctx, checkpoint.Filter{})
	if err == nil {
		err = s.Faulty.Fork(ctx, f)
	}
	for _, info := range all {
		digest := checkpoint.BaseDigest(f.Base)
		if _, hurt := s.Faulty.Base(ctx, info.Run, digest); errors.Is(hurt, checkpoint.ErrCorrupt) && info.Base == digest {
			s.Spoil(f.Runs[0].Run, checkpoint.PartBase)
		}
	}
	return err
}

// startsOver takes a run of which it knows nothing any more for one that never was.
type startsOver struct{ sound }

func (s startsOver) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Info{}, checkpoint.ErrNotFound
	}
	return info, err
}

// beginsAnew lets whoever asks begin such a run again.
type beginsAnew struct{ sound }

func (s beginsAnew) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Lease{Run: run, Epoch: 1, Owner: owner}, nil
	}
	return l, err
}

func (s beginsAnew) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Head{Seq: after.Seq + uint64(len(entries))}, nil
	}
	return head, err
}

// tellsOnce tells of a run that can't be read what was known of it when it had not run.
type tellsOnce struct{ sound }

func (s tellsOnce) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return checkpoint.Info{Run: run, Status: checkpoint.StatusPending, Head: checkpoint.Head{Seq: 3}}, nil
	}
	return info, err
}

// listsOnce lists such a run so.
type listsOnce struct{ sound }

func (s listsOnce) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Faulty.List(ctx, f)
	var where *checkpoint.CorruptError
	if errors.As(err, &where) {
		return append(page, checkpoint.Info{Run: where.Run, Status: checkpoint.StatusPending}), nil
	}
	return page, err
}

type hides struct{ sound }

func (s hides) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.sound.List(ctx, f)
	if err != nil {
		return nil, err
	}
	return page, nil
}

type namesNobody struct{ sound }

func (s namesNobody) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.sound.List(ctx, f)
	if errors.Is(err, checkpoint.ErrCorrupt) {
		err = &checkpoint.CorruptError{Run: "number 2", Reason: "it can't be read"}
	}
	return page, err
}
