package dispatcher_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/pawlgo/pawl/dag"
)

const maxDepth = 3 // of the graphs that the generator nests

// A generator makes random graphs that Build may accept. The same seed gives the same.
type generator struct {
	*rand.Rand
	asked *atomic.Int64
	keys  int
}

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 1)), new(atomic.Int64), 0}
}

// percent is true in p of 100 cases.
func (r *generator) percent(p int) bool { return r.IntN(100) < p }

func (r *generator) graph(name string, depth int) *graphSpec {
	g := &graphSpec{Name: name}
	for i := range 2 + r.IntN([]int{8, 4, 3}[depth-1]) + 2/depth {
		g.Nodes = append(g.Nodes, r.node(g, i, depth))
	}
	r.close(g)
	for i, n := range g.Nodes {
		r.faults(n, g.catches(i))
	}
	return g
}

func (r *generator) node(g *graphSpec, i, depth int) *nodeSpec {
	n := &nodeSpec{Name: fmt.Sprintf("%c%d", 'a'+depth-1, i+1), Kind: dag.KindStep, asked: r.asked}
	if n.After = r.after(g); depth > 1 {
		n.Name = g.Name + n.Name
	}
	switch p := r.IntN(100); {
	case p < 17:
		n.Kind = dag.KindRoute
		n.Outcomes = []string{"left", "right", "down"}[:1+r.IntN(3)]
	case p < 22:
		n.Kind = dag.KindChoose
		n.Outcomes = []string{"left", "right", "down"}[:1+r.IntN(3)]
	case p < 38 && depth < maxDepth:
		n.Kind = dag.KindLoop
		n.Body = r.graph(n.Name, depth+1)
		n.Most, n.Odds = 1+r.IntN(3), r.IntN(6)
	case p < 50 && depth < maxDepth:
		n.Kind = dag.KindEmbed
		n.Body = r.graph(n.Name, depth+1)
		n.Body.Grouped = r.percent(30)
		n.In, n.Out = r.writes(3), r.writes(2)
	case p < 58:
		n.Kind = dag.KindEach
		n.Items, n.Parallel, n.Collect = 1+r.IntN(4), r.IntN(3), r.percent(40)
		if r.percent(40) && depth < maxDepth {
			n.Body = r.graph(n.Name, depth+1)
			n.Body.Grouped = r.percent(30)
			n.In, n.Out = r.writes(3), r.writes(2)
		}
	case p < 60 && len(n.After) == 1 && (len(n.After[0].On) > 0 || n.After[0].Failed):
		n.Kind = dag.KindFail
	}
	if n.Body == nil && n.Kind != dag.KindFail {
		n.Writes = r.writes(3)
	}
	return n
}

// after returns what the next node of g follows.
func (r *generator) after(g *graphSpec) []edgeSpec {
	some := g.handles()
	if len(some) == 0 || r.percent(18) {
		return nil
	}
	switch p := r.IntN(100); {
	case p < 15:
		if join := r.exclusive(g, some); join != nil {
			return join
		}
	case p < 25:
		if join := r.together(g, some); join != nil {
			return join
		}
	case p < 45:
		return []edgeSpec{r.combination(g, some, 2)}
	}
	return []edgeSpec{r.single(g, some)}
}

// handles are the nodes of g that can be followed.
func (g *graphSpec) handles() []int {
	var some []int
	for i, n := range g.Nodes {
		if n.Kind != dag.KindFail {
			some = append(some, i)
		}
	}
	return some
}

func (n *nodeSpec) ways() []string {
	switch n.Kind {
	case dag.KindLoop:
		return []string{dag.Done, string(dag.Exhausted)}
	case dag.KindEach:
		return []string{dag.Done, string(dag.Empty)}
	}
	return n.Outcomes
}

func (r *generator) single(g *graphSpec, some []int) edgeSpec {
	e := edgeSpec{Node: some[r.IntN(len(some))]}
	ways := g.Nodes[e.Node].ways()
	switch {
	case r.percent(12), g.Nodes[e.Node].Kind == dag.KindEach && r.percent(25):
		e.Failed = true
	case len(ways) > 0 && r.percent(45):
		first := r.IntN(len(ways))
		e.On = []string{ways[first]}
		if len(ways) > 1 && r.percent(15) {
			e.On = append(e.On, ways[(first+1)%len(ways)])
		}
	}
	return e
}

func (r *generator) combination(g *graphSpec, some []int, deep int) edgeSpec {
	e := edgeSpec{Op: "any"}
	if r.percent(40) {
		e.Op = "all"
	}
	for range 2 + r.IntN(2) {
		if deep > 1 && r.percent(25) {
			e.Of = append(e.Of, r.combination(g, some, deep-1))
		} else {
			e.Of = append(e.Of, r.single(g, some))
		}
	}
	return e
}

// exclusive returns two edges that can't both be taken, or nil if it finds none.
func (r *generator) exclusive(g *graphSpec, some []int) []edgeSpec {
	i := some[r.IntN(len(some))]
	pair := []edgeSpec{{Node: i}, {Node: i, Failed: true}}
	if ways := g.Nodes[i].ways(); len(ways) > 1 && g.Nodes[i].Kind != dag.KindChoose {
		first := r.IntN(len(ways))
		pair = []edgeSpec{{Node: i, On: ways[first : first+1]}, {Node: i, On: []string{ways[(first+1)%len(ways)]}}}
	}
	for k, e := range pair {
		for _, j := range some {
			if r.percent(60) && reflect.DeepEqual(g.Nodes[j].After, []edgeSpec{e}) {
				pair[k] = edgeSpec{Node: j}
				break
			}
		}
	}
	return pair
}

// together returns two edges that are both taken or both not, or nil if it finds none.
func (r *generator) together(g *graphSpec, some []int) []edgeSpec {
	i := some[r.IntN(len(some))]
	for _, j := range some {
		if j != i && reflect.DeepEqual(g.Nodes[i].After, g.Nodes[j].After) {
			return []edgeSpec{{Node: i}, {Node: j}}
		}
	}
	return nil
}

// close sees to it that every outcome leads somewhere: to an end, or to a failure.
func (r *generator) close(g *graphSpec) {
	for i, n := range slices.Clone(g.Nodes) {
		plain, followed := g.followed(i)
		if plain || (n.Kind == dag.KindLoop || n.Kind == dag.KindEach) && len(followed) == 0 {
			continue
		}
		for _, way := range n.ways() {
			e := edgeSpec{Node: i, On: []string{way}}
			switch {
			case slices.Contains(followed, way):
			case r.percent(7):
				g.Nodes = append(g.Nodes, &nodeSpec{Name: n.Name + "-" + way, Kind: dag.KindFail, After: []edgeSpec{e}})
			default:
				g.Ends = append(g.Ends, e)
			}
		}
	}
}

// followed says whether node i is followed whatever its outcome, and which outcomes are.
func (g *graphSpec) followed(i int) (plain bool, outcomes []string) {
	var walk func(edges []edgeSpec)
	walk = func(edges []edgeSpec) {
		for _, e := range edges {
			if e.Op == "" && e.Node == i && !e.Failed {
				plain = plain || len(e.On) == 0
				outcomes = append(outcomes, e.On...)
			}
			walk(e.Of)
		}
	}
	for _, n := range g.Nodes {
		walk(n.After)
	}
	return plain, outcomes
}

// faults makes n fail, more often if somebody follows that. Which items have run behind one
// that fails, and so ends the Each, is timing: where that can be seen for long, they are
// visited one by one. And which have behind one that can't be merged, or inside of which
// something can't: then everything can.
func (r *generator) faults(n *nodeSpec, caught bool) {
	defer func() {
		if n.Kind == dag.KindEach && !n.Collect && (n.Fails < 0 && !caught || n.Body != nil) {
			n.Parallel = 1
		}
		if n.Kind == dag.KindEach && n.Body != nil && n.Parallel > 0 {
			n.Body.calm()
		}
		if n.Kind == dag.KindEach && n.Fails < 0 && n.Parallel != 1 {
			calm(n.Writes)
		}
	}()
	if n.Body != nil {
		if victim := n.Body.Nodes[r.IntN(len(n.Body.Nodes))]; caught && victim.Kind == dag.KindStep && r.percent(60) {
			victim.Fails, victim.How = -1, string(dag.FailedError)
		}
		return
	}
	if n.Kind == dag.KindFail {
		return
	}
	n.How = string(dag.FailedError)
	switch p := r.IntN(100); {
	case p < 15:
		n.How = string(dag.FailedPanic)
	case p < 25:
		n.How = string(dag.FailedGoexit)
	case p < 45 && (n.Kind == dag.KindRoute || n.Kind == dag.KindChoose):
		n.How = string(dag.FailedOutcome)
	}
	if r.percent(20) {
		n.Attempts = 2 + r.IntN(2)
		n.Fails = r.IntN(n.Attempts)
	}
	if p := r.IntN(100); p < 2 || (caught || n.Kind == dag.KindEach) && p < 55 {
		n.Fails = -1 // of an Each, only some items do
	}
	if caught && n.Kind == dag.KindEach && !n.Collect {
		n.Fails, n.Items = -1, 6
	}
}

var merges = []cellOp{
	{Cell: "L", Do: "append"}, {Cell: "L", Do: "append"}, {Cell: "N", Do: "add"},
	{Cell: "M", Do: "put"}, {Cell: "E", Do: "add"}, {Cell: "F", Do: "merge"},
}

var alone = []cellOp{
	{Cell: "V", Do: "set"}, {Cell: "V", Do: "set"}, {Cell: "V", Do: "clear"},
	{Cell: "L", Do: "replace"}, {Cell: "L", Do: "truncate"}, {Cell: "L", Do: "set"},
	{Cell: "N", Do: "set"}, {Cell: "M", Do: "delete"}, {Cell: "M", Do: "replace"},
	{Cell: "M", Do: "clear"}, {Cell: "E", Do: "remove"}, {Cell: "E", Do: "clear"},
	{Cell: "F", Do: "set"},
}

// writes returns up to most writes, few of which don't merge with others.
func (r *generator) writes(most int) []cellOp {
	var ops []cellOp
	for range r.IntN(most + 1) {
		w := merges[r.IntN(len(merges))]
		if r.percent(6) {
			w = alone[r.IntN(len(alone))]
		}
		w.Val, w.Num = string(rune('a'+r.IntN(26)))+" ", r.IntN(3)
		if w.Cell == "M" || w.Cell == "E" {
			r.keys++
			w.Key = fmt.Sprintf("k%d", r.keys)
			if r.percent(12) || w.Do == "delete" || w.Do == "remove" {
				w.Key = fmt.Sprintf("k%d", 1+r.IntN(5))
			}
		}
		ops = append(ops, w)
	}
	return ops
}

// calm makes all writes of g merge with all others.
func (g *graphSpec) calm() {
	for _, n := range g.Nodes {
		for _, ops := range [][]cellOp{n.Writes, n.In, n.Out} {
			calm(ops)
		}
		if n.Body != nil {
			n.Body.calm()
		}
	}
}

func calm(ops []cellOp) {
	for i, w := range ops {
		if w.Key != "" || w.Do != "add" && w.Do != "merge" {
			ops[i] = cellOp{Cell: "L", Do: "append", Val: w.Val}
		}
	}
}
