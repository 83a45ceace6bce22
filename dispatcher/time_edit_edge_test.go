package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// editLimits are options under which a state has at most a thousand bytes.
func editLimits(before ...string) dispatcher.Options {
	return dispatcher.Options{InterruptBefore: before, Limits: dispatcher.Limits{StateBytes: 1000}}
}

// longSaid is a step that adds so many bytes to what is said.
func longSaid(n int) func(context.Context, *Tale) error {
	return func(_ context.Context, s *Tale) error {
		s.Said.Append(strings.Repeat("x", n))
		return nil
	}
}

// overLimit holds that a state was, or would be, larger than a thousand bytes, and where.
func overLimit(t *testing.T, err error, where string) {
	t.Helper()
	var limit *dispatcher.LimitError
	if !errors.As(err, &limit) || limit.Limit != "state bytes" || limit.Where != where {
		t.Errorf("the error is %v, want that of the limit of state bytes, of %s", err, where)
	}
}

// What an edit has added counts when the size of the state is looked at next: a superstep that
// leaves too large a state behind it is refused, in the frame that was edited and in a Loop inside
// it.
func TestTimeEditCountsForTheLimit(t *testing.T) {
	body, b, top := dag.New[Tale]("body"), dag.New[Tale]("looped"), dag.New[Tale]("chain")
	dag.Step(body, "adds", longSaid(300), dag.Step(body, "first", longSaid(10)))
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 3, dag.Step(b, "before", longSaid(10)))
	dag.Step(top, "adds", longSaid(300), dag.Step(top, "first", longSaid(10)))
	for node, c := range map[string]struct {
		g            *dag.Graph[Tale]
		visit, where string
	}{
		"adds":      {frozen(t, top), "adds", "superstep 2"},
		"loop/adds": {frozen(t, b), "loop/1/adds", "superstep loop/1@2"},
	} {
		d := callsDispatcher(t, c.g, new(memory.Store), editLimits(node))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, c.visit)
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Word.Set(strings.Repeat("e", 800)) })
		_, err = d.Resume(t.Context(), run)
		overLimit(t, err, c.where)
	}
}

// An edit of a state with which a Loop inside would have too large a state is refused: it would
// fail the run later, with nobody to say what to do.
func TestTimeEditTooLargeForALoopInside(t *testing.T) {
	body, b := dag.New[Tale]("body"), dag.New[Tale]("looped")
	dag.Step(body, "last", longSaid(10), dag.Step(body, "first", longSaid(500)))
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 3)
	store := new(memory.Store)
	d := callsDispatcher(t, frozen(t, b), store, editLimits("loop/last"))
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/last")
	unchanged(t, store, run, func() {
		err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set(strings.Repeat("e", 700)) }, dispatcher.EditOptions{})
		overLimit(t, err, `the edit of frame "loop/1"`)
	})
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
}

// An edit that writes nothing is no entry, also where another graph is to go on: that becomes the
// run's when it is run.
func TestTimeEditOfNothingAdoptsNoGraph(t *testing.T) {
	var w witness
	store := new(memory.Store)
	res, err := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptAfter: []string{"a"}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	b := dag.New[Tale]("line")
	dag.Step(b, "other", w.sees(nil), dag.Step(b, "a", w.sees(nil)))
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	unchanged(t, store, run, func() {
		if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{}); err != nil {
			t.Errorf("an edit of nothing = %v", err)
		}
	})
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
}

// What a visit depended on before it was voided is forgotten with what it did: nobody is told that
// it is stale.
func TestTimeVoidedVisitDependsOnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := true
		b := dag.New[Tale]("depends")
		look := dag.Step(b, "look", func(ctx context.Context, s *Tale) error {
			if s.Said.Append("look"); !looks {
				return nil
			}
			return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
		})
		asks := dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[bool](ctx, "sure", "Shall I?")
			return err
		})
		dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, look, asks)
		store := new(memory.Store)
		d := process(t, frozen(t, b), store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		timeEdit(t, d, dispatcher.EditOptions{Void: []string{"look"}}, func(*Tale) {})
		if err := d.Answer(t.Context(), run, "", true); err != nil {
			t.Fatal(err)
		}
		looks = false
		<-time.After(2 * time.Minute)
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if says(t, res.State, "look"); len(res.Warnings) > 0 {
			t.Errorf("the run warns of %q", res.Warnings)
		}
	})
}
