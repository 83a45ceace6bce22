package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// assigned holds that an error is that of a cell that was assigned to.
func assigned(t *testing.T, what string, err error, cell string) {
	t.Helper()
	var e *state.AssignError
	if !errors.As(err, &e) || e.Cell != cell {
		t.Errorf("%s: the error is %v, want that cell %q was assigned to", what, err, cell)
	}
}

// What a node, or what stands around a graph inside, assigns to a cell is not lost without a word:
// the visit fails by the name of the cell, with a store and without.
func TestAssignedCellsFailTheVisit(t *testing.T) {
	quiet(t)
	b := dag.New[Tale]("inner")
	dag.Step(b, "step", nothing[Tale])
	inner := frozen(t, b)
	input := func(s *Tale) { s.Word.Set("word"); s.Said.Append("said") }
	keep := func(from, to *Tale) { to.Said.Replace(from.Said.Slice()) }
	one := func(*Tale) []int { return []int{1} }
	step := func(f func(s *Tale)) func(*dag.Builder[Tale]) {
		return func(b *dag.Builder[Tale]) {
			dag.Step(b, "visit", func(_ context.Context, s *Tale) error { f(s); return nil })
		}
	}
	for name, c := range map[string]struct {
		cell, visit string
		build       func(*dag.Builder[Tale])
	}{
		"step": {"Said", "visit", step(func(s *Tale) { s.Said = state.List[string]{}; s.Said.Append("anew") })},
		"all":  {"Said", "visit", step(func(s *Tale) { *s = Tale{} })},
		"parallel": {"Word", "visit", func(b *dag.Builder[Tale]) {
			step(func(s *Tale) { s.Word = state.Value[string]{} })(b)
			dag.Step(b, "beside", nothing[Tale])
		}},
		"in": {"Word", "visit", func(b *dag.Builder[Tale]) {
			dag.Embed(b, "visit", inner, func(from, to *Tale) { to.Word = from.Word }, keep)
		}},
		"out": {"Word", "visit", func(b *dag.Builder[Tale]) {
			dag.Embed(b, "visit", inner, keep, func(from, to *Tale) { to.Word = from.Word })
		}},
		"in of an item": {"Word", "visit/1", func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "visit", one, inner, func(from *Tale, _ int, to *Tale) { to.Word = from.Word }, func(*Tale, int, *Tale) {})
		}},
		"out of an item": {"Said", "visit/1", func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "visit", one, inner, func(*Tale, int, *Tale) {}, func(_ *Tale, _ int, to *Tale) { *to = Tale{} })
		}},
		"item": {"Said", "visit/1", func(b *dag.Builder[Tale]) {
			dag.Each(b, "visit", one, func(_ context.Context, s *Tale, _ int) error { *s = Tale{}; return nil })
		}},
	} {
		b := dag.New[Tale]("assigns")
		c.build(b)
		g := frozen(t, b)
		for _, store := range []checkpoint.Store{new(memory.Store), nil} {
			res, err := process(t, g, store, dispatcher.Options{}).Start(t.Context(), run, input)
			rests(t, res, err, checkpoint.StatusFailed, c.visit)
			assigned(t, name, err, c.cell)
			var node *dispatcher.NodeError
			if !errors.As(err, &node) || node.Kind != dag.FailedState {
				t.Errorf("%s: the error is %v, want one of the state", name, err)
			}
		}
	}
}

// A call that is given a function that assigns refuses it, and nothing has changed.
func TestAssignedInputIsRefused(t *testing.T) {
	quiet(t)
	b := dag.New[Tale]("assigns")
	dag.Step(b, "step", nothing[Tale])
	var store memory.Store
	d, ctx := process(t, frozen(t, b), &store, dispatcher.Options{InterruptBefore: []string{"step"}}), t.Context()
	res, err := d.Run(ctx, run, func(s *Tale) { s.Word.Set("word") })
	rests(t, res, err, checkpoint.StatusInterrupted, "step")
	copied := func(s *Tale) { *s = *res.State }
	_, err = d.Run(ctx, "other", copied)
	assigned(t, "Run", err, "Word")
	unchanged(t, &store, run, func() {
		assigned(t, "Enqueue", d.Enqueue(ctx, run, copied), "Word")
		assigned(t, "Edit", d.Edit(ctx, run, func(s *Tale) { *s = Tale{} }, dispatcher.EditOptions{Reason: "a typo"}, dispatcher.Author("Ada")), "Word")
	})
	if res, err = d.Resume(ctx, run); err != nil {
		t.Fatal(err)
	}
	unchanged(t, &store, run, func() {
		_, err = d.Turn(ctx, run, func(s *Tale) { *s = Tale{} })
		assigned(t, "Turn", err, "Word")
	})
	if res, err = d.Turn(ctx, run, func(s *Tale) { *s = *res.State; s.Count.Add(1) }); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Errorf("a turn that assigns what is there, and writes: %v", err)
	}
	if res.State.Count.Get() != 1 || res.State.Word.Get() != "word" {
		t.Errorf("the state is %+v", res.State)
	}
}

// A Meddler is a state whose Check writes.
type Meddler struct {
	Count state.Sum[int]
	Said  state.List[string]
}

func (m *Meddler) Check() error {
	if m.Count.Get() == 1 {
		m.Said = state.List[string]{}
	}
	return nil
}

// A Check that changes what it looks at is a fault of the kind check, and its cell is named: the
// live run would part from its log.
func TestCheckThatWritesIsAFault(t *testing.T) {
	quiet(t)
	b := dag.New[Meddler]("meddler")
	dag.Step(b, "step", func(_ context.Context, m *Meddler) error { m.Count.Add(1); return nil })
	var store memory.Store
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, func(m *Meddler) { m.Said.Append("input") })
	rests(t, res, err, checkpoint.StatusFailed, "step")
	var fault *dispatcher.FaultError
	if !errors.As(err, &fault) || fault.Kind != "check" || fault.Message != `state: Check has written to cell "Said": it may only read` {
		t.Errorf("the error is %v, want a fault of the check", err)
	}
	if n := res.State.Said.Len(); n != 1 {
		t.Errorf("the state says %d things, want that of the input", n)
	}
}
