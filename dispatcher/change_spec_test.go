package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A changeGraph is a graph as data, so that it can be edited as a program is.
type changeGraph struct {
	Name  string
	Nodes []*changeNode
	Ends  []string
}

type changeNode struct {
	Name, Kind string
	After      []string // a, a:left, a:left|right, a! for its failure
	Join       string   // all, any or what Build finds
	Outcomes   []string
	Takes      string // the outcome that its function chooses; of a choose several: few|many
	Broken     bool   // its function fails
	Asks       bool
	Word       bool // writes the cell Word
	Body       *changeGraph
	Most       int
	Until      int // the iteration after which a loop is done; 0 is never
	Items      int
	Policy     dag.Policy
}

// find returns the graph that holds the node of a path, and the node's place in it.
func (g *changeGraph) find(path string) (*changeGraph, int) {
	name, rest, more := strings.Cut(path, "/")
	i := slices.IndexFunc(g.Nodes, func(n *changeNode) bool { return n.Name == name })
	if i < 0 {
		panic("no node " + path)
	}
	if more {
		return g.Nodes[i].Body.find(rest)
	}
	return g, i
}

func (g *changeGraph) node(path string) *changeNode {
	in, i := g.find(path)
	return in.Nodes[i]
}

// changeCells is what a state of the edited programs has, whatever its type.
type changeCells struct {
	seen  *state.Map[string, string] // of each visit: what it followed
	order *state.List[string]
	total *state.Sum[int]
	word  func(string)
}

type changeState[S any] interface {
	*S
	cells() changeCells
}

// A changeWitness sees what the bodies of a program do, and makes some of them fail.
type changeWitness struct {
	mu    sync.Mutex
	began []string
	fails string // the path of a visit
}

func (w *changeWitness) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := w.began
	w.began = nil
	return began
}

// visit is the body of every node. It says in the state what it followed, and that only if
// it sees what it should.
func (w *changeWitness) visit(ctx context.Context, c changeCells, n *changeNode) error {
	path := visitPath(ctx)
	w.mu.Lock()
	w.began = append(w.began, path)
	fails := w.fails == path
	w.mu.Unlock()
	if fails || n.Broken {
		return errors.New("broken")
	}
	if n.Asks {
		if _, err := dag.Ask[string](ctx, "go", "go on?"); err != nil {
			return err
		}
	}
	text := n.Kind + " after " + strings.Join(n.After, " "+n.Join+" ")
	if !n.sees(path, c) {
		text = "what it follows is missing"
	}
	c.seen.Put(path, text)
	c.order.Append(path)
	c.total.Add(1)
	if n.Word {
		c.word(path)
	}
	return nil
}

// sees reports whether the state shows what n follows: all of it, or if some of it excludes
// the rest, a part.
func (n *changeNode) sees(path string, c changeCells) bool {
	frame := path[:strings.LastIndexByte("/"+path, '/')]
	if n.Kind == "each" {
		frame = path[:strings.LastIndexByte("/"+path[:strings.LastIndexByte(path, '/')], '/')]
	}
	there, missing := 0, 0
	for _, edge := range n.After {
		if strings.HasSuffix(edge, "!") {
			there++
			continue
		}
		name, _, _ := strings.Cut(edge, ":")
		found := false
		for key := range c.seen.All() {
			found = found || key == frame+name || strings.HasPrefix(key, frame+name+"/")
		}
		if found {
			there++
		} else {
			missing++
		}
	}
	return missing == 0 || n.Join != "all" && there > 0
}

// A changeHandle is a node that others follow.
type changeHandle[S any] struct {
	plain, failed dag.Edge[S]
	on            func(outcomes []string) dag.Edge[S]
}

func changeRoute[S any, O ~string](n dag.RouteNode[S, O], p dag.Policy) changeHandle[S] {
	n.With(p)
	return changeHandle[S]{n, n.Failed(), func(outcomes []string) dag.Edge[S] {
		var all []O
		for _, o := range outcomes {
			all = append(all, O(o))
		}
		return n.On(all[0], all[1:]...)
	}}
}

// changeBuild makes the graph of a spec.
func changeBuild[S any, P changeState[S]](t testing.TB, g *changeGraph, w *changeWitness) *dag.Graph[S] {
	t.Helper()
	b := dag.New[S](g.Name)
	nodes := map[string]changeHandle[S]{}
	edge := func(text string) dag.Edge[S] {
		if name, ok := strings.CutSuffix(text, "!"); ok {
			return nodes[name].failed
		}
		name, on, ok := strings.Cut(text, ":")
		if ok {
			return nodes[name].on(strings.Split(on, "|"))
		}
		return nodes[name].plain
	}
	edges := func(texts []string, join string) []dag.Edge[S] {
		var all []dag.Edge[S]
		for _, text := range texts {
			all = append(all, edge(text))
		}
		switch join {
		case "all":
			return []dag.Edge[S]{dag.All(all...)}
		case "any":
			return []dag.Edge[S]{dag.Any(all...)}
		}
		return all
	}
	for _, n := range g.Nodes {
		after := edges(n.After, n.Join)
		if n.Kind == "fail" {
			dag.Fail(b, n.Name, after...)
			continue
		}
		nodes[n.Name] = changeAdd[S, P](t, b, n, w, after)
	}
	dag.End(b, edges(g.Ends, "")...)
	return frozen(t, b)
}

func changeAdd[S any, P changeState[S]](t testing.TB, b *dag.Builder[S], n *changeNode, w *changeWitness, after []dag.Edge[S]) changeHandle[S] {
	body := func(ctx context.Context, s *S) error { return w.visit(ctx, P(s).cells(), n) }
	ways := func() (all []way) {
		for _, o := range n.Outcomes {
			all = append(all, way(o))
		}
		return all
	}
	out := func(from, to *S) {
		inner, outer := P(from).cells(), P(to).cells()
		for key, value := range inner.seen.All() {
			outer.seen.Put(key, value)
		}
		outer.order.Append(inner.order.Slice()...)
		outer.total.Add(inner.total.Get())
	}
	items := func(*S) []int { return []int{1, 2, 3, 4, 5}[:n.Items] }
	switch n.Kind {
	case "route":
		return changeRoute(dag.Route(b, n.Name, func(ctx context.Context, s *S) (way, error) {
			return way(n.Takes), body(ctx, s)
		}, ways(), after...), n.Policy)
	case "choose":
		return changeRoute(dag.Choose(b, n.Name, func(ctx context.Context, s *S) (all []way, err error) {
			for o := range strings.SplitSeq(n.Takes, "|") {
				all = append(all, way(o))
			}
			return all, body(ctx, s)
		}, ways(), after...), n.Policy)
	case "loop":
		until := func(s *S) bool {
			for key := range P(s).cells().seen.All() {
				if n.Until > 0 && strings.Contains("/"+key, fmt.Sprintf("/%s/%d/", n.Name, n.Until)) {
					return true
				}
			}
			return false
		}
		return changeRoute(dag.Loop(b, n.Name, changeBuild[S, P](t, n.Body, w), until, n.Most, after...), n.Policy)
	case "embed":
		e := dag.Embed(b, n.Name, changeBuild[S, P](t, n.Body, w), func(*S, *S) {}, out, after...)
		return changeHandle[S]{plain: e, failed: e.Failed()}
	case "each":
		each := func(ctx context.Context, s *S, _ int) error { return body(ctx, s) }
		return changeRoute(dag.Each(b, n.Name, items, each, after...), n.Policy)
	case "eachgraph":
		return changeRoute(dag.EachGraph(b, n.Name, items, changeBuild[S, P](t, n.Body, w),
			func(*S, int, *S) {}, func(from *S, _ int, to *S) { out(from, to) }, after...), n.Policy)
	}
	s := dag.Step(b, n.Name, body, after...).With(n.Policy)
	return changeHandle[S]{plain: s, failed: s.Failed()}
}

// A changeProgram is a program that runs one graph, whatever its state type.
type changeProgram struct {
	witness *changeWitness
	plan    *dag.Plan
	open    func(t testing.TB, store checkpoint.Store, o dispatcher.Options) changeProcess
}

// A changeProcess is one process that runs the program.
type changeProcess struct {
	run, resume, state func(context.Context) (changeResult, error)
	answer             func(ctx context.Context, interrupt string) error
	cancel             func(ctx context.Context) error
}

// A changeResult is where a run stands.
type changeResult struct {
	status     checkpoint.Status
	visits     []string
	interrupts []dispatcher.Interrupt
	seen       map[string]string
	order      []string
	total      int
}

func changeCompile[S any, P changeState[S]](t testing.TB, g *changeGraph) *changeProgram {
	w := &changeWitness{}
	graph := changeBuild[S, P](t, g, w)
	result := func(r *dispatcher.Result[S], err error) (changeResult, error) {
		c := P(r.State).cells()
		return changeResult{
			r.Status, r.Cursor.Visits, r.Interrupts,
			maps.Collect(c.seen.All()), c.order.Slice(), c.total.Get(),
		}, err
	}
	open := func(t testing.TB, store checkpoint.Store, o dispatcher.Options) changeProcess {
		d, err := dispatcher.New(graph, store, o)
		if err != nil {
			t.Fatal(err)
		}
		return changeProcess{
			run:    func(ctx context.Context) (changeResult, error) { return result(d.Run(ctx, run, nil)) },
			resume: func(ctx context.Context) (changeResult, error) { return result(d.Resume(ctx, run)) },
			state:  func(ctx context.Context) (changeResult, error) { return result(d.State(ctx, run)) },
			answer: func(ctx context.Context, id string) error { return d.Answer(ctx, run, id, "yes") },
			cancel: func(ctx context.Context) error { return d.Cancel(ctx, run, nil) },
		}
	}
	return &changeProgram{w, graph.Plan(), open}
}
