package dag

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pawlgo/pawl/state"
)

const (
	// MaxDepth is how deep graphs may be nested: the most that [Plan.Depth] can be.
	MaxDepth = 32
	// MaxNodes is how many nodes a graph may have, those of nested graphs counted each
	// time they are nested.
	MaxNodes = 100_000
	// MaxNested is how deep [All] and [Any] may be nested in one another.
	MaxNested = 1_000
)

// Build freezes the nodes added so far into a Graph. If anything is wrong with them it
// returns a [*BuildError] with every problem and no graph.
//
// What is done to the Builder afterwards doesn't change the Graph, and Build may be
// called again.
func (b *Builder[S]) Build() (*Graph[S], error) {
	if b == nil {
		return nil, &BuildError{Problems: []error{&Problem{Text: "the Builder is nil: make one with New"}}}
	}
	schema, err := schemaOf[S]()
	c := newBuild(b.name, b.nodes, b.ends)
	c.checkGraph()
	c.checkState(err)
	for i := range c.nodes {
		c.visit(i)
	}
	for _, end := range c.ends {
		c.visitEnd(end)
	}
	if len(c.problems) > 0 {
		return nil, &BuildError{b.name, c.problems}
	}
	return &Graph[S]{c.plan(schema)}, nil
}

// A build is one call of Build.
type build struct {
	name     string
	nodes    []*node
	ends     []*node
	problems []error

	names    map[string]int // how many nodes have the name, those before included
	failure  []bool         // of each node: its failure is followed
	followed []map[string]bool
	plain    []bool // of each node: its plain handle is followed

	// Of each node visited: its guard, and what it follows. Where known is false a problem
	// has been reported, and none of these holds.
	known   []bool
	guards  []guard
	follows []Expr

	// Of each node its first variable; of each variable its node and how many values it has.
	first   []int
	owners  []int
	domains []int
}

func newBuild(name string, nodes, ends []*node) *build {
	n := len(nodes)
	b := &build{
		name: name, nodes: nodes, ends: ends,
		names: make(map[string]int, n), failure: make([]bool, n), plain: make([]bool, n),
		followed: make([]map[string]bool, n), known: make([]bool, n),
		guards: make([]guard, n), first: make([]int, n), follows: make([]Expr, n),
	}
	for _, n := range slices.Concat(nodes, ends) {
		for leaf := range leaves(n.after) {
			b.follow(leaf)
		}
	}
	for i := range nodes {
		b.number(i)
	}
	return b
}

// number gives node i its variables.
func (b *build) number(i int) {
	n := b.nodes[i]
	b.first[i] = len(b.domains)
	domain := 1
	if n.kind != KindChoose {
		domain = max(len(n.outcomes), 1)
	}
	if b.failure[i] {
		domain++
	}
	b.owners, b.domains = append(b.owners, i), append(b.domains, domain)
	if n.kind == KindChoose {
		for range n.outcomes {
			b.owners, b.domains = append(b.owners, i), append(b.domains, 2)
		}
	}
}

// follow notes that somebody follows leaf.
func (b *build) follow(leaf Expr) {
	switch {
	case leaf.Failed:
		b.failure[leaf.Node] = true
	case leaf.On == nil:
		b.plain[leaf.Node] = true
	default:
		if b.followed[leaf.Node] == nil {
			b.followed[leaf.Node] = make(map[string]bool)
		}
		for _, o := range leaf.On {
			b.followed[leaf.Node][o] = true
		}
	}
}

// leaves yields every edge that leaves one node and is mentioned in exprs.
func leaves(exprs []Expr) iter.Seq[Expr] {
	return func(yield func(Expr) bool) { eachLeaf(exprs, yield) }
}

func eachLeaf(exprs []Expr, yield func(Expr) bool) bool {
	for _, e := range exprs {
		if e.Op == OpNode && !yield(e) || !eachLeaf(e.Of, yield) {
			return false
		}
	}
	return true
}

// report notes a problem of n, or of the graph if n is nil.
func (b *build) report(n *node, outcome, format string, args ...any) {
	p := &Problem{Outcome: outcome, Text: fmt.Sprintf(format, args...)}
	switch {
	case n == nil:
	case n.kind == kindEnd:
		p.Text = "End: " + p.Text
	default:
		p.Node = n.name
		p.Text = fmt.Sprintf("node %q: %s", n.name, p.Text)
	}
	b.problems = append(b.problems, p)
}

// limit reports that more was asked for than there may be.
func (b *build) limit(n *node, name string, is, most int, text string) {
	b.report(n, "", "%s", text)
	b.problems[len(b.problems)-1].(*Problem).Err = &LimitError{Limit: name, Max: most, Is: is}
}

func (b *build) checkGraph() {
	if err := CheckName(b.name); err != nil {
		b.report(nil, "", "the graph: %s", bare(err))
	}
	if len(b.nodes) == 0 {
		b.report(nil, "", "the graph has no nodes")
	}
	size := len(b.nodes)
	for _, n := range b.nodes {
		if n.body != nil {
			size += n.body.size
		}
	}
	if size > MaxNodes {
		b.limit(nil, "nodes", size, MaxNodes,
			fmt.Sprintf("the graph has %d nodes, nested graphs included; the limit is %d", size, MaxNodes))
	}
}

// checkState reports what is wrong with the state type, each problem by itself.
func (b *build) checkState(err error) {
	if err == nil {
		return
	}
	all := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	for _, err := range all {
		b.problems = append(b.problems, &Problem{Text: err.Error(), Err: err})
	}
}

// visit checks node i and finds its guard.
func (b *build) visit(i int) {
	n := b.nodes[i]
	b.checkName(i)
	b.checkKind(n)
	b.checkPolicy(n)
	sound := b.checkOutcomes(n)
	b.checkEdges(n)
	follows, g, ok := b.join(n)
	b.known[i] = ok && sound
	b.guards[i], b.follows[i] = g, follows
	b.checkFollowed(i)
}

func (b *build) visitEnd(end *node) {
	b.checkEdges(end)
	for _, e := range end.after {
		b.guardOf(end, e)
	}
}

// plan writes down what was found. There are no problems.
func (b *build) plan(schema *state.Schema) *Plan {
	p := &Plan{
		Name: b.name, Schema: schema, Depth: 1,
		Nodes: make([]PlanNode, len(b.nodes)), Followers: make([][]int, len(b.nodes)),
		size: len(b.nodes), names: &nameIndex{},
	}
	for i, n := range b.nodes {
		p.Nodes[i] = PlanNode{
			Name: n.name, Kind: n.kind, Follows: b.inOrder(b.follows[i]),
			Outcomes: n.outcomes, FailureFollowed: b.failure[i], Policy: n.policy,
			Run: n.run, Choose: n.choose, Body: n.body, Until: n.until, Most: n.most, In: n.in, Out: n.out,
			Items: n.items, Item: n.itemNode(),
		}
		p.connect(i)
		if n.body != nil {
			p.Depth = max(p.Depth, 1+n.body.Depth)
			p.size += n.body.size
		}
	}
	p.describe(b)
	return p
}

// inOrder returns e with the outcomes that it names in the order of their declaration, so
// that the order in which On was given them is no part of the graph.
func (b *build) inOrder(e Expr) Expr {
	if e.On != nil {
		declared := b.nodes[e.Node].outcomes
		e.On = slices.SortedFunc(slices.Values(e.On), func(x, y string) int {
			return slices.Index(declared, x) - slices.Index(declared, y)
		})
	}
	e.Of = slices.Clone(e.Of)
	for i := range e.Of {
		e.Of[i] = b.inOrder(e.Of[i])
	}
	return e
}
