package dispatcher_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Scenarios are stories of what a user does and what must come of it. Their numbers are
// theirs for good; four have no test:
//
//   - 4, a graph that nests itself by way of another: a Loop or an Embed takes a built Graph,
//     which cannot contain what is built later, so it can't be written.
//   - 7, a jump to an unknown node: nodes are followed by handles, nobody jumps.
//   - 22 and 23, side stores of a checkpoint that are missing or of another type: whatever has
//     to travel with a run is a cell of its state.

func TestScenario01OutcomeThatNobodyFollows(t *testing.T) {
	quiet(t)
	var w witness
	b := dag.New[Tale]("fork")
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left, right})
	dag.Step(b, "west", w.sees(nil), choose.On(left))
	g, err := b.Build()
	var problem *dag.Problem
	if g != nil || !errors.As(err, &problem) || problem.Node != "choose" || problem.Outcome != "right" {
		t.Fatalf("Build returned %v, want a problem of node choose, outcome right", err)
	}
	for _, word := range []string{"choose", "right"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the message %q does not name %s", err, word)
		}
	}
}

func TestScenario02EveryProblemAtOnce(t *testing.T) {
	quiet(t)
	var w witness
	empty := dag.New[Tale]("empty")
	if _, err := empty.Build(); err == nil {
		t.Error("a graph without any node was built")
	}
	elsewhere := dag.Step(empty, "elsewhere", w.sees(nil))

	b := dag.New[Tale]("broken")
	dag.Step(b, "twin", w.sees(nil))
	dag.Step(b, "twin", w.sees(nil))
	dag.Step(b, "lost", w.sees(nil), elsewhere)
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left, right})
	dag.Step(b, "west", w.sees(nil), choose.On(left))
	_, err := b.Build()
	var all *dag.BuildError
	if !errors.As(err, &all) || len(all.Problems) != 3 {
		t.Fatalf("Build returned %v, want three problems", err)
	}
	for i, node := range []string{"twin", "lost", "choose"} {
		var p *dag.Problem
		if !errors.As(all.Problems[i], &p) || p.Node != node {
			t.Errorf("problem %d is %v, want one of node %s", i+1, all.Problems[i], node)
		}
	}
}

func TestScenario03UndeclaredOutcome(t *testing.T) {
	quiet(t)
	var w witness
	wrong := true
	b := dag.New[Tale]("fork")
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way {
		if wrong {
			return "up"
		}
		return right
	}), []way{left, right})
	dag.Step(b, "west", w.sees(nil), choose.On(left))
	dag.Step(b, "east", w.sees(nil), choose.On(right))
	g := frozen(t, b)
	var store memory.Store

	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "choose")
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) || failed.Path != "choose" || failed.Kind != dag.FailedOutcome {
		t.Errorf("the error is %v, want a NodeError of choose, kind %s", err, dag.FailedOutcome)
	}
	for _, word := range []string{`"up"`, "left", "right"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the message %q does not name %s", err, word)
		}
	}
	says(t, res.State)

	wrong = false
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "choose", "choose#2", "east")
}
