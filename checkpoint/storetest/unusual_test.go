package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

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

// Stores that keep all rules in another way than most pass the cases that could mind.
func TestUnusualStoresPass(t *testing.T) {
	told := over(func(s sound) checkpoint.Store { return &tokens{sound: s, watchers: map[chan struct{}]string{}} })
	for _, c := range []struct {
		what  string
		cases string // group/case, or the beginning of that
		f     Factory
	}{
		{"a token for each message", "contract/PostWakesWatchers", told},
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
