package dag_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// edges writes what a node follows as the graph's JSON does, for tables.
func edges(p *dag.Plan, e dag.Expr) string {
	s := ""
	switch e.Op {
	case dag.OpNone:
		return "-"
	case dag.OpNode:
		s = p.Nodes[e.Node].Name
		if e.On != nil {
			s += fmt.Sprint(e.On)
		}
		if e.Failed {
			s += "!"
		}
		return s
	case dag.OpAll:
		s = "all("
	case dag.OpAny:
		s = "any("
	}
	for i, member := range e.Of {
		if i > 0 {
			s += " "
		}
		s += edges(p, member)
	}
	return s + ")"
}

func TestJoins(t *testing.T) {
	type builder = *dag.Builder[Notes]
	for _, c := range []struct {
		rule  string
		build func(b builder)
		want  string // what the last node follows
	}{
		{"a node that follows nothing always runs", func(b builder) {
			dag.Step(b, "a", step)
		}, "-"},
		{"one edge is itself", func(b builder) {
			dag.Step(b, "b", step, dag.Step(b, "a", step))
		}, "a"},
		{"edges that are always taken together are all waited for", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			x, y := dag.Step(b, "x", step, r.On(Left)), dag.Step(b, "y", step, r.On(Left))
			dag.End(b, r)
			dag.Step(b, "z", step, x, y, r.On(Left))
		}, "all(x y r[left])"},
		{"outcomes of one route count as one edge", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			dag.Step(b, "z", step, dag.Step(b, "x", step, r.On(Left)), r.On(Right))
		}, "any(x r[right])"},
		{"outcomes of an each do", func(b builder) {
			e := dag.Each(b, "e", numbers, nothing)
			dag.Step(b, "z", step, e.On(dag.Done), dag.Step(b, "x", step, e.On(dag.Empty)))
		}, "any(e[done] x)"},
		{"outcomes of a choose don't, and are one edge in one On", func(b builder) {
			c := dag.Choose(b, "c", several, ways)
			dag.Step(b, "z", step, c.On(Right, Left))
		}, "c[left right]"},
		{"what one outcome of a choose leads to is always taken together", func(b builder) {
			c := dag.Choose(b, "c", several, ways)
			dag.End(b, c)
			x, y := dag.Step(b, "x", step, c.On(Left)), dag.Step(b, "y", step, c.On(Left))
			dag.Step(b, "z", step, x, y, c.On(Left))
		}, "all(x y c[left])"},
		{"a choose and its failure exclude each other", func(b builder) {
			c := dag.Choose(b, "c", several, ways)
			dag.Step(b, "z", step, c, c.Failed())
		}, "any(c c!)"},
		{"outcomes of a loop do too", func(b builder) {
			l := dag.Loop(b, "l", mustGraph("body"), never, 2)
			dag.Step(b, "z", step, l.On(dag.Done), dag.Step(b, "x", step, l.On(dag.Exhausted)))
		}, "any(l[done] x)"},
		{"a node and its failure do too", func(b builder) {
			a := dag.Step(b, "a", step)
			dag.Step(b, "z", step, a, dag.Step(b, "rescue", step, a.Failed()))
		}, "any(a rescue)"},
		{"of a route, every outcome excludes its failure", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			dag.Step(b, "z", step, r.On(Left), r.On(Right), r.Failed())
		}, "any(r[left] r[right] r!)"},
		{"three of which every two exclude each other", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			s := dag.Route(b, "s", choose, ways, r.On(Right))
			dag.Step(b, "z", step, r.On(Left), s.On(Left), s.On(Right))
		}, "any(r[left] s[left] s[right])"},
		{"a route that is rejoined is as if it had not been", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			x, y := dag.Step(b, "x", step, r.On(Left)), dag.Step(b, "y", step, r.On(Right))
			joined := dag.Step(b, "joined", step, x, y)
			other := dag.Step(b, "other", step)
			dag.Step(b, "z", step, joined, other)
		}, "all(joined other)"},
		{"two routes that are rejoined one after the other", func(b builder) {
			r := dag.Route(b, "r", choose, ways)
			s := dag.Route(b, "s", choose, ways, r.On(Left))
			j := dag.Step(b, "j", step, dag.Any(s.On(Right), r.On(Right), s.On(Left)))
			dag.Step(b, "z", step, j, dag.Step(b, "other", step))
		}, "all(j other)"},
		{"unions go on until no two guards can be united", func(b builder) {
			r, s := dag.Route(b, "r", choose, ways), dag.Route(b, "s", choose, ways)
			dag.End[Notes](b, r, s)
			u := dag.Step(b, "u", step, dag.Any(r.On(Left),
				dag.All(r.On(Right), s.On(Left)), dag.All(r.On(Right), s.On(Right))))
			dag.Step(b, "z", step, u, dag.Step(b, "other", step))
		}, "all(u other)"},
		{"words stay as they are given, and nest", func(b builder) {
			x, y := dag.Step(b, "x", step), dag.Step(b, "y", step)
			dag.Step(b, "z", step, dag.Any(dag.All[Notes](x, y), x.Failed(), y.Failed()))
		}, "any(all(x y) x! y!)"},
		{"a word for one edge is that edge", func(b builder) {
			dag.Step(b, "b", step, dag.All(dag.Any[Notes](dag.Step(b, "a", step))))
		}, "a"},
		{"outcomes are in declared order", func(b builder) {
			r := dag.Route(b, "r", choose, []Way{"c", "a", "b"})
			dag.End(b, r)
			dag.Step(b, "z", step, r.On("b", "a", "c"))
		}, "r[c a b]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			b := dag.New[Notes]("g")
			c.build(b)
			p := mustBuild(t, b).Plan()
			if got := edges(p, p.Nodes[len(p.Nodes)-1].Follows); got != c.want {
				t.Errorf("the last node follows %s, want %s", got, c.want)
			}
		})
	}
}

func mustGraph(name string) *dag.Graph[Notes] {
	b := dag.New[Notes](name)
	dag.Step(b, "draft", step)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

func TestPlan(t *testing.T) {
	b := dag.New[Notes]("g")
	r := dag.Route(b, "r", choose, ways)
	x := dag.Step(b, "x", step, r.On(Left)).With(dag.Policy{Attempts: 3, Timeout: time.Second})
	y := dag.Loop(b, "y", mustGraph("body"), never, 5, r.On(Left), r.On(Left))
	dag.Embed(b, "z", mustGraph("inner"), keep, keep, dag.Any(dag.All[Notes](x, y), r.On(Right), x.Failed()))
	dag.End(b, r.Failed())
	p := mustBuild(t, b).Plan()

	if p.Name != "g" || p.Depth != 2 || p.Schema == nil {
		t.Errorf("name %q, depth %d, schema %v", p.Name, p.Depth, p.Schema)
	}
	if want := [][]int{{1, 2, 3}, {3}, {3}, nil}; !reflect.DeepEqual(p.Followers, want) {
		t.Errorf("Followers = %v, want %v", p.Followers, want)
	}
	var waits []int
	var failure []bool
	for _, n := range p.Nodes {
		waits = append(waits, n.Waits)
		failure = append(failure, n.FailureFollowed)
	}
	if want := []int{0, 1, 1, 3}; !slices.Equal(waits, want) {
		t.Errorf("Waits = %v, want %v", waits, want)
	}
	if want := []bool{true, true, false, false}; !slices.Equal(failure, want) {
		t.Errorf("FailureFollowed = %v, want %v: by a node or by End", failure, want)
	}
	if n := p.Nodes[1]; n.Kind != dag.KindStep || n.Policy.Attempts != 3 || n.Run == nil {
		t.Errorf("x is %+v", n)
	}
	if n := p.Nodes[2]; n.Kind != dag.KindLoop || n.Most != 5 || n.Body.Name != "body" ||
		!slices.Equal(n.Outcomes, []string{"done", "exhausted"}) || n.Until == nil || n.Until(new(Notes)) {
		t.Errorf("y is %+v", n)
	}
	if n := p.Nodes[3]; n.Kind != dag.KindEmbed || n.Body.Name != "inner" || n.In == nil || n.Out == nil {
		t.Errorf("z is %+v", n)
	}
}

// What the plan holds are the functions that were given, without their types.
func TestPlanCallsTheFunctionsOfTheGraph(t *testing.T) {
	b := dag.New[Notes]("g")
	failure := errors.New("no")
	dag.Step(b, "s", func(_ context.Context, n *Notes) error {
		n.Text.Set("s was here")
		return failure
	})
	dag.End(b, dag.Route(b, "r", choose, ways))
	dag.Loop(b, "l", mustGraph("body"), func(n *Notes) bool { return n.Text.Get() == "enough" }, 2)
	dag.Embed(b, "e", mustGraph("inner"),
		func(from, to *Notes) { to.Text.Set("in of " + from.Text.Get()) },
		func(from, to *Notes) { to.Text.Set("out of " + from.Text.Get()) })
	g := mustBuild(t, b)
	n := g.Plan().Nodes

	var s, other Notes
	if o, err := n[0].Run(t.Context(), &s); o != "" || err != failure || s.Text.Get() != "s was here" {
		t.Errorf("s: %q, %v, wrote %q", o, err, s.Text.Get())
	}
	if o, err := n[1].Run(t.Context(), &s); o != "left" || err != nil {
		t.Errorf("r: %q, %v, want left", o, err)
	}
	if n[2].Until(&s) {
		t.Error("until is true before there is enough")
	}
	s.Text.Set("enough")
	if !n[2].Until(&s) {
		t.Error("until is false when there is enough")
	}
	if n[3].In(&s, &other); other.Text.Get() != "in of enough" {
		t.Errorf("in wrote %q", other.Text.Get())
	}
	if n[3].Out(&other, &s); s.Text.Get() != "out of in of enough" {
		t.Errorf("out wrote %q", s.Text.Get())
	}
	if g.Name() != "g" {
		t.Errorf("Name = %q", g.Name())
	}
}

func TestALaterChangeToTheBuilderLeavesTheGraph(t *testing.T) {
	b := dag.New[Notes]("g")
	outcomes := []Way{Left, Right}
	r := dag.Route(b, "r", choose, outcomes)
	of := []dag.Edge[Notes]{r.On(Left), r.On(Right)}
	x := dag.Step(b, "x", step, dag.Any(of...))
	outcomes[0], of[0] = "changed", nil
	g := mustBuild(t, b)

	dag.Step(b, "y", step, x.Failed(), r.Failed())
	x.With(dag.Policy{Attempts: 9})
	if p := g.Plan(); len(p.Nodes) != 2 || p.Nodes[1].Policy.Attempts != 0 ||
		p.Nodes[0].FailureFollowed || p.Followers[1] != nil || p.Nodes[0].Outcomes[0] != "left" {
		t.Errorf("the graph has changed: %+v", p)
	}
	if p := mustBuild(t, b).Plan(); edges(p, p.Nodes[2].Follows) != "any(x! r!)" || !p.Nodes[0].FailureFollowed {
		t.Errorf("the second graph is not what was added: %+v", p)
	}
}

func TestBuildMayBeCalledAgain(t *testing.T) {
	b := dag.New[Notes]("g")
	x := dag.Step(b, "x", nil)
	if _, err := b.Build(); len(texts(t, err)) != 1 {
		t.Errorf("Build: %v", err)
	}
	dag.Step(b, "y", nil, x)
	if _, err := b.Build(); len(texts(t, err)) != 2 {
		t.Errorf("a second Build: %v", err)
	}
	ok := dag.New[Notes]("g")
	dag.Step(ok, "x", step)
	if one, two := mustBuild(t, ok), mustBuild(t, ok); one.Digest() != two.Digest() {
		t.Error("two builds of one Builder differ")
	}
}

// A long graph, in which every node can go two ways, is built in time proportional to it.
func TestLongGraph(t *testing.T) {
	b := dag.New[Notes]("g")
	r := dag.Route(b, "n", choose, ways)
	for i := range 20_000 {
		dag.End(b, r.On(Right))
		r = dag.Route(b, fmt.Sprint("n", i), choose, ways, r.On(Left))
	}
	dag.End(b, r)
	if got := len(mustBuild(t, b).Plan().Nodes); got != 20_001 {
		t.Errorf("%d nodes", got)
	}
}
