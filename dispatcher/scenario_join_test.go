package dispatcher_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

func TestScenario41MergeRunsOnceAndSeesAll(t *testing.T) {
	quiet(t)
	var w witness
	var seen []string
	b := dag.New[Tale]("fan")
	source := dag.Step(b, "source", w.sees(nil))
	var fan []dag.Edge[Tale]
	for _, name := range []string{"a", "b", "c"} {
		fan = append(fan, dag.Step(b, name, w.sees(func(_ context.Context, s *Tale) error {
			if s.Said.Len() != 2 {
				t.Errorf("%s sees %q, and not only source and itself", name, s.Said.Slice())
			}
			s.Notes.Put(name, "was here")
			return nil
		}), source))
	}
	dag.Step(b, "merge", w.sees(func(_ context.Context, s *Tale) error {
		seen = append(seen, s.Said.Slice()...)
		if s.Notes.Len() != 3 {
			t.Errorf("merge sees the notes %v, want three", notes(s))
		}
		return nil
	}), fan...)
	var store memory.Store
	d := process(t, frozen(t, b), &store, dispatcher.Options{})

	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "source", "a", "b", "c", "merge")
	if want := []string{"source", "a", "b", "c", "merge"}; !slices.Equal(seen, want) {
		t.Errorf("merge saw %q, want %q", seen, want)
	}
	if res.Superstep != 3 {
		t.Errorf("the run took %d supersteps, want 3", res.Superstep)
	}
}
