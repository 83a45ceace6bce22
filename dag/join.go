package dag

import (
	"fmt"
	"slices"
	"strings"
)

// join turns what n follows into one Expr and finds the guard of n. It is false if there
// is a problem with the edges, or with a node before: then nothing is known about n, and
// no problem is reported for that alone.
func (b *build) join(n *node) (Expr, guard, bool) {
	guards := make([]guard, 0, len(n.after))
	known := len(n.faults) == 0
	for _, e := range n.after {
		g, ok := b.guardOf(n, e)
		guards = append(guards, g)
		known = known && ok
	}
	switch {
	case !known:
		return Expr{}, guard{}, false
	case len(n.after) == 0:
		return Expr{}, always, true
	case len(n.after) == 1:
		return n.after[0], guards[0], true
	case exclusive(guards):
		return Expr{Op: OpAny, Of: n.after}, union(guards, b.domains), true
	case together(guards):
		return Expr{Op: OpAll, Of: n.after}, guards[0], true
	}
	b.report(n, "", "joins edges of which some may be taken and others not (%s): "+
		"write dag.All or dag.Any", b.list(n.after))
	return Expr{}, guard{}, false
}

// exclusive reports whether every two of guards exclude each other.
func exclusive(guards []guard) bool {
	for i, g := range guards {
		for _, h := range guards[:i] {
			if !excludes(g, h) {
				return false
			}
		}
	}
	return true
}

// together reports whether all of guards are known to be the same.
func together(guards []guard) bool {
	return !slices.ContainsFunc(guards[1:], func(g guard) bool { return !same(guards[0], g) })
}

// guardOf returns the guard of what n follows by e, and false if it is not known.
func (b *build) guardOf(n *node, e Expr) (guard, bool) {
	if e.Op == OpNode {
		return b.guardOfEdge(e)
	}
	guards := make([]guard, 0, len(e.Of))
	known := true
	for _, member := range e.Of {
		g, ok := b.guardOf(n, member)
		guards = append(guards, g)
		known = known && ok
	}
	if !known {
		return guard{}, false
	}
	if e.Op == OpAny {
		return union(guards, b.domains), true
	}
	all := guards[0]
	for i, g := range guards[1:] {
		both, variable, ok := meet(all, g, b.domains)
		if !ok {
			verb := "run"
			if n.kind == kindEnd {
				verb = "be reached"
			}
			b.report(n, "", "can never %s on all of (%s): they exclude each other, "+
				"by what becomes of node %q", verb, b.list(e.Of[:i+2]), b.nodes[b.owners[variable]].name)
			return guard{}, false
		}
		all = both
	}
	return all, true
}

// guardOfEdge returns the guard of an edge that leaves one node.
func (b *build) guardOfEdge(e Expr) (guard, bool) {
	if !b.known[e.Node] {
		return guard{}, false
	}
	from := b.nodes[e.Node]
	if from.kind == KindChoose && e.On != nil {
		return b.guardOfChoice(e)
	}
	g, domain := b.guards[e.Node], b.domains[b.first[e.Node]]
	taken := newSet(domain)
	switch {
	case e.Failed:
		taken.add(domain - 1)
	case e.On == nil:
		for i := range domain {
			if !b.failure[e.Node] || i < domain-1 {
				taken.add(i)
			}
		}
	default:
		for _, o := range e.On {
			i := slices.Index(from.outcomes, o)
			if i < 0 {
				return guard{}, false
			}
			taken.add(i)
		}
	}
	if taken.count() == domain {
		return g, true
	}
	// What g restricts stands before the node, so the new term comes first.
	return g.narrowed(b.first[e.Node], taken), true
}

// guardOfChoice returns the guard of an edge that names outcomes of a Choose.
func (b *build) guardOfChoice(e Expr) (guard, bool) {
	well, _ := b.guardOfEdge(Expr{Op: OpNode, Node: e.Node})
	var guards []guard
	for _, o := range e.On {
		i := slices.Index(b.nodes[e.Node].outcomes, o)
		if i < 0 {
			return guard{}, false
		}
		chosen := newSet(2)
		chosen.add(1)
		guards = append(guards, well.narrowed(b.first[e.Node]+1+i, chosen))
	}
	return union(guards, b.domains), true
}

// list names edges for a message, the first few of them if they are many.
func (b *build) list(edges []Expr) string {
	const most = 8
	var s []string
	for _, e := range edges[:min(len(edges), most)] {
		s = append(s, b.expr(e).String())
	}
	if more := len(edges) - most; more > 0 {
		s = append(s, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(s, ", ")
}
