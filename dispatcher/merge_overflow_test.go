package dispatcher_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// What a Loop has added to a Sum in all can be too large though the Sum never was: then its
// superstep can't be merged, and the run fails, as often as it is gone on with. The process goes
// on.
func TestASumThatOverflowsWhatALoopHasAdded(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]func(b *dag.Builder[Tale]){
		"alone": func(b *dag.Builder[Tale]) { dag.Step(b, "add", addMost) },
		"beside another": func(b *dag.Builder[Tale]) {
			dag.Step(b, "add", addMost)
			dag.Step(b, "nothing", func(context.Context, *Tale) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			graph := func() *dag.Graph[Tale] {
				body, b := dag.New[Tale]("body"), dag.New[Tale]("tale")
				shape(body)
				dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == math.MaxInt-2 }, 5)
				return frozen(t, b)
			}
			store := new(memory.Store)
			_, err := process(t, graph(), store, dispatcher.Options{}).Start(t.Context(), run, func(s *Tale) { s.Count.Add(-5) })
			for range 2 {
				var fault *dispatcher.FaultError
				if !errors.As(err, &fault) || fault.Kind != "merge" || !errors.Is(err, state.ErrOverflow) {
					t.Errorf("it ends with %v, want a fault of its merge", err)
				}
				_, err = process(t, graph(), store, dispatcher.Options{}).Resume(t.Context(), run)
			}
			if info, err := store.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusFailed {
				t.Errorf("the run is %v, %v", info.Status, err)
			}
		})
	}
}

// addMost adds as much as can be, and then 3.
func addMost(_ context.Context, s *Tale) error {
	if s.Count.Get() < 0 {
		s.Count.Add(math.MaxInt)
	} else {
		s.Count.Add(3)
	}
	return nil
}

// An edit of a Loop's state that fits, but not into what the Loop has added in all, is refused for
// what it is: nothing is wrong with the log, and the run goes on as it was.
func TestAnEditThatOverflowsWhatALoopHasAdded(t *testing.T) {
	t.Parallel()
	body, b := dag.New[Tale]("body"), dag.New[Tale]("tale")
	first := dag.Step(body, "add", addMost)
	dag.Step(body, "behind", func(context.Context, *Tale) error { return nil }, first)
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 5)
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Options{InterruptBefore: []string{"loop/behind"}})
	res, err := d.Start(t.Context(), run, func(s *Tale) { s.Count.Add(-5) })
	rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/behind")
	before, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(3) },
		dispatcher.EditOptions{Frame: "loop", Reason: "too little"}, dispatcher.Author("Ada"))
	if !errors.Is(err, state.ErrOverflow) || errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Edit = %v, want ErrOverflow", err)
	}
	if after, err := store.Stat(t.Context(), run); err != nil || after.Head != before.Head {
		t.Errorf("the run stands at %d, %v, and stood at %d", after.Head.Seq, err, before.Head.Seq)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
}
