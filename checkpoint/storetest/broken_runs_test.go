package storetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// openUnsynced opens a sound store that is not: it acknowledges before it is durable.
func openUnsynced(testing.TB, string) checkpoint.Store {
	return sound{&memory.Faulty{Unsynced: true}}
}

// forkByFork makes one run after the other.
type forkByFork struct{ sound }

func (s forkByFork) Fork(ctx context.Context, f checkpoint.Fork) error {
	if _, err := f.Check(); err != nil {
		return err
	}
	for i := range f.Runs {
		if i > 0 {
			soon()
		}
		one := f
		one.Runs = f.Runs[i : i+1]
		if err := s.Faulty.Fork(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// readsFirst reads an archive before it looks at the lease.
type readsFirst struct{ sound }

func (s readsFirst) Restore(ctx context.Context, l checkpoint.Lease, a checkpoint.Archive) (checkpoint.Info, error) {
	log := checkpoint.NewLog(l.Run)
	var envelopes [][]byte
	if a.Envelopes == nil {
		a.Envelopes = lent(nil)
	}
	for data, err := range a.Envelopes {
		if err != nil {
			return checkpoint.Info{}, err
		}
		if err := log.Add(data); err != nil {
			return checkpoint.Info{}, checkpoint.Corrupt(l.Run, 0, err)
		}
		envelopes = append(envelopes, bytes.Clone(data))
	}
	if err := a.Complete(log); err != nil {
		return checkpoint.Info{}, err
	}
	a.Envelopes = lent(envelopes)
	return s.Faulty.Restore(ctx, l, a)
}

// keeper deletes nothing, and says that it has.
type keeper struct{ sound }

func (s keeper) Delete(ctx context.Context, run string) error {
	_, err := s.Stat(ctx, run)
	return err
}

// leavesPosts finds the messages of a run that was deleted in the next one of its id.
type leavesPosts struct {
	sound
	left []checkpoint.Post
}

func (s *leavesPosts) Delete(ctx context.Context, run string) error {
	all, _ := s.Faulty.Posts(ctx, run)
	err := s.Faulty.Delete(ctx, run)
	if err == nil {
		s.left = all
	}
	return err
}

func (s *leavesPosts) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	if err != nil {
		return nil, err
	}
	return append(all, s.left...), nil
}

// takesGraph removes the graph of a run with it, whoever else has it.
type takesGraph struct {
	sound
	gone *set
}

func (s *takesGraph) Delete(ctx context.Context, run string) error {
	info, _ := s.Stat(ctx, run)
	err := s.Faulty.Delete(ctx, run)
	if err == nil {
		s.gone.add(info.Digest, nil)
	}
	return err
}

func (s *takesGraph) Graph(ctx context.Context, digest string) ([]byte, error) {
	if _, gone := s.gone.get(digest); gone {
		return nil, checkpoint.ErrNotFound
	}
	return s.Faulty.Graph(ctx, digest)
}

// takesBase removes the bases of a run with it, whoever else refers to them.
type takesBase struct {
	sound
	gone *set
}

func (s *takesBase) Delete(ctx context.Context, run string) error {
	info, _ := s.Stat(ctx, run)
	err := s.Faulty.Delete(ctx, run)
	if err == nil {
		for _, digest := range info.Bases() {
			s.gone.add(digest, nil)
		}
	}
	return err
}

func (s *takesBase) Base(ctx context.Context, run, digest string) ([]byte, error) {
	if _, gone := s.gone.get(digest); gone {
		return nil, checkpoint.ErrNotFound
	}
	return s.Faulty.Base(ctx, run, digest)
}

// dropsBase drops the base of a trim with what lies before it.
type dropsBase struct {
	sound
	gone *set
}

func (s *dropsBase) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Trim(ctx, l, after, entry, bases...)
	for _, base := range bases {
		s.gone.add(checkpoint.BaseDigest(base), nil)
	}
	return head, err
}

func (s *dropsBase) Base(ctx context.Context, run, digest string) ([]byte, error) {
	if _, gone := s.gone.get(digest); gone {
		return nil, checkpoint.ErrNotFound
	}
	return s.Faulty.Base(ctx, run, digest)
}
