package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// reached checks that an error tells of a limit.
func reached(t *testing.T, err error, limit string, most int, where string) {
	t.Helper()
	var e *dispatcher.LimitError
	if !errors.As(err, &e) || e.Limit != limit || e.Max != most || !strings.Contains(e.Where, where) {
		t.Errorf("the error is %v, want a limit of %d %s at %q", err, most, limit, where)
	}
	if text := fmt.Sprint(err); !strings.Contains(text, "(Options.Limits.") && !strings.Contains(text, "(state.MaxDepth)") {
		t.Errorf("%q does not say where the limit is set", text)
	}
}

// writes returns a body that puts so many bytes into its own note.
func writes(n int) part {
	return func(ctx context.Context, s *Tale) error {
		s.Notes.Put(visitPath(ctx), strings.Repeat("x", n))
		return nil
	}
}

func TestLimitOfValueBytes(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("values")
	dag.Step(b, "small", w.sees(writes(90)))
	dag.Step(b, "large", w.sees(writes(200)))
	g := frozen(t, b)
	o := dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 100}}

	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "large")
	reached(t, err, "value bytes", 100, "Notes")
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) || failed.Path != "large" || failed.Kind != dag.FailedState {
		t.Errorf("the error is %v, want that of large, kind %s", err, dag.FailedState)
	}
	o.Limits.ValueBytes = 300
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "small", "large", "large#2")
}

func TestLimitOfValueBytesInTheInput(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 100}})
	_, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set(large) })
	reached(t, err, "value bytes", 100, "Word")
	if _, err := d.State(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("a run was left behind: %v", err)
	}
	w.expect(t)
}

// An input that outgrows the state begins nothing: no run, and no frame.
func TestLimitOfStateBytesInTheInput(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	o := dispatcher.Options{Limits: dispatcher.Limits{StateBytes: 300}}
	writes := func(_, s *Tale) { s.Word.Set(strings.Repeat("x", 300)) }
	g := line(t, &w, nil)
	_, err := process(t, g, &store, o).Run(t.Context(), run, func(s *Tale) { writes(nil, s) })
	reached(t, err, "state bytes", 300, "the input")
	if _, err := store.Stat(t.Context(), run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("a run was left behind: %v", err)
	}
	w.expect(t)

	b := dag.New[Tale]("around")
	inner := dag.Embed(b, "inner", g, writes, func(*Tale, *Tale) {})
	dag.Step(b, "instead", w.sees(nil), inner.Failed())
	res, err := process(t, frozen(t, b), &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "instead")
}

// What outgrows the state is the whole superstep: all of it is taken back and runs again.
func TestLimitOfStateBytes(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("bytes")
	first := dag.Step(b, "first", w.sees(writes(100)))
	one, two := dag.Step(b, "one", w.sees(writes(100)), first), dag.Step(b, "two", w.sees(writes(100)), first)
	body := dag.New[Tale]("body")
	dag.Step(body, "inside", w.sees(nil))
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 2, first)
	dag.Step(b, "last", w.sees(nil), one, two, loop)
	g := frozen(t, b)
	o := dispatcher.Options{Limits: dispatcher.Limits{StateBytes: 300}}

	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two", "loop")
	reached(t, err, "state bytes", 300, "2")
	says(t, res.State, "first")
	if len(res.Finished) > 0 {
		t.Errorf("finished: %q, want nothing", res.Finished)
	}
	w.expect(t, "first", "one", "two", "loop/1/inside")
	o.Limits.StateBytes = 1000
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "loop/1/inside", "last")
	says(t, res.State, "first", "one", "two", "loop/1/inside", "last")
}

// Parallel additions that overflow together are at fault together.
func TestLimitOfASum(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	step := math.MaxInt/2 + 1
	b := dag.New[Tale]("sums")
	var all []dag.Edge[Tale]
	for _, name := range []string{"one", "two"} {
		all = append(all, dag.Step(b, name, w.sees(func(_ context.Context, s *Tale) error {
			s.Count.Add(step)
			return nil
		})))
	}
	dag.Step(b, "last", w.sees(nil), all...)
	g := frozen(t, b)
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "one", "two")
	var fault *dispatcher.FaultError
	if !errors.As(err, &fault) || fault.Kind != "merge" || !errors.Is(err, state.ErrOverflow) {
		t.Errorf("the error is %v, want a merge that overflows", err)
	}
	w.expect(t, "one", "two")
	step = 1
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "one", "two", "last")
}

// A frame inside has the limit as well; outside of it nothing is taken back.
func TestLimitOfStateBytesInside(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := nest(t, &w, map[string]part{"mop": writes(200)})
	o := dispatcher.Options{Limits: dispatcher.Limits{StateBytes: 500}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, mop2)
	reached(t, err, "state bytes", 500, "house/rounds/2")
	w.expect(t, append([]string(nil), nested[:6]...)...)
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, append([]string(nil), nested[5:]...)...)
}

// At the limit no visit begins; the supersteps that have begun end.
func TestLimitOfSuperstepsSideBySide(t *testing.T) {
	quiet(t)
	body := dag.New[Tale]("body")
	dag.Step(body, "turn", nothing[Tale])
	b := dag.New[Tale]("beside")
	one := frozen(t, body)
	items := dag.EachGraph(b, "items", func(*Tale) []int { return make([]int, 50) }, one, func(*Tale, int, *Tale) {}, func(*Tale, int, *Tale) {})
	dag.Step(b, "last", nothing[Tale], items)
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 3}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "last")
	reached(t, err, "supersteps", 3, "")
}

// The number of supersteps is that of all frames, also while a node is at work beside them.
func TestLimitOfSuperstepsBesideANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		body := dag.New[Tale]("body")
		dag.Step(body, "turn", w.sees(nil))
		b := dag.New[Tale]("beside")
		slow := dag.Step(b, "slow", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }))
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 100)
		dag.Step(b, "last", w.sees(nil), slow, loop)
		g := frozen(t, b)
		o := dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 6}}

		began := time.Now()
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "loop/7/turn")
		reached(t, err, "supersteps", 6, "")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call returned after %v, want the minute that slow needs", took)
		}
		if n := len(w.took()); n != 7 {
			t.Errorf("%d bodies ran, want slow and six turns", n)
		}
		o.Limits.Supersteps = 1000
		res, err = process(t, g, &store, o).Resume(t.Context(), run)
		completes(t, res, err)
		if n := len(w.took()); n != 95 {
			t.Errorf("%d bodies ran after the resume, want the 94 turns that were left and the last", n)
		}
	})
}

// A run that reached a limit goes on under a higher one, also if a dag.Fail beside has been reached
// already: then what is beside that ends, and the run fails there, from then on without running
// anything.
func TestLimitOfSuperstepsBesideAFail(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	fails, body, b := dag.New[Tale]("fails"), dag.New[Tale]("body"), dag.New[Tale]("beside")
	first := dag.Route(fails, "first", w.routes(func(*Tale) way { return left }), []way{left})
	dag.Fail(fails, "no", first.On(left))
	dag.Step(body, "turn", w.sees(nil))
	none := func(*Tale, *Tale) {}
	dag.Embed(b, "fails", frozen(t, fails), none, none)
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 5)
	g := frozen(t, b)

	o := dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 3}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "fails/no", "loop/3/turn")
	reached(t, err, "supersteps", 3, "")
	w.expect(t, "fails/first", "loop/1/turn", "loop/2/turn")
	o.Limits.Supersteps = 1000
	for _, bodies := range [][]string{{"loop/3/turn", "loop/4/turn", "loop/5/turn"}, nil} {
		res, err = process(t, g, &store, o).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "fails/no")
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Kind != dag.FailedEnd || failed.Path != "fails/no" {
			t.Errorf("the resume returns %v", err)
		}
		w.expect(t, bodies...)
	}
}
