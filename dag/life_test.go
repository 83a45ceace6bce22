package dag_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

// A graph with several things wrong is refused with a reason of its own for each, all of them
// at once. (A cycle can't be written: a node follows handles of nodes that exist.)
func TestLife01EveryProblemHasItsReason(t *testing.T) {
	elsewhere := dag.Step(dag.New[Notes]("other"), "elsewhere", step)
	b := dag.New[Notes]("broken")
	r := dag.Route(b, "route", choose, ways)
	left := dag.Step(b, "left", step, r.On(Left))
	dag.Step(b, "left", step)
	dag.Step(b, "foreign", step, elsewhere)
	dag.Step(b, "unreachable", step, dag.All[Notes](left, r.On(Right)))
	dag.Step(b, "empty", nil)
	_, err := b.Build()
	var all *dag.BuildError
	if !errors.As(err, &all) {
		t.Fatalf("Build returned %v", err)
	}
	reasons := map[string]string{}
	for _, problem := range all.Problems {
		var p *dag.Problem
		if !errors.As(problem, &p) {
			t.Fatalf("%v is no Problem", problem)
		}
		reason := strings.ReplaceAll(p.Text, p.Node, "…")
		for node, other := range reasons {
			if reason == other {
				t.Errorf("nodes %q and %q are refused for the same reason: %s", node, p.Node, reason)
			}
		}
		reasons[p.Node] = reason
	}
	for _, node := range []string{"left", "foreign", "unreachable", "empty"} {
		if reasons[node] == "" {
			t.Errorf("nothing is said of node %q: %v", node, err)
		}
	}
}
