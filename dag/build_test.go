package dag_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// Notes is the state of the graphs in these tests.
type Notes struct {
	Text  state.Value[string]
	Count state.Sum[int]
}

func step(context.Context, *Notes) error          { return nil }
func choose(context.Context, *Notes) (Way, error) { return Left, nil }
func never(*Notes) bool                           { return false }
func keep(_, _ *Notes)                            {}

type Way string

const (
	Left  Way = "left"
	Right Way = "right"
)

var ways = []Way{Left, Right}

// small is a valid graph to nest.
func small(t *testing.T) *dag.Graph[Notes] {
	t.Helper()
	b := dag.New[Notes]("small")
	dag.Step(b, "only", step)
	return mustBuild(t, b)
}

func mustBuild[S any](t testing.TB, b *dag.Builder[S]) *dag.Graph[S] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// texts returns the problems of err, each without the word "dag:".
func texts(t *testing.T, err error) []string {
	t.Helper()
	var failed *dag.BuildError
	if !errors.As(err, &failed) {
		t.Fatalf("Build returned %v (%T), want a *BuildError", err, err)
	}
	var s []string
	for _, p := range failed.Problems {
		text, ok := strings.CutPrefix(p.Error(), "dag: ")
		if !ok {
			t.Errorf("the problem %q does not begin with the package", p)
		}
		s = append(s, text)
	}
	return s
}

// Part 1, scenario 1: a node with two outcomes of which one is routed.
func TestUnfollowedOutcomeNamesNodeAndOutcome(t *testing.T) {
	b := dag.New[Notes]("g")
	r := dag.Route(b, "classify", choose, ways)
	dag.Step(b, "next", step, r.On(Left))
	_, err := b.Build()
	var p *dag.Problem
	if !errors.As(err, &p) || p.Node != "classify" || p.Outcome != "right" {
		t.Errorf("problem %+v, want one of node classify, outcome right", p)
	}
}

// Part 1, scenario 2: one error lists everything.
func TestEveryProblemAtOnce(t *testing.T) {
	b := dag.New[Notes]("bad name")
	r := dag.Route(b, "r", choose, ways)
	dag.Step(b, "a", nil, r.On("up"))
	dag.Step(b, "a", step, nil)
	_, err := b.Build()
	want := `dag: graph "bad name": 7 problems:
	the graph: the name "bad name" contains ' '
	node "r": outcome "left" is followed by no node: follow it, or name it in End
	node "r": outcome "right" is followed by no node: follow it, or name it in End
	node "a": its function is nil
	node "a": follows outcome "up" of node "r", which declares "left", "right"
	node "a": the name is taken by an earlier node
	node "a": follows a nil edge`
	if err == nil || err.Error() != want {
		t.Errorf("Build: %v\nwant: %s", err, want)
	}
}

func TestOneProblemIsOneLine(t *testing.T) {
	_, err := dag.New[Notes]("g").Build()
	if want := `dag: graph "g": the graph has no nodes`; err == nil || err.Error() != want {
		t.Errorf("Build: %v, want %s", err, want)
	}
}

// Plain is no state: its fields are no cells.
type Plain struct {
	Name  string
	Title string
}

func TestProblemsOfTheStateTypeAreReportedWithTheOthers(t *testing.T) {
	b := dag.New[Plain]("g")
	dag.Step(b, "a", nil)
	_, err := b.Build()
	message := fmt.Sprint(err)
	for _, want := range []string{"Plain.Name", "Plain.Title", `node "a": its function is nil`} {
		if !strings.Contains(message, want) {
			t.Errorf("Build: %v\nwant it to mention %s", err, want)
		}
	}
	if got := len(texts(t, err)); got != 3 {
		t.Errorf("%d problems, want 3: %v", got, err)
	}
	var p *dag.Problem
	if !errors.As(err, &p) || p.Err == nil || !errors.Is(err, p.Err) {
		t.Errorf("the first problem is %+v, want it to wrap what package state found", p)
	}
}

func TestNestingHasALimit(t *testing.T) {
	g := small(t)
	for depth := 2; depth <= dag.MaxDepth; depth++ {
		b := dag.New[Notes]("g")
		dag.Loop(b, "deeper", g, never, 1)
		g = mustBuild(t, b)
		if got := g.Plan().Depth; got != depth {
			t.Fatalf("Depth = %d, want %d", got, depth)
		}
	}
	b := dag.New[Notes]("g")
	dag.Loop(b, "deeper", g, never, 1)
	_, err := b.Build()
	want := []string{`node "deeper": graphs are nested 33 deep, the limit is 32`}
	if got := texts(t, err); !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	var limit *dag.LimitError
	if !errors.As(err, &limit) || *limit != (dag.LimitError{Limit: "depth", Max: dag.MaxDepth, Is: dag.MaxDepth + 1}) {
		t.Errorf("the limit is %+v", limit)
	}
}

// The nodes of a nested graph count each time that it is nested, however deep: for Build, and for
// who reads a graph that says so.
func TestNodesHaveALimit(t *testing.T) {
	half := dag.New[Notes]("half")
	for i := range dag.MaxNodes/2 - 2 {
		dag.Step(half, fmt.Sprint("n", i), step)
	}
	middle := dag.New[Notes]("middle")
	dag.Loop(middle, "half", mustBuild(t, half), never, 1)
	g := mustBuild(t, middle)
	b := dag.New[Notes]("g")
	dag.Loop(b, "a", g, never, 1)
	dag.Loop(b, "b", g, never, 1)
	full := string(mustBuild(t, b).Plan().JSON)
	if _, err := dag.ParsePlan([]byte(full)); err != nil {
		t.Error(err)
	}
	more := strings.Replace(full, `"nodes":[`, `"nodes":[{"name":"one-more","kind":"step"},`, 1)
	if _, err := dag.ParsePlan([]byte(more)); err == nil || !strings.Contains(err.Error(), "it has 100001 nodes, the limit is 100000") {
		t.Errorf("a graph of one more is parsed: %v", err)
	}
	dag.Step(b, "one-more", step)
	_, err := b.Build()
	want := []string{`the graph has 100001 nodes, nested graphs included; the limit is 100000`}
	if got := texts(t, err); !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	var limit *dag.LimitError
	if !errors.As(err, &limit) || *limit != (dag.LimitError{Limit: "nodes", Max: dag.MaxNodes, Is: dag.MaxNodes + 1}) {
		t.Errorf("the limit is %+v", limit)
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "compose-loop", "v2", "2nd", "größe", "a.b:c_d", "-1", strings.Repeat("x", dag.MaxName)} {
		if err := dag.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
	bad := []string{
		"", "7", "0042", "a b", "a\tb", "a\nb", "a\u00a0b", "a\u2028b", "a\x00", "a\u0085",
		"\xff", strings.Repeat("x", dag.MaxName+1),
		"a/b", "a@1", "a,b", "a#b", `a"b`, "a`b", `a\b`,
	}
	for _, name := range bad {
		err := dag.CheckName(name)
		if err == nil || !strings.HasPrefix(err.Error(), "dag: the name ") {
			t.Errorf("CheckName(%q) = %v, want a refusal", name, err)
		}
	}
}
