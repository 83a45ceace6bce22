package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// A tearing store makes some calls in two writes, and a crash in between leaves the first one.
type tearing struct {
	sound
	half  *set // what half is written of, as the disk has it
	calls *atomic.Int64
}

func (s tearing) torn() tearing { return s }

// between is how long it takes from one write to the other: each time longer, so that no two calls
// are as far at once.
func (s tearing) between() { <-time.After(time.Duration(s.calls.Add(1)) * time.Millisecond) }

// torn is the Factory of a tearing store.
func torn(wrap func(tearing) checkpoint.Store) Factory {
	opened := func(f *memory.Faulty, half *set) checkpoint.Store {
		return wrap(tearing{sound{f}, half, new(atomic.Int64)})
	}
	f := over(func(s sound) checkpoint.Store { return opened(s.Faulty, newSet()) })
	again := func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		dead := s.(interface{ torn() tearing }).torn()
		return opened(dead.Crash(0), dead.half.clone())
	}
	f.Reopen, f.Crash = again, again
	return f
}

// lateBase keeps the base of a trim when it has trimmed.
type lateBase struct{ tearing }

func (s lateBase) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Trim(ctx, l, after, entry, bases...)
	if err == nil {
		s.half.add(l.Run, nil)
		s.between()
		s.half.drop(l.Run)
	}
	return head, err
}

func (s lateBase) Base(ctx context.Context, run, digest string) ([]byte, error) {
	if _, half := s.half.get(run); half {
		return nil, checkpoint.ErrNotFound
	}
	return s.Faulty.Base(ctx, run, digest)
}

// lateClear removes the messages of a run when it has deleted the run.
type lateClear struct{ tearing }

func (s lateClear) Delete(ctx context.Context, run string) error {
	err := s.Faulty.Delete(ctx, run)
	if err == nil {
		s.half.add(run, nil)
		s.between()
		s.half.drop(run)
	}
	return err
}

func (s lateClear) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	if _, half := s.half.get(run); half {
		all = append(all, checkpoint.Post{ID: "left"})
	}
	return all, err
}
