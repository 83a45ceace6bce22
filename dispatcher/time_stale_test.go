package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Scenario 2: a run that rested for longer than the limit goes on, and the result says how old
// it was. At exactly the limit it says nothing.
func TestLife02OldRunsWarn(t *testing.T) {
	for _, c := range []struct {
		limit, rested time.Duration
		warns         bool
	}{
		{0, 24 * time.Hour, false}, {0, 24*time.Hour + time.Millisecond, true},
		{time.Minute, time.Minute, false}, {time.Minute, time.Minute + time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			store := new(memory.Store)
			d := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptBefore: []string{"b"}, StaleAfter: c.limit})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			<-time.After(c.rested)
			res, err = d.Resume(t.Context(), run)
			completes(t, res, err)
			if warned := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], c.rested.String()); warned != c.warns || !c.warns && len(res.Warnings) > 0 {
				t.Errorf("rested for %v: the warnings are %q", c.rested, res.Warnings)
			}
		})
	}
}

// A run that was at work for long, and was left behind a moment ago, is not old.
func TestTimeAgeOfARunLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(mortal)
		var w witness
		o := dispatcher.Options{StaleAfter: time.Minute}
		d := process(t, line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }), store, o)
		if err := store.revive(t.Context(), 3, false); err != nil { // dies behind b
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, errDead) {
			t.Fatalf("the process died: %v", err)
		}
		if err := store.revive(t.Context(), 2, true); err != nil { // dies behind b, which is written
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, errDead) {
			t.Fatalf("the process died: %v", err)
		}
		if err := store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		if res, err := d.State(t.Context(), run); err != nil || !slices.Equal(res.Cursor.Visits, []string{"c"}) {
			t.Fatalf("the run was left behind at %q, %v", res.Cursor.Visits, err)
		}
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		for _, warning := range res.Warnings {
			t.Errorf("a run that was at work a moment ago: %s", warning)
		}
	})
}

// timePrices is a graph in which look uses the price list, in the first superstep, and again
// beside a step that the run pauses before, in the second.
func timePrices(t *testing.T, w *witness, on dag.OnStale) *dag.Graph[Tale] {
	looks := func(name string) part {
		return func(ctx context.Context, s *Tale) error {
			s.Notes.Put(visitPath(ctx), fmt.Sprint(dag.Attempt(ctx)))
			other := dag.Dependency{Name: "other", StaleAfter: time.Hour}
			return errors.Join(dag.Depends(ctx, other), dag.Depends(ctx, dag.Dependency{Name: name, StaleAfter: time.Hour}),
				dag.Depends(ctx, dag.Dependency{Name: name, StaleAfter: time.Minute, OnStale: on}))
		}
	}
	b := dag.New[Tale]("prices")
	first := dag.Step(b, "first", w.sees(nil))
	look := dag.Step(b, "look", w.sees(looks("prices")), first)
	pause := dag.Step(b, "pause", w.sees(nil), first)
	dag.Step(b, "last", w.sees(nil), look, pause)
	return frozen(t, b)
}

// Scenario 2: what a resume does about a dependency that is stale is what the visit has said:
// it warns; it asks the program, whose error refuses it; or it has the visit run again.
func TestLife02StaleDependencies(t *testing.T) {
	for name, c := range map[string]struct {
		on      dag.OnStale
		valid   error
		again   bool
		refused bool
		warns   bool
	}{
		"ignored":     {on: dag.Ignore, warns: true},
		"valid":       {on: dag.Revalidate},
		"not valid":   {on: dag.Revalidate, valid: errWeather, refused: true},
		"invalidated": {on: dag.Invalidate, again: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			store := new(memory.Store)
			asked := 0
			o := dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"pause"}})
			o.Revalidate = func(_ context.Context, d dag.Dependency) error {
				if asked++; d.Name != "prices" || d.StaleAfter != time.Minute || d.Captured.IsZero() {
					t.Errorf("%s: asked about %+v", name, d)
				}
				return c.valid
			}
			d := process(t, timePrices(t, &w, c.on), store, o)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "pause")
			w.took()
			<-time.After(time.Minute) // exactly: not stale
			res, err = d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "pause")
			if len(res.Warnings) > 0 || asked > 0 {
				t.Errorf("%s: at the limit the warnings are %q, and the program was asked %d times", name, res.Warnings, asked)
			}
			<-time.After(time.Millisecond)
			if c.refused {
				unchanged(t, store, run, func() {
					_, err := d.Resume(t.Context(), run)
					var stale *dispatcher.StaleError
					if !errors.As(err, &stale) || !errors.Is(err, errWeather) || stale.Path != "look" || stale.Dependency.Name != "prices" || stale.Age != time.Minute+time.Millisecond {
						t.Errorf("%s: %v", name, err)
					}
				})
				w.expect(t)
				return
			}
			res, err = d.Resume(t.Context(), run)
			completes(t, res, err)
			want := []string{"pause", "last"}
			if c.again {
				want = append(want, "look")
			}
			w.expect(t, want...)
			if warned := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], `"prices"`); warned != c.warns || !c.warns && len(res.Warnings) > 0 || (asked > 0) != (c.on == dag.Revalidate) {
				t.Errorf("%s: the warnings are %q, and the program was asked %d times", name, res.Warnings, asked)
			}
			timeReplayed(t, d, store)
		})
	}
}

// Where what a stale visit wrote is merged, the resume is refused, and says from which
// checkpoint the run can go on.
func TestLife02StaleAndMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		store := new(memory.Store)
		d := process(t, timePrices(t, &w, dag.Invalidate), store, dispatcher.Options{InterruptBefore: []string{"last"}})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		w.took()
		<-time.After(time.Hour)
		var stale *dispatcher.StaleError
		unchanged(t, store, run, func() {
			_, err = d.Resume(t.Context(), run)
			if !errors.As(err, &stale) || stale.Path != "look" || stale.Rewind != "1" || stale.Err != nil {
				t.Fatalf("the resume returned %v", err)
			}
		})
		if err := d.Rewind(t.Context(), run, stale.Rewind, dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		w.expect(t, "look", "pause")
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
	})
}

// A dependency that says nothing useful is an error of the visit; one of an attempt that
// failed does not count.
func TestTimeDependsRefused(t *testing.T) {
	ctx := t.Context()
	for name, d := range map[string]dag.Dependency{
		"no name":   {StaleAfter: time.Second},
		"no UTF-8":  {Name: "\xff", StaleAfter: time.Second},
		"no time":   {Name: "x"},
		"backwards": {Name: "x", StaleAfter: -1},
		"unknown":   {Name: "x", StaleAfter: 1, OnStale: "hope"},
	} {
		if err := dag.Depends(ctx, d); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := dag.Depends(ctx, dag.Dependency{Name: "x", StaleAfter: 1}); err != nil {
		t.Errorf("outside a run: %v", err)
	}
	var after context.Context
	store := new(memory.Store)
	b := dag.New[Tale]("fails")
	dag.Step(b, "once", func(ctx context.Context, _ *Tale) error {
		after = ctx
		if dag.Attempt(ctx) == 1 {
			return errors.Join(dag.Depends(ctx, dag.Dependency{Name: "first", StaleAfter: 1}), errWeather)
		}
		return dag.Depends(ctx, dag.Dependency{Name: "second", StaleAfter: 1})
	}).With(dag.Policy{Attempts: 2})
	d := process(t, frozen(t, b), store, dispatcher.Options{InterruptAfter: []string{"once"}})
	res, err := d.Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "once")
	if err := dag.Depends(after, dag.Dependency{Name: "late", StaleAfter: 1}); !errors.Is(err, dag.ErrVisitOver) {
		t.Errorf("after the visit: %v", err)
	}
	res, err = d.Resume(ctx, run)
	completes(t, res, err)
	if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], `"second"`) {
		t.Errorf("the warnings are %q", res.Warnings)
	}
	if _, err := dispatcher.New(callsGraph(t, nothing[Tale]), store, dispatcher.Options{StaleAfter: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}

// A visit that depends on several things which are stale runs again once.
func TestStaleTwiceRunsAgainOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		b := dag.New[Tale]("prices")
		look := dag.Step(b, "look", w.sees(func(ctx context.Context, _ *Tale) error {
			one := dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate}
			other := one
			other.Name = "rates"
			return errors.Join(dag.Depends(ctx, one), dag.Depends(ctx, other))
		}))
		pause := dag.Step(b, "pause", w.sees(nil))
		dag.Step(b, "last", w.sees(nil), look, pause)
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"pause"}}))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "pause")
		<-time.After(time.Hour)
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if ran := w.took(); len(ran) != 4 || ran[0] != "look" || ran[3] != "last" {
			t.Errorf("what ran is %q", ran)
		}
		sameMachine(t, d, run)
	})
}
