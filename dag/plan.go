package dag

import (
	"context"
	"sync"

	"github.com/pawlgo/pawl/state"
)

// A Kind says what a node does when it is visited.
type Kind uint8

const (
	KindStep   Kind = iota + 1 // runs a function
	KindRoute                  // runs a function that chooses an outcome
	KindLoop                   // runs a graph over the same state, again and again
	KindEmbed                  // runs a graph over a state of its own
	KindFail                   // fails the graph
	KindEach                   // runs a function, or a graph, for each item of a list
	KindChoose                 // runs a function that chooses any number of outcomes

	kindEnd // what End was given: never in a Plan
)

// String returns the kind in one lower-case word: "step".
func (k Kind) String() string {
	switch k {
	case KindStep:
		return "step"
	case KindRoute:
		return "route"
	case KindLoop:
		return "loop"
	case KindEmbed:
		return "embed"
	case KindFail:
		return "fail"
	case KindEach:
		return "each"
	case KindChoose:
		return "choose"
	case kindEnd:
		return "end"
	}
	return "unknown"
}

// An Op says how an [Expr] is evaluated.
type Op uint8

const (
	OpNone Op = iota // follows nothing: always taken
	OpNode           // one node: finished well, with one of some outcomes, or failed
	OpAll            // every one of Of
	OpAny            // at least one of Of
)

// An Expr says what a node follows.
type Expr struct {
	Op     Op
	Node   int      // OpNode: index into [Plan.Nodes]
	On     []string // OpNode: the outcomes named, as declared; nil means any of the node's
	Failed bool     // OpNode: the node's failure instead
	Of     []Expr   // OpAll, OpAny
}

// A Plan is a graph without type parameters: what a dispatcher reads. Every Plan comes
// from [Builder.Build], is valid, and must not be changed.
type Plan struct {
	Name   string
	Digest string        // see [Graph.Digest]
	JSON   []byte        // the graph as JSON, see [Graph.MarshalJSON]
	Schema *state.Schema // of the state type
	Nodes  []PlanNode    // in declaration order; what a node follows stands before it
	// Followers[i] lists, in order and without repetition, the nodes whose Follows
	// mentions node i.
	Followers [][]int
	// Depth is 1 for a graph that nests none, and at most [MaxDepth].
	Depth int

	size  int // how many nodes, those of nested graphs included
	doc   *document
	names *nameIndex
}

// A nameIndex finds nodes by their names. It is made when the first one is looked up, which only
// recovery does.
type nameIndex struct {
	once  sync.Once
	nodes map[string]int
}

// Find returns the place in Nodes of the node of a name.
func (p *Plan) Find(name string) (i int, ok bool) {
	p.names.once.Do(func() {
		p.names.nodes = make(map[string]int, len(p.Nodes))
		for i := range p.Nodes {
			p.names.nodes[p.Nodes[i].Name] = i
		}
	})
	i, ok = p.names.nodes[name]
	return i, ok
}

// A PlanNode is one node of a [Plan].
type PlanNode struct {
	Name     string
	Kind     Kind
	Follows  Expr
	Waits    int      // how many different nodes Follows mentions
	Outcomes []string // Route, Choose, Loop and Each: declared outcomes, in order
	// FailureFollowed: some node, or End, follows the failure of this one.
	FailureFollowed bool
	Policy          Policy

	// Run is the user's function of a Step (the outcome is "") or Route. s is a *S.
	Run func(ctx context.Context, s any) (outcome string, err error)
	// Choose is the user's function of a Choose. It may name outcomes more than once, in any
	// order, and some that are not declared.
	Choose func(ctx context.Context, s any) (outcomes []string, err error)

	Body  *Plan            // Loop, Embed; an Each that has a graph for each item
	Until func(s any) bool // Loop
	Most  int              // Loop: iterations allowed
	In    func(from, to any)
	Out   func(from, to any)

	// Items, of an Each, computes the items. Only RunItem, InItem and OutItem of Item understand
	// them. It returns also how many they are, and the digest of all of them.
	Items func(s any) (items any, n int, digest string, err error)
	// Item, of an Each, is the node that every item visits. Its kind is Step, or Embed if there is
	// a graph for each item. Its name, Body and Policy are those of the Each, and FailureFollowed
	// says that failures are collected.
	Item *PlanNode

	// RunItem is the user's function of an Item that is a Step. Items count from 0.
	RunItem func(ctx context.Context, s, items any, i int) error
	InItem  func(from, items any, i int, to any) // an Item that is an Embed
	OutItem func(from, items any, i int, to any) // an Item that is an Embed
}

// node is a PlanNode while its graph is being built, or what one call of End was given.
type node struct {
	name     string
	kind     Kind
	after    []Expr   // the edges given, without those that are wrong
	faults   []string // what is wrong with the others
	outcomes []string
	policy   Policy
	run      func(ctx context.Context, s any) (string, error)
	choose   func(ctx context.Context, s any) ([]string, error)
	body     *Plan
	until    func(s any) bool
	most     int
	in, out  func(from, to any)
	items    func(s any) (any, int, string, error)
	item     *PlanNode
}
