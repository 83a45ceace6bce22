package milestone_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/milestone"
)

// A number is 0 before anybody writes it, which is over a threshold below 0: it rises over that
// when it was below.
func TestRisesOverLessThanZero(t *testing.T) {
	b := dag.New[Task]("task")
	var last []dag.Edge[Task]
	for i, value := range []float64{0, 3, -2, 1} {
		last = []dag.Edge[Task]{dag.Step(b, fmt.Sprint("set-", i), func(_ context.Context, s *Task) error {
			s.Confidence.Set(value)
			return nil
		}, last...)}
	}
	d := dispatch(t, build(t, b), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Rises("Confidence", -1), milestone.Rises("Rounds", -1), milestone.Rises("Confidence", 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Name(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	want := []string{"rises Confidence -1 1 is @4", "rises Confidence 0 1 is @4", "rises Confidence 0 3 is @2"}
	if got := tags(t, d, "r"); !slices.Equal(got, want) {
		t.Errorf("named are %q", got)
	}
}

// Nor is it over 0, so that what the first superstep writes may be.
func TestRisesOverZeroAtOnce(t *testing.T) {
	b := dag.New[Task]("task")
	dag.Step(b, "set", func(_ context.Context, s *Task) error { s.Confidence.Set(0.5); return nil })
	p := paired(t, dispatch(t, build(t, b), new(memory.Store)), milestone.Rises("Confidence", 0))
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "rises Confidence 0 0.5")
}
