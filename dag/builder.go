package dag

import "context"

// A Builder collects the nodes of one graph. Make one with [New].
//
// The functions that add nodes ([Step], [Route], [Choose], [Loop], [Embed], [Each],
// [EachGraph], [End], [Fail]) never fail: Build reports every problem at once. They panic for a
// nil Builder, which could not report it. A Builder is not safe for concurrent use.
type Builder[S any] struct {
	name  string
	nodes []*node
	ends  []*node // one for each call of End, of kind kindEnd
}

// New begins a graph over the state type S, a struct of cells (see package state). *S may have a
// method Check() error that says what a state may be. The name is part of the graph's digest.
func New[S any](name string) *Builder[S] {
	return &Builder[S]{name: name}
}

// Step adds a node that runs f. The draft that f gets is its own: it sees the state as
// it stood when the superstep began, and its own writes. What it wrote counts when f
// returns nil.
func Step[S any](b *Builder[S], name string, f func(context.Context, *S) error, after ...Edge[S]) Node[S] {
	n := &node{name: name, kind: KindStep}
	if f != nil {
		n.run = func(ctx context.Context, s any) (string, error) { return "", f(ctx, s.(*S)) }
	}
	return Node[S]{b, b.add(n, after)}
}

// Route adds a node that runs f and chooses one of outcomes. An outcome that is not
// among them fails the visit.
func Route[S any, O ~string](b *Builder[S], name string, f func(context.Context, *S) (O, error), outcomes []O, after ...Edge[S]) RouteNode[S, O] {
	n := &node{name: name, kind: KindRoute, outcomes: texts(outcomes)}
	if f != nil {
		n.run = func(ctx context.Context, s any) (string, error) {
			o, err := f(ctx, s.(*S))
			return string(o), err
		}
	}
	return RouteNode[S, O]{b, b.add(n, after)}
}

// Choose adds a node that runs f and chooses any number of outcomes, or none. Edges of
// different outcomes may be taken together, so a node that follows two of them has to say
// which it means, with [All] or [Any]; n.On(a, b) is taken if any of a and b was chosen. The
// plain handle is taken whatever was chosen. An outcome that is not among those declared
// fails the visit; the order in which f names them, and how often, means nothing.
func Choose[S any, O ~string](b *Builder[S], name string, f func(context.Context, *S) ([]O, error), outcomes []O, after ...Edge[S]) RouteNode[S, O] {
	n := &node{name: name, kind: KindChoose, outcomes: texts(outcomes)}
	if f != nil {
		n.choose = func(ctx context.Context, s any) ([]string, error) {
			chosen, err := f(ctx, s.(*S))
			return texts(chosen), err
		}
	}
	return RouteNode[S, O]{b, b.add(n, after)}
}

func texts[O ~string](outcomes []O) []string {
	var all []string
	for _, o := range outcomes {
		all = append(all, string(o))
	}
	return all
}

// Done is the outcome of a [Loop] whose until returned true after an iteration, and of an
// [Each] or [EachGraph] that had items. It has no type, so that it fits both.
const Done = "done"

// LoopOutcome is how a [Loop] ended: [Done] or Exhausted.
type LoopOutcome string

// Exhausted: until was still false after the last iteration allowed.
const Exhausted LoopOutcome = "exhausted"

// Loop adds a node that runs the graph body again and again over the same state, until the function
// until returns true, and at most most times. Iterations count from 1 and are part of paths:
// compose-loop/2/validate. until is asked once at the end of each iteration, with a copy of the
// state that it may not keep. Its answer is durable and never asked again.
//
// The plain handle is taken whether the loop ended Done or Exhausted. If an iteration fails and
// somebody follows that, all that has finished in the loop counts: the supersteps before the
// failure, and what finished beside it in the superstep of the failure. Attempts and Timeout belong
// to the nodes of body; Build refuses them here.
func Loop[S any](b *Builder[S], name string, body *Graph[S], until func(*S) bool, most int, after ...Edge[S]) RouteNode[S, LoopOutcome] {
	n := &node{name: name, kind: KindLoop, most: most, outcomes: []string{Done, string(Exhausted)}}
	if body != nil {
		n.body = body.plan
	}
	if until != nil {
		n.until = func(s any) bool { return until(s.(*S)) }
	}
	return RouteNode[S, LoopOutcome]{b, b.add(n, after)}
}

// Embed adds a node that runs the graph g once, over a state of its own. in fills g's state from
// the state of this graph, and out writes into this graph's state from g's last one. Both are
// called once, and what they wrote is durable and never computed again. What in or out writes to
// its first argument is dropped. An Embed whose graph fails gives nothing out.
func Embed[S, T any](b *Builder[S], name string, g *Graph[T], in func(from *S, to *T), out func(from *T, to *S), after ...Edge[S]) Node[S] {
	n := &node{name: name, kind: KindEmbed}
	if g != nil {
		n.body = g.plan
	}
	if in != nil {
		n.in = func(from, to any) { in(from.(*S), to.(*T)) }
	}
	if out != nil {
		n.out = func(from, to any) { out(from.(*T), to.(*S)) }
	}
	return Node[S]{b, b.add(n, after)}
}

// End says that the graph may stop, completed, where these edges are taken.
func End[S any](b *Builder[S], edges ...Edge[S]) { b.end(edges) }

// Fail adds an end at which the graph fails: a node that fails when its edges are taken, and runs
// nothing. A run that failed here fails again, in the same way, when it is resumed.
func Fail[S any](b *Builder[S], name string, after ...Edge[S]) {
	b.add(&node{name: name, kind: KindFail}, after)
}

// add appends n, which follows after, and returns its index.
func (b *Builder[S]) add(n *node, after []Edge[S]) int {
	needBuilder(b != nil, n.kind)
	b.connect(n, after)
	b.nodes = append(b.nodes, n)
	return len(b.nodes) - 1
}

func (b *Builder[S]) end(edges []Edge[S]) {
	needBuilder(b != nil, kindEnd)
	n := &node{kind: kindEnd}
	b.connect(n, edges)
	b.ends = append(b.ends, n)
}

// connect resolves edges into n.after, and remembers what is wrong with them: an edge
// means something only to the builder that it is given to.
func (b *Builder[S]) connect(n *node, edges []Edge[S]) {
	for _, edge := range edges {
		e, faults := resolve(b, edge)
		n.faults = append(n.faults, faults...)
		if e.Op != OpNone {
			n.after = append(n.after, e)
		}
	}
}
