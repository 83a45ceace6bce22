package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A process dies at every append of a run that depends on something, and the next one comes when
// that is stale. Whatever is to be done about it, the run ends as if nothing had happened; and what
// is to be invalidated was looked at again before the run goes on, in place or from the checkpoint
// that the refusal names.
func TestTimeDependsOverCrashes(t *testing.T) {
	for _, on := range []dag.OnStale{dag.Ignore, dag.Revalidate, dag.Invalidate} {
		for _, written := range []bool{false, true} {
			for k, crashed := 1, true; crashed && !t.Failed(); k++ {
				synctest.Test(t, func(t *testing.T) {
					name := fmt.Sprintf("%q, crash at append %d, written=%t", on, k, written)
					crashed = dependsOverACrash(t, name, on, k, written)
				})
			}
		}
	}
}

// dependsOverACrash reports whether the process died.
func dependsOverACrash(t *testing.T, name string, on dag.OnStale, life int, written bool) bool {
	t.Helper()
	var looked time.Time
	b := dag.New[Tale]("depends")
	first := dag.Step(b, "first", func(_ context.Context, s *Tale) error { s.Said.Append("first"); return nil })
	look := dag.Step(b, "look", func(ctx context.Context, s *Tale) error {
		looked = time.Now()
		s.Said.Append("look")
		return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: on})
	}, first)
	beside := dag.Step(b, "beside", func(ctx context.Context, s *Tale) error {
		s.Said.Append("beside")
		_, err := dag.Effect(ctx, "note", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Replayable)
		return err
	}, first)
	dag.Step(b, "last", func(_ context.Context, s *Tale) error { s.Said.Append("last"); return nil }, look, beside)
	asked := 0
	o := dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error { asked++; return nil }}
	store := new(mortal)
	d := process(t, frozen(t, b), store, o)
	died := false
	for call := range 4 {
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		life = 0
		info, err := store.Stat(t.Context(), run)
		over := err == nil && info.Status == checkpoint.StatusCompleted
		res, err := d.Run(t.Context(), run, nil)
		var stale *dispatcher.StaleError
		switch {
		case store.died():
			died = true
			<-time.After(2 * time.Minute)
		case errors.As(err, &stale):
			if on != dag.Invalidate || stale.Path != "look" {
				t.Fatalf("%s: %v", name, err)
			}
			if err := d.Rewind(t.Context(), run, stale.Rewind, dispatcher.RewindOptions{}); err != nil {
				t.Fatal(name, err)
			}
		default:
			completes(t, res, err)
			if says(t, res.State, "first", "look", "beside", "last"); on == dag.Invalidate && !over && time.Since(looked) > time.Minute {
				t.Errorf("%s: the run is completed, and has looked %v ago", name, time.Since(looked))
			}
			if asked > 0 && on != dag.Revalidate {
				t.Errorf("%s: the program was asked %d times", name, asked)
			}
			return died
		}
		if call == 3 {
			t.Errorf("%s: the run does not come to its end", name)
		}
	}
	return died
}

// A run that is completed has nothing left that could run again or be warned of: what its visits
// depended on ends with the turn. A rewind into the turn finds it again.
func TestTimeDependsEndWithTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		b := dag.New[Tale]("turns")
		looks := true
		look := dag.Step(b, "look", func(ctx context.Context, _ *Tale) error {
			if !looks {
				return nil
			}
			return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
		})
		dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, look)
		d := process(t, frozen(t, b), store, dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"last"}}))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		<-time.After(time.Hour)
		looks = false
		res, err = d.Turn(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		sameMachine(t, d, run)
		res, err = d.Resume(t.Context(), run)
		if completes(t, res, err); len(res.Warnings) > 0 {
			t.Errorf("the second turn warns of %q", res.Warnings)
		}
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		var stale *dispatcher.StaleError
		if _, err := d.Resume(t.Context(), run); !errors.As(err, &stale) || stale.Path != "look" {
			t.Errorf("rewound into the first turn: %v", err)
		}
	})
}

// An instant counts, whatever zone it is told in: also one that JSON could not say there.
func TestTimeDependsOnAnInstantOfAnyZone(t *testing.T) {
	for name, at := range map[string]time.Time{
		"the year 10000 there": time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC).In(time.FixedZone("", 2*60*60)),
		"the year -1 there":    time.Date(0, 1, 1, 1, 0, 0, 0, time.UTC).In(time.FixedZone("", -2*60*60)),
		"25 hours ahead":       time.Date(2001, 3, 1, 12, 0, 0, 0, time.FixedZone("", 25*60*60)),
		"25 hours behind":      time.Date(2001, 3, 1, 12, 0, 0, 0, time.FixedZone("", -25*60*60)),
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory.Store)
			b := dag.New[Tale]("zones")
			look := dag.Step(b, "look", func(ctx context.Context, _ *Tale) error {
				return dag.Depends(ctx, dag.Dependency{Name: "prices", Captured: at, StaleAfter: time.Minute, OnStale: dag.Revalidate})
			})
			dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, look)
			g := frozen(t, b)
			asked := 0
			o := dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"last"}})
			o.Revalidate = func(_ context.Context, d dag.Dependency) error {
				if asked++; !d.Captured.Equal(at) {
					t.Errorf("captured at %v, want %v", d.Captured, at)
				}
				return nil
			}
			res, err := process(t, g, store, o).Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "last")
			res, err = process(t, g, store, o).Resume(t.Context(), run)
			completes(t, res, err)
			if stale := time.Since(at) > time.Minute; stale != (asked == 1) {
				t.Errorf("what was captured at %v was asked for %d times", at, asked)
			}
		})
	}
}
