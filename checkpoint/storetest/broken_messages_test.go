package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// alikePosts takes messages for one whose ids are the same to it.
type alikePosts struct {
	sound
	id func(string) string
}

func (s alikePosts) Post(ctx context.Context, run string, p checkpoint.Post) error {
	all, _ := s.Faulty.Posts(ctx, run)
	for _, q := range all {
		if checkpoint.CheckPostID(p.ID) == nil && q.ID != p.ID && s.id(q.ID) == s.id(p.ID) {
			return checkpoint.ErrConflict
		}
	}
	return s.Faulty.Post(ctx, run, p)
}

// fewPosts returns the first page of messages.
type fewPosts struct{ sound }

func (s fewPosts) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	return all[:min(len(all), 100)], err
}

// A hiding store does not tell of some messages.
type hiding struct {
	sound
	hidden *set // by run and id
}

func (s hiding) hide(run string, all []checkpoint.Post) {
	for _, p := range all {
		s.hidden.add(run+"/"+p.ID, nil)
	}
}

func (s hiding) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	return slices.DeleteFunc(all, func(p checkpoint.Post) bool {
		_, hidden := s.hidden.get(run + "/" + p.ID)
		return hidden
	}), err
}

// writesBack reads the messages, and writes those back that an append has not drained.
type writesBack struct{ hiding }

func (s writesBack) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	was, _ := s.Posts(ctx, l.Run)
	if len(was) > 0 {
		soon()
	}
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if now, _ := s.Posts(ctx, l.Run); err == nil && len(was) > 0 {
		s.hide(l.Run, slices.DeleteFunc(now, func(p checkpoint.Post) bool {
			return slices.ContainsFunc(was, func(q checkpoint.Post) bool { return p.ID == q.ID })
		}))
	}
	return head, err
}

// trimsPosts drops messages with the past.
type trimsPosts struct{ hiding }

func (s trimsPosts) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Trim(ctx, l, after, entry, bases...)
	if all, _ := s.Posts(ctx, l.Run); err == nil {
		s.hide(l.Run, all)
	}
	return head, err
}

// movesPosts keeps a message that is posted again as if it had not been there.
type movesPosts struct {
	sound
	mu *sync.Mutex
}

func (s movesPosts) Post(ctx context.Context, run string, p checkpoint.Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, _ := s.Faulty.Posts(ctx, run)
	i := slices.IndexFunc(all, func(q checkpoint.Post) bool { return q.ID == p.ID })
	info, err := s.Faulty.Stat(ctx, run)
	if i < 0 || err != nil || !all[i].Says(p) || info.Owner == "" {
		return s.Faulty.Post(ctx, run, p)
	}
	soon()
	l := checkpoint.Lease{Run: run, Epoch: info.Epoch, Owner: info.Owner}
	if _, err := s.Store.Append(ctx, l, info.Head, []checkpoint.Entry{drains(p.ID)}); err != nil {
		return err
	}
	return s.Faulty.Post(ctx, run, p)
}

// earlyTelling tells who watches of a message, and then keeps it.
type earlyTelling struct {
	sound
	mu      *sync.Mutex
	watches map[string][]chan struct{}
}

func (s earlyTelling) Watch(run string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := make(chan struct{}, 1)
	s.watches[run] = append(s.watches[run], told)
	return told, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches[run] = slices.DeleteFunc(slices.Clone(s.watches[run]), func(c chan struct{}) bool { return c == told })
	}
}

func (s earlyTelling) Post(ctx context.Context, run string, p checkpoint.Post) error {
	s.mu.Lock()
	all := s.watches[run]
	s.mu.Unlock()
	for _, told := range all {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	soon()
	return s.Faulty.Post(ctx, run, p)
}

// aPageOfForks makes the first runs of a Fork.
type aPageOfForks struct{ sound }

func (s aPageOfForks) Fork(ctx context.Context, f checkpoint.Fork) error {
	f.Runs = f.Runs[:min(len(f.Runs), 100)]
	return s.Faulty.Fork(ctx, f)
}

// onePin keeps one pin of a run.
type onePin struct{ sound }

func (s onePin) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	info.Pins = info.Pins[:min(len(info.Pins), 1)]
	return info, err
}

// noPins knows of no pins.
type noPins struct{ sound }

func (s noPins) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Faulty.Stat(ctx, run)
	info.Pins = nil
	return info, err
}

// selectedAgain begins a listing anew behind a run that is none of those selected.
type selectedAgain struct{ sound }

func (s selectedAgain) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	if info, err := s.Faulty.Stat(ctx, f.After); f.After != "" && err == nil && !f.Matches(info) {
		f.After = ""
	}
	return s.Faulty.List(ctx, f)
}

// quietly says of some writes that it has made them, though there was no room.
type quietly struct {
	sound
	write string
}

func (s quietly) said(write string, err error) error {
	if s.write == write && errors.Is(err, checkpoint.ErrFull) {
		return nil
	}
	return err
}

func (s quietly) PutGraph(ctx context.Context, digest string, graph []byte) error {
	return s.said("PutGraph", s.Faulty.PutGraph(ctx, digest, graph))
}

func (s quietly) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entry checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Trim(ctx, l, after, entry, bases...)
	return head, s.said("Trim", err)
}

func (s quietly) Restore(ctx context.Context, l checkpoint.Lease, a checkpoint.Archive) (checkpoint.Info, error) {
	info, err := s.Faulty.Restore(ctx, l, a)
	return info, s.said("Restore", err)
}

// A behindhand store syncs one kind of write with the next write.
type behindhand struct {
	sound
	last *atomic.Value // the kind of the last write
}

// lately is the Factory of a behindhand store.
func lately(write string) Factory {
	f := over(nil)
	opened := func(inner *memory.Faulty) checkpoint.Store {
		s := behindhand{sound{inner}, new(atomic.Value)}
		inner.Fail = func(_ context.Context, w memory.Write) memory.Fault {
			s.last.Store(w.Method)
			return memory.None
		}
		return s
	}
	f.Open = func(testing.TB, string) checkpoint.Store { return opened(&memory.Faulty{Unsynced: true}) }
	f.Reopen = func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		_ = s.(wrapper).inner().Close() // never fails
		return opened(s.(wrapper).inner().Crash(0))
	}
	f.Crash = func(_ testing.TB, _ string, s checkpoint.Store) checkpoint.Store {
		lose := 0
		if s.(behindhand).last.Load() == write {
			lose = 1
		}
		return opened(s.(wrapper).inner().Crash(lose))
	}
	return f
}
