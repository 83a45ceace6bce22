package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/dag"
)

// A bench is what the bodies of a run work under: body is called first in each, with the
// path of its visit, and fails the attempt if it returns an error; questions are what it
// asks then.
type bench struct {
	run       string
	body      func(ctx context.Context, path string) error
	questions func(path string) []string
	spec      *graphSpec // if it is set, the width of every Each is watched

	mu   sync.Mutex
	busy map[string]map[string]int // of each Each: bodies that are at work, by item
	wide []string                  // where there were too many
}

func benchOf(ctx context.Context) *bench { return ctx.Value(benchKey{}).(*bench) }

type benchKey struct{}

func (b *bench) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, benchKey{}, b)
}

var errPlanned = errors.New("this attempt fails")

// work is the body of every visit of n. told is what it has been given beside the state.
func work(ctx context.Context, n *nodeSpec, c *cells, told ...string) (string, error) {
	b := benchOf(ctx)
	path := benchPath(ctx, b.run)
	b.watch(path, 1)
	defer b.watch(path, -1)
	if b.body != nil {
		if err := b.body(ctx, path); err != nil {
			return "", err
		}
	}
	answers, err := b.ask(ctx, path)
	if err != nil {
		return "", err
	}
	if n.fails(path, dag.Attempt(ctx)) {
		c.write(fill(n.Writes, path, c.look())) // a failed attempt's draft is dropped
		switch dag.FailureKind(n.How) {
		case dag.FailedPanic:
			panic(errPlanned)
		case dag.FailedGoexit:
			runtime.Goexit()
		case dag.FailedOutcome:
			return "undeclared", nil
		}
		return "", errPlanned
	}
	var caught []string
	for _, f := range dag.Failures(ctx) {
		caught = append(caught, toldOf(f.Path, f.Attempts, f.Kind))
	}
	return n.act(path, slices.Concat(caught, told, answers), c.draft), nil
}

// benchPath is the path of the visit that ctx belongs to: the key of a visit ends in it.
func benchPath(ctx context.Context, run string) string {
	key := dag.Key(ctx)
	prefix := run + "/"
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		panic(fmt.Sprintf("the key %q is not made of the run %q and a path", key, run))
	}
	return key[len(prefix):]
}

// A handle is a node of the graph that is being built.
type handle[S any] struct {
	plain, failed dag.Edge[S]
	on            func(outcomes []string) dag.Edge[S]
}

// An assembly builds a dag.Graph from a graphSpec. at finds the cells in its state type.
type assembly[S any] struct {
	*dag.Builder[S]
	g     *graphSpec
	at    func(*S) *cells
	nodes []handle[S]
}

func assemble[S any](g *graphSpec, at func(*S) *cells) (*dag.Graph[S], error) {
	a := assembly[S]{dag.New[S](g.Name), g, at, nil}
	for _, n := range g.Nodes {
		h, err := a.node(n)
		if err != nil {
			return nil, err
		}
		a.nodes = append(a.nodes, h)
	}
	if len(g.Ends) > 0 {
		dag.End(a.Builder, a.edges(g.Ends)...)
	}
	return a.Build()
}

func (a *assembly[S]) node(n *nodeSpec) (handle[S], error) {
	after := a.edges(n.After)
	policy := dag.Policy{Attempts: n.Attempts}
	switch n.Kind {
	case dag.KindStep:
		s := dag.Step(a.Builder, n.Name, func(ctx context.Context, s *S) error {
			_, err := work(ctx, n, a.at(s))
			return err
		}, after...).With(policy)
		return handle[S]{plain: s, failed: s.Failed()}, nil
	case dag.KindRoute:
		r := dag.Route(a.Builder, n.Name, func(ctx context.Context, s *S) (string, error) {
			return work(ctx, n, a.at(s))
		}, n.Outcomes, after...).With(policy)
		return handle[S]{r, r.Failed(), func(on []string) dag.Edge[S] { return r.On(on[0], on[1:]...) }}, nil
	case dag.KindChoose:
		c := dag.Choose(a.Builder, n.Name, func(ctx context.Context, s *S) ([]string, error) {
			chosen, err := work(ctx, n, a.at(s))
			return strings.Fields(chosen), err
		}, n.Outcomes, after...).With(policy)
		return handle[S]{c, c.Failed(), func(on []string) dag.Edge[S] { return c.On(on[0], on[1:]...) }}, nil
	case dag.KindFail:
		dag.Fail(a.Builder, n.Name, after...)
		return handle[S]{}, nil
	case dag.KindLoop:
		return a.loop(n, after)
	case dag.KindEach:
		return a.each(n, after)
	}
	if n.Body.Grouped {
		return embed(a, n, ofGroup, after)
	}
	return embed(a, n, itself, after)
}

func (a *assembly[S]) each(n *nodeSpec, after []dag.Edge[S]) (handle[S], error) {
	switch {
	case n.Body == nil:
		e := dag.Each(a.Builder, n.Name, a.items(n), func(ctx context.Context, s *S, item string) error {
			_, err := work(ctx, n, a.at(s), item)
			return err
		}, after...)
		return eachHandle(e, n), nil
	case n.Body.Grouped:
		return eachGraph(a, n, ofGroup, after)
	}
	return eachGraph(a, n, itself, after)
}

func (a *assembly[S]) items(n *nodeSpec) func(*S) []string {
	return func(s *S) []string {
		n.asked.Add(1)
		return n.items(a.at(s).look())
	}
}

func eachGraph[S, T any](a *assembly[S], n *nodeSpec, at func(*T) *cells, after []dag.Edge[S]) (handle[S], error) {
	body, err := assemble(n.Body, at)
	if err != nil {
		return handle[S]{}, err
	}
	in := func(from *S, item string, to *T) {
		n.asked.Add(1)
		at(to).write(fill(n.In, item, a.at(from).look()))
	}
	out := func(from *T, item string, to *S) {
		n.asked.Add(1)
		a.at(to).write(fill(n.Out, item, at(from).look()))
	}
	return eachHandle(dag.EachGraph(a.Builder, n.Name, a.items(n), body, in, out, after...), n), nil
}

func eachHandle[S any](e dag.RouteNode[S, dag.EachOutcome], n *nodeSpec) handle[S] {
	p := dag.Policy{Attempts: n.Attempts, Parallel: n.Parallel}
	if n.Collect {
		p.Errors = dag.Collect
	}
	e = e.With(p)
	return handle[S]{e, e.Failed(), func(on []string) dag.Edge[S] {
		more := make([]dag.EachOutcome, 0, 1)
		for _, o := range on[1:] {
			more = append(more, dag.EachOutcome(o))
		}
		return e.On(dag.EachOutcome(on[0]), more...)
	}}
}

func (a *assembly[S]) loop(n *nodeSpec, after []dag.Edge[S]) (handle[S], error) {
	body, err := assemble(n.Body, a.at)
	if err != nil {
		return handle[S]{}, err
	}
	until := func(s *S) bool {
		n.asked.Add(1)
		return n.until(a.at(s).look())
	}
	l := dag.Loop(a.Builder, n.Name, body, until, n.Most, after...)
	return handle[S]{l, l.Failed(), func(on []string) dag.Edge[S] {
		more := make([]dag.LoopOutcome, 0, 1)
		for _, o := range on[1:] {
			more = append(more, dag.LoopOutcome(o))
		}
		return l.On(dag.LoopOutcome(on[0]), more...)
	}}, nil
}

func embed[S, T any](a *assembly[S], n *nodeSpec, at func(*T) *cells, after []dag.Edge[S]) (handle[S], error) {
	body, err := assemble(n.Body, at)
	if err != nil {
		return handle[S]{}, err
	}
	in := func(from *S, to *T) {
		n.asked.Add(1)
		at(to).write(fill(n.In, n.Name, a.at(from).look()))
		a.at(from).write(n.Out) // dropped, as everything that in writes to the outer state
	}
	out := func(from *T, to *S) {
		n.asked.Add(1)
		a.at(to).write(fill(n.Out, n.Name, at(from).look()))
		at(from).write(n.In)
	}
	e := dag.Embed(a.Builder, n.Name, body, in, out, after...)
	return handle[S]{plain: e, failed: e.Failed()}, nil
}

func (a *assembly[S]) edges(specs []edgeSpec) []dag.Edge[S] {
	var edges []dag.Edge[S]
	for _, e := range specs {
		edges = append(edges, a.edge(e))
	}
	return edges
}

func (a *assembly[S]) edge(e edgeSpec) dag.Edge[S] {
	switch {
	case e.Op == "all":
		return dag.All(a.edges(e.Of)...)
	case e.Op == "any":
		return dag.Any(a.edges(e.Of)...)
	case e.Failed:
		return a.nodes[e.Node].failed
	case len(e.On) > 0:
		return a.nodes[e.Node].on(e.On)
	}
	return a.nodes[e.Node].plain
}
