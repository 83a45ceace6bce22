package dispatcher_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawlgo/pawl/dag"
)

// A graphSpec describes a graph. The generator makes it, package dag builds it, and the
// reference interprets it; neither of the two sees what the other makes of it.
type graphSpec struct {
	Name    string
	Grouped bool // its state type is grouped, and not cells
	Nodes   []*nodeSpec
	Ends    []edgeSpec
}

// A nodeSpec describes one node and how its visits behave.
type nodeSpec struct {
	Name     string
	Kind     dag.Kind
	After    []edgeSpec
	Writes   []cellOp
	Outcomes []string
	Attempts int    // of its Policy
	Fails    int    // how many attempts fail; -1: all
	How      string // in which way: error, panic or goexit
	Body     *graphSpec
	Most     int
	Odds     int           // one of so many states ends the loop; 0: none does
	In, Out  []cellOp      // of an Embed or EachGraph
	Items    int           // of an Each or EachGraph: at most so many, one of which may fail
	Parallel int           // of its Policy
	Collect  bool          // of its Policy: Errors
	asked    *atomic.Int64 // how often a decision of user code was asked for: until, in, out
}

// An edgeSpec describes an edge: of node Node if Op is "", else "all" or "any" of Of.
type edgeSpec struct {
	Op     string
	Node   int
	On     []string
	Failed bool
	Of     []edgeSpec
}

// A cellOp is one write to one cell.
type cellOp struct {
	Cell, Do string
	Key, Val string
	Num      int
	Pad      int // bytes that are added to Val
}

// act is what a visit of n does, whoever runs it: draft writes to the visit's draft, and
// returns what the visit then sees, see look. Everything that is written depends on the
// path and on everything that was read, so that one wrong byte shows in all that follows.
func (n *nodeSpec) act(path string, told []string, draft func(...cellOp) string) string {
	for _, failure := range told {
		draft(cellOp{Cell: "L", Do: "append", Val: failure})
	}
	return n.outcome(path, draft(fill(n.Writes, path, draft())...))
}

// outcome is what a visit chooses that sees this.
func (n *nodeSpec) outcome(path, after string) string {
	switch {
	case len(n.Outcomes) == 0:
		return ""
	case n.Kind == dag.KindChoose:
		return strings.Join(n.chosen(chance(1<<len(n.Outcomes), path, after)), " ")
	}
	return n.Outcomes[chance(len(n.Outcomes), path, after)]
}

// chosen are the outcomes whose bits are set.
func (n *nodeSpec) chosen(bits int) (outcomes []string) {
	for i, o := range n.Outcomes {
		if bits&(1<<i) != 0 {
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// items are what an Each has to do in this state.
func (n *nodeSpec) items(state string) (items []string) {
	for i := range chance(n.Items+1, n.Name, state) {
		items = append(items, fmt.Sprintf("%s item %d of %d ", n.Name, i+1, chance(100, n.Name, state)))
	}
	return items
}

// fails reports whether this attempt fails: of an Each, only those of some items do.
func (n *nodeSpec) fails(path string, attempt int) bool {
	if n.Kind == dag.KindEach && chance(3, n.Name, path[strings.LastIndex(path, "/")+1:]) != 0 {
		return false
	}
	return n.Fails < 0 || attempt <= n.Fails
}

// until reports whether a loop ends at this state.
func (n *nodeSpec) until(state string) bool { return n.Odds > 0 && chance(n.Odds, n.Name, state) == 0 }

// fill completes writes by what was seen.
func fill(writes []cellOp, path, seen string) []cellOp {
	writes = slices.Clone(writes)
	for i := range writes {
		w := &writes[i]
		w.Val = fmt.Sprintf("%s%03x%s", w.Val, chance(1<<12, path, seen), strings.Repeat("x", w.Pad))
		w.Num += chance(5, path, seen)
	}
	return writes
}

// chance returns a number below n that depends on nothing but words.
func chance(n int, words ...string) int {
	h := fnv.New64a()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	sum := h.Sum64()
	return int((sum ^ sum>>29) % uint64(n))
}

// String prints the graph, so that a failing test can be turned into a scenario.
func (g *graphSpec) String() string {
	var b strings.Builder
	g.print(&b, "")
	return b.String()
}

func (g *graphSpec) print(b *strings.Builder, indent string) {
	for _, n := range g.Nodes {
		fmt.Fprintf(b, "%s%s %s", indent, n.Name, n.Kind)
		if len(n.Outcomes) > 0 {
			fmt.Fprintf(b, " {%s}", strings.Join(n.Outcomes, " "))
		}
		for _, e := range n.After {
			fmt.Fprintf(b, " <- %s", g.edge(e))
		}
		if n.Attempts > 0 || n.Fails != 0 {
			fmt.Fprintf(b, " | attempts %d, fails %d (%s)", n.Attempts, n.Fails, n.How)
		}
		if n.Kind == dag.KindLoop {
			fmt.Fprintf(b, " | most %d, odds %d", n.Most, n.Odds)
		}
		if n.Kind == dag.KindEach {
			fmt.Fprintf(b, " | items %d, parallel %d, collect %t", n.Items, n.Parallel, n.Collect)
		}
		if n.Body != nil && n.Body.Grouped {
			b.WriteString(" | grouped")
		}
		for _, list := range []struct {
			word string
			ops  []cellOp
		}{{"writes", n.Writes}, {"in", n.In}, {"out", n.Out}} {
			if len(list.ops) > 0 {
				fmt.Fprintf(b, " | %s %v", list.word, list.ops)
			}
		}
		b.WriteByte('\n')
		if n.Body != nil {
			n.Body.print(b, indent+"\t")
		}
	}
	for _, e := range g.Ends {
		fmt.Fprintf(b, "%send <- %s\n", indent, g.edge(e))
	}
}

func (g *graphSpec) edge(e edgeSpec) string {
	if e.Op != "" {
		var of []string
		for _, e := range e.Of {
			of = append(of, g.edge(e))
		}
		return e.Op + "(" + strings.Join(of, ", ") + ")"
	}
	name := g.Nodes[e.Node].Name
	switch {
	case e.Failed:
		return name + ".failed"
	case len(e.On) > 0:
		return name + "." + strings.Join(e.On, "|")
	}
	return name
}

func (o cellOp) String() string {
	s := o.Cell + "." + o.Do
	if o.Key != "" {
		s += "[" + o.Key + "]"
	}
	if o.Val != "" {
		s += " " + o.Val
	}
	if o.Num != 0 {
		s += fmt.Sprintf(" %d", o.Num)
	}
	return s
}

// under returns the path of name below the frame at path.
func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// toldOf is what a node is told of a failure that it follows.
func toldOf(path string, attempts int, kind dag.FailureKind) string {
	return fmt.Sprintf("%s failed after %d (%s)", path, attempts, kind)
}

// failures returns the nodes whose failure is mentioned in edges, in declaration order.
func failures(edges []edgeSpec) []int {
	return mentioned(edges, func(e edgeSpec) bool { return e.Failed })
}

// catches reports whether somebody follows the failure of node i.
func (g *graphSpec) catches(i int) bool {
	for _, n := range g.Nodes {
		if slices.Contains(failures(n.After), i) {
			return true
		}
	}
	return slices.Contains(failures(g.Ends), i)
}

// at returns the node that the visit, or the frame, at path is of.
func (g *graphSpec) at(path string) *nodeSpec {
	var node *nodeSpec
	for name := range strings.SplitSeq(path, "/") {
		for _, n := range g.Nodes {
			if n.Name == name {
				node = n
			}
		}
		if node != nil && node.Body != nil {
			g = node.Body
		}
	}
	return node
}

// grouped reports whether the state of the frame at path is of type grouped: that of the
// innermost Embed, or item of an EachGraph, that it is in.
func (g *graphSpec) grouped(path string) bool {
	for path != "" {
		n := g.at(path)
		if n.Kind == dag.KindEmbed || n.Kind == dag.KindEach && n.Body != nil && isNumber(path[strings.LastIndex(path, "/")+1:]) {
			return n.Body.Grouped
		}
		path = path[:max(strings.LastIndex(path, "/"), 0)]
	}
	return false
}

// isNumber reports whether a part of a path is that of an iteration or an item.
func isNumber(part string) bool { return strings.Trim(part, "0123456789") == "" }

// mentioned returns the nodes that edges mention and for which want is true, in declaration
// order.
func mentioned(edges []edgeSpec, want func(edgeSpec) bool) (nodes []int) {
	for _, e := range edges {
		if e.Op == "" && want(e) {
			nodes = append(nodes, e.Node)
		}
		nodes = append(nodes, mentioned(e.Of, want)...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
