package pawltest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// A scene is the store of a trial: it shows the watch each append, and keeps account of where
// the process has crashed.
type scene struct {
	Mortal
	watch *watch

	mu    sync.Mutex
	crash crash
	// effects that have begun and not ended, and must not be done again, of visits that have not
	// ended
	open map[string]bool
}

// newScene returns the store of a process that dies at append k; 0 is never.
func newScene(w *watch, k int, written bool) *scene {
	s := &scene{Mortal: Mortal{Store: new(memory.Store)}, watch: w, crash: crash{written: written}}
	s.dieAt(k, written)
	return s
}

// A crash is where a process died.
type crash struct {
	seq     uint64 // of the first entry of the append
	entry   checkpoint.Entry
	written bool
	doubt   bool // an effect was under way
}

func (s *scene) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Died() {
		return checkpoint.Head{}, ErrDead
	}
	s.watch.arrive(entries)
	head, err := s.Mortal.Append(ctx, l, after, entries)
	if err == nil || errors.Is(err, checkpoint.ErrCommitUnknown) {
		s.note(entries)
		s.watch.leave(entries)
	}
	if s.Died() {
		s.crash.seq, s.crash.entry, s.crash.doubt = after.Seq+1, told(entries), len(s.open) > 0
	}
	return head, err
}

// Post is no append: it is made by whoever answers, who does not crash.
func (s *scene) Post(ctx context.Context, run string, p checkpoint.Post) error {
	return s.alive(func() error { return s.Store.Post(ctx, run, p) })
}

// note keeps account of the effects that would be in doubt.
func (s *scene) note(entries []checkpoint.Entry) {
	for i := range entries {
		e := &entries[i]
		key := e.Path + "#" + e.ID
		switch e.Kind {
		case checkpoint.EffectBegun:
			var b checkpoint.BegunEffect
			if decode(e.Data, &b); !b.Replayable {
				if s.open == nil {
					s.open = map[string]bool{}
				}
				s.open[key] = true
			}
		case checkpoint.EffectEnded:
			delete(s.open, key)
		case checkpoint.Done:
			s.over(e.Path)
		case checkpoint.AttemptFailed:
			var f checkpoint.FailedAttempt
			if decode(e.Data, &f); f.Final {
				s.over(e.Path)
			}
		}
	}
}

// over forgets the effects of a visit that has ended: what it did about them is what counts.
func (s *scene) over(visit string) {
	maps.DeleteFunc(s.open, func(key string, _ bool) bool { return strings.HasPrefix(key, visit+"#") })
}

// told is the entry of an append that says most about it.
func told(entries []checkpoint.Entry) checkpoint.Entry {
	for _, e := range entries {
		switch e.Kind {
		case checkpoint.Done, checkpoint.AttemptFailed, checkpoint.EffectBegun, checkpoint.EffectEnded:
			return checkpoint.Entry{Kind: e.Kind, Path: e.Path, ID: e.ID}
		}
	}
	e := entries[0]
	return checkpoint.Entry{Kind: e.Kind, Path: e.Path}
}
