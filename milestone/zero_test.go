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

// A number is 0 before anybody writes it, which is over a threshold below 0: it rises over that when it was below.
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
	n, err := milestone.New(d, milestone.Rises("Confidence", -1), milestone.Rises("Rounds", -1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Name(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if got := tags(t, d, "r"); !slices.Equal(got, []string{"rises Confidence -1 1 is @4"}) {
		t.Errorf("named are %q", got)
	}
}
