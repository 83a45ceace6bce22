package dag_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// A refusal is a graph that Build refuses, and all that it says about it.
type refusal struct {
	rule  string
	build func(t *testing.T, b *dag.Builder[Notes])
	want  []string
}

func numbers(*Notes) []int { return nil }

func nothing(context.Context, *Notes, int) error { return nil }

func several(context.Context, *Notes) ([]Way, error) { return ways, nil }

var refusals = []refusal{
	{
		"a graph has nodes", func(t *testing.T, b *dag.Builder[Notes]) {},
		[]string{`the graph has no nodes`},
	},
	{"names differ", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "a", step)
		dag.Step(b, "a", step)
		dag.Step(b, "a", step)
	}, []string{`node "a": the name is taken by an earlier node`}},
	{"a name is a part of paths", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "", step)
		dag.Fail(b, "a/b")
		dag.Step(b, "12", step)
	}, []string{
		`node "": the name is empty (it is node number 1)`,
		`node "a/b": the name "a/b" contains '/' (it is node number 2)`,
		`node "12": the name "12" is made of digits only, as an iteration's number is (it is node number 3)`,
	}},
	{"a step has a function", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "a", nil)
	}, []string{`node "a": its function is nil`}},
	{"a route has a function", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.End(b, dag.Route(b, "a", nil, ways))
	}, []string{`node "a": its function is nil`}},
	{"a loop has a graph, until and a bound", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Loop(b, "a", nil, nil, 0)
		dag.Loop(b, "b", &dag.Graph[Notes]{}, never, -1)
	}, []string{
		`node "a": its function until is nil`,
		`node "a": it may run 0 times: most has to be at least 1`,
		`node "a": its graph is nil or has not been built: give the one that Build returned`,
		`node "b": it may run -1 times: most has to be at least 1`,
		`node "b": its graph is nil or has not been built: give the one that Build returned`,
	}},
	{"an embed has a graph, in and out", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Embed[Notes, Notes](b, "a", nil, nil, nil)
	}, []string{
		`node "a": its function in is nil`,
		`node "a": its function out is nil`,
		`node "a": its graph is nil or has not been built: give the one that Build returned`,
	}},
	{"an each has items and a function", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Each[Notes, int](b, "a", nil, nil)
	}, []string{
		`node "a": its function items is nil`,
		`node "a": its function is nil`,
	}},
	{"an each with graphs has items, a graph, in and out", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.EachGraph[Notes, int, Notes](b, "a", nil, nil, nil, nil)
	}, []string{
		`node "a": its function items is nil`,
		`node "a": its function in is nil`,
		`node "a": its function out is nil`,
		`node "a": its graph is nil or has not been built: give the one that Build returned`,
	}},
	{"attempts inside an each with graphs belong to the nodes of its graph", func(t *testing.T, b *dag.Builder[Notes]) {
		pass := func(*Notes, int, *Notes) {}
		dag.EachGraph(b, "a", numbers, small(t), pass, pass).With(dag.Policy{
			Attempts: 2, Timeout: 1, Backoff: dag.Constant(1), Retry: func(error) bool { return true }, Parallel: 2, Errors: dag.Collect,
		})
	}, []string{
		`node "a": Policy.Attempts belongs to the nodes of its graph, not to itself`,
		`node "a": Policy.Timeout belongs to the nodes of its graph, not to itself`,
		`node "a": Policy.Backoff belongs to the nodes of its graph, not to itself`,
		`node "a": Policy.Retry belongs to the nodes of its graph, not to itself`,
	}},
	{"Parallel and Errors belong to an each", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "a", step).With(dag.Policy{Parallel: 1})
		dag.Loop(b, "b", small(t), never, 1).With(dag.Policy{Errors: dag.Collect})
		dag.Each(b, "c", numbers, nothing).With(dag.Policy{Parallel: -1, Errors: 2, Attempts: -1})
	}, []string{
		`node "a": Policy.Parallel belongs to an Each`,
		`node "b": Policy.Errors belongs to an Each`,
		`node "c": Policy.Parallel is negative: -1`,
		`node "c": Policy.Errors is neither Stop nor Collect: 2`,
		`node "c": Policy.Attempts is negative: -1`,
	}},
	{"an each of which one outcome is named needs both", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.End(b, dag.Each(b, "a", numbers, nothing).On(dag.Empty))
	}, []string{`node "a": outcome "done" is followed by no node: follow it, or name it in End`}},
	{"a choose has a function and outcomes, and each is followed", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Choose[Notes, Way](b, "a", nil, nil)
		c := dag.Choose(b, "b", several, ways)
		dag.Step(b, "left", step, c.On(Left))
	}, []string{
		`node "a": its function is nil`,
		`node "a": a choose needs outcomes`,
		`node "b": outcome "right" is followed by no node: follow it, or name it in End`,
	}},
	{"outcomes of a choose don't exclude each other", func(t *testing.T, b *dag.Builder[Notes]) {
		c := dag.Choose(b, "c", several, ways)
		dag.Step(b, "join", step, c.On(Left), c.On(Right))
	}, []string{`node "join": joins edges of which some may be taken and others not ("c" on "left", "c" on "right"): ` +
		`write dag.All or dag.Any`}},
	{"the failure of a choose excludes its outcomes", func(t *testing.T, b *dag.Builder[Notes]) {
		c := dag.Choose(b, "c", several, ways)
		dag.Step(b, "join", step, dag.All(c.On(Left, Right), c.Failed()))
	}, []string{`node "join": can never run on all of ("c" on "left" or "right", failure of "c"): ` +
		`they exclude each other, by what becomes of node "c"`}},
	{"a route has outcomes", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Route(b, "a", choose, nil)
	}, []string{`node "a": a route needs outcomes`}},
	{"outcomes can be told apart", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.End(b, dag.Route(b, "a", choose, []Way{"", "x", "x", "x", "y\n", "\xff"}))
	}, []string{
		`node "a": outcome "" is empty`,
		`node "a": outcome "x" is declared twice`,
		`node "a": outcome "y\n" contains a control character`,
		`node "a": outcome "\xff" is not valid UTF-8`,
	}},
	{"every outcome is followed", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		dag.Step(b, "left", step, r.On(Left))
	}, []string{`node "classify": outcome "right" is followed by no node: follow it, or name it in End`}},
	{"the failure of a route is none of its outcomes", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways, nil...)
		dag.Step(b, "left", step, r.On(Left))
		dag.Step(b, "rescue", step, r.Failed())
	}, []string{`node "classify": outcome "right" is followed by no node: follow it, or name it in End`}},
	{"a loop of which one outcome is named needs both", func(t *testing.T, b *dag.Builder[Notes]) {
		l := dag.Loop(b, "again", small(t), never, 3)
		dag.End(b, l.On(dag.Done))
	}, []string{`node "again": outcome "exhausted" is followed by no node: follow it, or name it in End`}},
	{"an outcome that is followed is declared", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		dag.Step(b, "next", step, r.On(Left, "up"))
		dag.End(b, r, r.On("down"))
	}, []string{
		`node "next": follows outcome "up" of node "classify", which declares "left", "right"`,
		`End: follows outcome "down" of node "classify", which declares "left", "right"`,
	}},
	{"On names an outcome once", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		dag.Step(b, "next", step, r.On(Left, Right, Left, Left))
	}, []string{`node "next": names outcome "left" of node "classify" twice`}},
	{"an edge is an edge of this builder", func(t *testing.T, b *dag.Builder[Notes]) {
		other := dag.New[Notes]("other")
		foreign := dag.Step(other, "stranger", step)
		dag.Step(b, "a", step, nil, foreign)
		dag.Step(b, "b", step, dag.All[Notes](nil, dag.Any[Notes](foreign.Failed(), nil)))
		dag.Step(b, "c", step, dag.Node[Notes]{}, dag.RouteNode[Notes, Way]{})
		dag.End(b, foreign)
	}, []string{
		`node "a": follows a nil edge`,
		`node "a": follows node "stranger" of another builder, of graph "other"`,
		`node "b": follows a nil edge`,
		`node "b": follows node "stranger" of another builder, of graph "other"`,
		`node "b": follows a nil edge`,
		`node "c": follows the zero value of a node handle`,
		`node "c": follows the zero value of a node handle`,
		`End: follows node "stranger" of another builder, of graph "other"`,
	}},
	{"All and Any are of something", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "a", step, dag.All[Notes]())
		dag.Step(b, "b", step, dag.All(dag.Any[Notes]()))
		dag.End(b, dag.Any[Notes]())
	}, []string{
		`node "a": follows dag.All of nothing`,
		`node "b": follows dag.Any of nothing`,
		`End: follows dag.Any of nothing`,
	}},
	{"a join says which it means", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		left := dag.Step(b, "left", step, r.On(Left))
		dag.Step(b, "join", step, r, left)
		dag.Step(b, "after", step, r.On(Left), r.On(Right), r)
	}, []string{
		`node "join": joins edges of which some may be taken and others not ("classify", "left"): write dag.All or dag.Any`,
		`node "after": joins edges of which some may be taken and others not ("classify" on "left", "classify" on "right", "classify"): write dag.All or dag.Any`,
	}},
	{"a join of many names the first", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "r", choose, ways)
		edges := []dag.Edge[Notes]{r}
		for range 10 {
			edges = append(edges, r.On(Left))
		}
		dag.Step(b, "join", step, edges...)
	}, []string{
		`node "join": joins edges of which some may be taken and others not ("r", ` +
			strings.Repeat(`"r" on "left", `, 7) + `and 3 more): write dag.All or dag.Any`,
	}},
	{"a failure that is followed makes a join ambiguous", func(t *testing.T, b *dag.Builder[Notes]) {
		x := dag.Step(b, "x", step)
		y := dag.Step(b, "y", step)
		dag.Step(b, "both", step, x, y)
		dag.Step(b, "rescue", step, x.Failed())
	}, []string{
		`node "both": joins edges of which some may be taken and others not ("x", "y"): write dag.All or dag.Any`,
	}},
	{"an inexact union proves nothing", func(t *testing.T, b *dag.Builder[Notes]) {
		r, s := dag.Route(b, "r", choose, ways), dag.Route(b, "s", choose, ways)
		dag.End[Notes](b, r, s)
		corner := func(name string, x, y Way) dag.Node[Notes] {
			return dag.Step(b, name, step, dag.All(r.On(x), s.On(y)))
		}
		a, d := corner("a", Left, Left), corner("d", Right, Right)
		p := dag.Step(b, "p", step, a, d)
		q := dag.Step(b, "q", step, a, d)
		dag.Step(b, "join", step, p, q)
	}, []string{
		`node "join": joins edges of which some may be taken and others not ("p", "q"): write dag.All or dag.Any`,
	}},
	{"nor does one of guards that have a part in common", func(t *testing.T, b *dag.Builder[Notes]) {
		first := dag.Route(b, "first", choose, ways)
		dag.End[Notes](b, first)
		begin := dag.Step(b, "begin", step, first.On(Left))
		r, s := dag.Route(b, "r", choose, ways, begin), dag.Route(b, "s", choose, ways, begin)
		dag.End[Notes](b, r, s)
		p := dag.Step(b, "p", step, dag.Any(dag.All(r.On(Left), s.On(Left)), dag.All(r.On(Right), s.On(Right))))
		q := dag.Step(b, "q", step, begin)
		dag.Step(b, "join", step, p, q)
	}, []string{
		`node "join": joins edges of which some may be taken and others not ("p", "q"): write dag.All or dag.Any`,
	}},
	{"items can be said in JSON", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Each(b, "each", func(*Notes) []func() { return nil }, func(context.Context, *Notes, func()) error { return nil })
	}, []string{
		`node "each": has items that JSON can't say: func() holds func(); name each by a key and look up the rest in the node`,
	}},
	{"a node can run", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		left := dag.Step(b, "left", step, r.On(Left))
		right := dag.Step(b, "right", step, r.On(Right))
		dag.Step(b, "both", step, dag.All[Notes](left, right))
		dag.Step(b, "alarm", step, dag.All(left.Failed(), dag.Any[Notes](left)))
		dag.End(b, dag.Any(r.On(Left), dag.All(r.On(Left), r.On(Right))))
	}, []string{
		`node "both": can never run on all of ("left", "right"): they exclude each other, by what becomes of node "classify"`,
		`node "alarm": can never run on all of (failure of "left", "left"): they exclude each other, by what becomes of node "left"`,
		`End: can never be reached on all of ("classify" on "left", "classify" on "right"): they exclude each other, by what becomes of node "classify"`,
	}},
	{"what follows from a problem is not reported", func(t *testing.T, b *dag.Builder[Notes]) {
		r := dag.Route(b, "classify", choose, ways)
		both := dag.Step(b, "both", step, dag.All(r.On(Left), r.On(Right)))
		next := dag.Step(b, "next", step, both)
		dag.Step(b, "last", step, next, r)
	}, []string{
		`node "both": can never run on all of ("classify" on "left", "classify" on "right"): they exclude each other, by what becomes of node "classify"`,
	}},
	{"a policy counts forward", func(t *testing.T, b *dag.Builder[Notes]) {
		dag.Step(b, "a", step).With(dag.Policy{Attempts: -1, Timeout: -time.Second, Backoff: dag.Constant(-1)})
		dag.Step(b, "b", step).With(dag.Policy{Backoff: dag.Linear(-1, -time.Second)})
		dag.Step(b, "c", step).With(dag.Policy{Backoff: dag.Constant(1).Jitter(1.5)})
		dag.Step(b, "d", step).With(dag.Policy{Backoff: dag.Constant(1).Jitter(math.NaN())})
	}, []string{
		`node "a": Policy.Attempts is negative: -1`,
		`node "a": Policy.Timeout is negative: -1s`,
		`node "a": Policy.Backoff waits a negative time: -1ns`,
		`node "b": Policy.Backoff waits a negative time: -1ns`,
		`node "b": Policy.Backoff has a negative maximum: -1s`,
		`node "c": Policy.Backoff has a jitter of 1.5, which is not from 0 to 1`,
		`node "d": Policy.Backoff has a jitter of NaN, which is not from 0 to 1`,
	}},
	{"a policy belongs to user code", func(t *testing.T, b *dag.Builder[Notes]) {
		all := dag.Policy{
			Attempts: 2, Timeout: time.Second, Backoff: dag.Constant(time.Second),
			Retry: func(error) bool { return true },
		}
		dag.Loop(b, "again", small(t), never, 3).With(all)
		dag.Embed(b, "inside", small(t), keep, keep).With(dag.Policy{Timeout: 1})
	}, []string{
		`node "again": Policy.Attempts belongs to the nodes of its graph, not to itself`,
		`node "again": Policy.Timeout belongs to the nodes of its graph, not to itself`,
		`node "again": Policy.Backoff belongs to the nodes of its graph, not to itself`,
		`node "again": Policy.Retry belongs to the nodes of its graph, not to itself`,
		`node "inside": Policy.Timeout belongs to the nodes of its graph, not to itself`,
	}},
}

func TestBuildRefuses(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.rule, func(t *testing.T) {
			b := dag.New[Notes]("g")
			c.build(t, b)
			g, err := b.Build()
			if g != nil {
				t.Errorf("Build returned a graph beside an error")
			}
			if got := texts(t, err); !slices.Equal(got, c.want) {
				t.Errorf("problems:\n\t%s\nwant:\n\t%s",
					strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}
