package supervisor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A long run that comes further between the times at which the store is full goes on however many
// these are, also if others come to rest meanwhile: by its steps, or by what one of them does.
func TestALongRunOutlivesManyFullSpells(t *testing.T) {
	const spells = 8
	for name, graph := range map[string]func(t *testing.T, waits func()) *dag.Graph[parcel]{
		"steps": func(t *testing.T, waits func()) *dag.Graph[parcel] {
			return line(t, "line", 2*spells, func(context.Context, int) error { waits(); return nil })
		},
		"effects": func(t *testing.T, waits func()) *dag.Graph[parcel] {
			return line(t, "line", 1, func(ctx context.Context, _ int) error {
				for i := range 2 * spells {
					_, err := dag.Effect(ctx, fmt.Sprint(i), 0, func(context.Context, int) (bool, error) { waits(); return true, nil }, dag.Replayable)
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, next := newDevice(), make(chan struct{})
				d := process(t, graph(t, func() { <-next }), store, dispatcher.Options{})
				other := process(t, line(t, "other", 1, nil), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d, other)
				long := submit(t, s, d, "", "long")
				goesOn := func() {
					select {
					case next <- struct{}{}:
					case <-long.Done():
					}
					synctest.Wait()
				}
				for i := range spells {
					goesOn()
					store.full.Store(true)
					goesOn()
					holds(t, s, 1)
					store.full.Store(false)
					lasts(time.Minute) // it tries the store, and ends the hold
					completes(t, submit(t, s, other, "", fmt.Sprint("other-", i)))
				}
				close(next)
				completes(t, long)
				if _, err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A run that comes no further is no long one, although each of its tries says in the log that it
// goes on, or that an effect begins: it ends with ErrFull.
func TestARunThatComesNoFurtherEndsWithFull(t *testing.T) {
	for name, body := range map[string]func(ctx context.Context, large *atomic.Bool) error{
		"a step": func(_ context.Context, large *atomic.Bool) error { large.Store(true); return nil },
		"an effect": func(ctx context.Context, large *atomic.Bool) error {
			_, err := dag.Effect(ctx, "large", 0, func(context.Context, int) (bool, error) { large.Store(true); return true, nil }, dag.Replayable)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var large atomic.Bool
				store := new(memory.Faulty)
				store.Fail = func(_ context.Context, w memory.Write) memory.Fault {
					if w.Run == "large" && large.Swap(false) {
						return memory.Full
					}
					return memory.None
				}
				d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error { return body(ctx, &large) }), store, dispatcher.Options{})
				other := process(t, line(t, "other", 1, nil), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d, other)
				task := submit(t, s, d, "", "large")
				for i := range 8 {
					lasts(time.Minute)
					completes(t, submit(t, s, other, "", fmt.Sprint("other-", i)))
				}
				ends(t, task, checkpoint.ErrFull)
				if _, err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// How often it was refused before it came further does not count.
func TestARunThatComesFurtherIsCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, again := atomic.Bool{}, false
		store := fullFor("long", &full)
		d := process(t, line(t, "line", 2, func(_ context.Context, step int) error {
			if lasts(time.Second); step == 1 && !again {
				again = true
				full.Store(true)
			}
			return nil
		}), store, dispatcher.Options{})
		other := process(t, line(t, "other", 1, nil), store, dispatcher.Options{})
		s := supervise(t, store, supervisor.Options{Cap: 1}, d, other)
		long := submit(t, s, d, "", "long")
		lasts(500 * time.Millisecond)
		full.Store(true)
		lasts(time.Minute)
		for spell := range 2 {
			for i := range 3 {
				completes(t, submit(t, s, other, "", fmt.Sprint("other-", spell, i)))
				lasts(time.Minute)
				holds(t, s, 1)
			}
			full.Store(false) // the first time until it has come further
			lasts(time.Minute)
		}
		completes(t, long)
		drains(t, s, supervisor.Drain{})
	})
}
