package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// tokens has a token of its own for each watcher and message.
type tokens struct {
	sound
	mu       sync.Mutex
	watchers map[chan struct{}]string // the run of each
}

func (s *tokens) Watch(run string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{}, 16)
	s.watchers[c] = run
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, c)
	}
}

func (s *tokens) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if err := s.Faulty.Post(ctx, run, p); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, of := range s.watchers {
		if of == run {
			c <- struct{}{}
		}
	}
	return nil
}

// lasting has leases that end by themselves, and not with the store.
type lasting struct {
	sound
	held map[string]checkpoint.Lease
}

// lasts returns the store that has the leases of another.
func lasts(t testing.TB, s sound, of *lasting) *lasting {
	next := &lasting{s, map[string]checkpoint.Lease{}}
	for run, l := range of.held {
		if _, err := next.Acquire(t.Context(), run, l.Owner); err != nil {
			t.Fatal(err)
		}
	}
	return next
}

func (s *lasting) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(ctx, run, owner)
	if err == nil {
		l.Until = time.Now().Add(time.Hour)
		s.held[run] = l
	}
	return l, err
}

func (s *lasting) Release(ctx context.Context, l checkpoint.Lease) error {
	err := s.Faulty.Release(ctx, l)
	if err == nil && s.held[l.Run].Epoch == l.Epoch {
		delete(s.held, l.Run)
	}
	return err
}

func (s *lasting) Restore(ctx context.Context, l checkpoint.Lease, a checkpoint.Archive) (checkpoint.Info, error) {
	info, err := s.Faulty.Restore(ctx, l, a)
	if err == nil {
		delete(s.held, l.Run)
	}
	return info, err
}

// Stores that keep all rules in another way than most pass the cases that could mind.
func TestUnusualStoresPass(t *testing.T) {
	told := over(func(s sound) checkpoint.Store { return &tokens{sound: s, watchers: map[chan struct{}]string{}} })
	kept := over(func(s sound) checkpoint.Store { return &lasting{s, map[string]checkpoint.Lease{}} })
	reopen := kept.Reopen
	kept.Reopen = func(t testing.TB, dir string, s checkpoint.Store) checkpoint.Store {
		return lasts(t, reopen(t, dir, s).(*lasting).sound, s.(*lasting))
	}
	roomy := over(func(s sound) checkpoint.Store { return s })
	roomy.Limits.Large = 32 << 20
	for _, c := range []struct {
		what  string
		cases string // group/case, or the beginning of that
		f     Factory
	}{
		{"a token for each message", "contract/PostWakesWatchers", told},
		{"leases that end by themselves", "durability/", kept},
		{"room for more than most", "contract/SnapshotOfManyMegabytes", roomy},
	} {
		for _, g := range groups {
			for _, r := range g.cases {
				if name := g.name + "/" + r.name; strings.HasPrefix(name, c.cases) {
					if rec := record(t, r, c.f); rec.Failed() {
						t.Errorf("%s: %s: %.2000s", c.what, name, rec.text())
					}
				}
			}
		}
	}
}
