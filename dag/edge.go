package dag

import (
	"fmt"
	"slices"
)

// An Edge is something that a node can follow: a node ([Node], [RouteNode]: finished
// well, whatever its outcome), some of its outcomes ([RouteNode.On]), its failure
// ([Node.Failed]), or a combination of these ([All], [Any]).
type Edge[S any] interface {
	// resolve says what the edge means in b, or else what is wrong with it. It mentions
	// S so that an edge of another state type does not compile.
	resolve(b *Builder[S]) (e Expr, faults []string)
}

// All is taken when every one of edges was taken. Combinations may be nested [MaxNested] deep.
func All[S any](edges ...Edge[S]) Edge[S] { return combine(OpAll, edges) }

// Any is taken when at least one of edges was taken. It still waits until all of them
// have settled. Combinations may be nested [MaxNested] deep: hand it all edges at once.
func Any[S any](edges ...Edge[S]) Edge[S] { return combine(OpAny, edges) }

// A Node is the handle of a node without outcomes. As an [Edge] it is taken when the
// node has finished well.
type Node[S any] struct {
	b *Builder[S]
	i int
}

func (n Node[S]) resolve(b *Builder[S]) (Expr, []string) {
	return exit[S]{n.b, Expr{Op: OpNode, Node: n.i}}.resolve(b)
}

// With sets the policy of the node, for the graphs that are built from then on, and returns
// the node. It panics if n is the zero Node, which is no node's.
func (n Node[S]) With(p Policy) Node[S] {
	needHandle(n.b != nil)
	n.b.nodes[n.i].policy = p
	return n
}

// Failed is taken when the node has failed for good: its last attempt failed. If somebody follows
// it, the failure of the node is not the failure of the graph. A node that failed may have acted on
// the world; if one of its effects is in doubt, its [Doubt] can keep this edge from being taken.
func (n Node[S]) Failed() Edge[S] {
	return exit[S]{n.b, Expr{Op: OpNode, Node: n.i, Failed: true}}
}

// A RouteNode is the handle of a node with outcomes of type O. As an [Edge] it is taken
// when the node has finished well, whatever its outcome.
type RouteNode[S any, O ~string] struct {
	b *Builder[S]
	i int
}

func (n RouteNode[S, O]) resolve(b *Builder[S]) (Expr, []string) {
	return exit[S]{n.b, Expr{Op: OpNode, Node: n.i}}.resolve(b)
}

// With sets the policy of the node, for the graphs that are built from then on, and returns
// the node. It panics if n is the zero RouteNode, which is no node's.
func (n RouteNode[S, O]) With(p Policy) RouteNode[S, O] {
	needHandle(n.b != nil)
	n.b.nodes[n.i].policy = p
	return n
}

// Failed is taken when the node has failed for good; see [Node.Failed].
func (n RouteNode[S, O]) Failed() Edge[S] {
	return exit[S]{n.b, Expr{Op: OpNode, Node: n.i, Failed: true}}
}

// On is taken when the node has finished with one of the outcomes named.
func (n RouteNode[S, O]) On(outcome O, more ...O) Edge[S] {
	on := []string{string(outcome)}
	for _, o := range more {
		on = append(on, string(o))
	}
	return exit[S]{n.b, Expr{Op: OpNode, Node: n.i, On: on}}
}

// An exit is an edge that leaves one node.
type exit[S any] struct {
	b *Builder[S]
	e Expr
}

func (x exit[S]) resolve(b *Builder[S]) (Expr, []string) {
	if x.b == nil {
		return Expr{}, []string{"follows the zero value of a node handle"}
	}
	if x.b != b {
		return Expr{}, []string{fmt.Sprintf("follows node %q of another builder, of graph %q",
			x.b.nodes[x.e.Node].name, x.b.name)}
	}
	return x.e, nil
}

// A combination is what [All] and [Any] return.
type combination[S any] struct {
	op     Op
	edges  []Edge[S]
	nested int // how deep combinations are nested, this one counted
}

func combine[S any](op Op, edges []Edge[S]) Edge[S] {
	deepest := 0
	for _, edge := range edges {
		if c, ok := edge.(combination[S]); ok {
			deepest = max(deepest, c.nested)
		}
	}
	return combination[S]{op, slices.Clone(edges), deepest + 1}
}

// resolve leaves out the members that are wrong. One member alone is that member: a
// graph has one form, and one digest, whether or not it was wrapped.
func (c combination[S]) resolve(b *Builder[S]) (Expr, []string) {
	word := map[Op]string{OpAll: "dag.All", OpAny: "dag.Any"}[c.op]
	if len(c.edges) == 0 {
		return Expr{}, []string{"follows " + word + " of nothing"}
	}
	if c.nested > MaxNested {
		return Expr{}, []string{fmt.Sprintf("follows %s nested %d deep, the limit is %d: hand it all edges at once", word, c.nested, MaxNested)}
	}
	whole := Expr{Op: c.op}
	var faults []string
	for _, edge := range c.edges {
		e, wrong := resolve(b, edge)
		faults = append(faults, wrong...)
		if e.Op != OpNone {
			whole.Of = append(whole.Of, e)
		}
	}
	switch len(whole.Of) {
	case 0:
		return Expr{}, faults
	case 1:
		return whole.Of[0], faults
	}
	return whole, faults
}

func resolve[S any](b *Builder[S], edge Edge[S]) (Expr, []string) {
	if edge == nil {
		return Expr{}, []string{"follows a nil edge"}
	}
	return edge.resolve(b)
}
