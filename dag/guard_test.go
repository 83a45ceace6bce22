package dag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A world is one way in which everything could go: a value for each variable. What
// happens in it is computed from the words of rule 2, without guards.
type world struct {
	b      *build
	values []int
	ran    []bool
}

func (w *world) taken(e Expr) bool {
	switch e.Op {
	case OpNone:
		return true
	case OpAll:
		for _, member := range e.Of {
			if !w.taken(member) {
				return false
			}
		}
		return true
	case OpAny:
		for _, member := range e.Of {
			if w.taken(member) {
				return true
			}
		}
		return false
	}
	first := w.b.first[e.Node]
	value := w.values[first]
	failed := w.b.failure[e.Node] && value == w.b.domains[first]-1
	switch {
	case !w.ran[e.Node] || failed != e.Failed:
		return false
	case failed || e.On == nil:
		return true
	}
	for k, o := range w.b.nodes[e.Node].outcomes {
		chosen := k == value
		if w.b.nodes[e.Node].kind == KindChoose {
			chosen = w.values[first+1+k] == 1
		}
		if chosen && slices.Contains(e.On, o) {
			return true
		}
	}
	return false
}

// holds reports whether g holds in w.
func (w *world) holds(g guard) bool {
list:
	for terms := range g.lists {
		for t := terms; t != nil; t = t.next {
			if v := w.values[t.variable]; t.in[v/64]&(1<<(v%64)) == 0 {
				continue list
			}
		}
		return true
	}
	return false
}

// worlds yields every world of b, if there are not too many.
func worlds(b *build, yield func(w *world)) bool {
	count := 1
	for _, d := range b.domains {
		if count *= d; count > 3_000 {
			return false
		}
	}
	for n := range count {
		w := &world{b, make([]int, len(b.domains)), make([]bool, len(b.nodes))}
		for i, d := range b.domains {
			w.values[i] = n % d
			n /= d
		}
		for i := range b.nodes {
			w.ran[i] = b.known[i] && w.taken(b.follows[i])
		}
		yield(w)
	}
	return true
}

// A pair is two edges of the graph under test, and what their guards say about them.
type pair struct {
	x, y           Expr
	excludes, same bool
}

// TestGuardsAgainstEveryWorld writes random graphs and compares what Build concludes from
// guards with what happens in every possible world.
func TestGuardsAgainstEveryWorld(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	checked, joins, refused := 0, 0, 0
	for checked < 2500 {
		numbers := make([]byte, 120)
		for i := range numbers {
			numbers[i] = byte(random.IntN(256))
		}
		p := &program{numbers: numbers}
		p.write(7, false)
		b := newBuild(p.b.name, p.b.nodes, p.b.ends)
		for i := range b.nodes {
			b.visit(i)
		}
		if checkWorlds(t, b, &joins, &refused) {
			checked++
		}
		if t.Failed() {
			t.Fatalf("seed %d, graph %v:\n%s", seed, numbers, b.sketch())
		}
	}
	if joins < 400 || refused < 400 {
		t.Errorf("only %d joins accepted and %d refused: the graphs are too dull", joins, refused)
	}
}

func (b *build) sketch() string {
	var s strings.Builder
	for _, n := range b.nodes {
		fmt.Fprintf(&s, "%s %v follows %s\n", n.name, n.kind, b.list(n.after))
	}
	return s.String()
}

func checkWorlds(t *testing.T, b *build, joins, refused *int) bool {
	var edges []Expr
	var guards []guard
	var pairs []pair
	for i, n := range b.nodes {
		for _, e := range n.after {
			g, ok := b.guardOf(n, e)
			if !ok {
				continue
			}
			for k, h := range guards {
				pairs = append(pairs, pair{edges[k], e, excludes(g, h), same(g, h)})
			}
			edges, guards = append(edges, e), append(guards, g)
		}
		if b.known[i] && len(n.after) > 1 {
			*joins++
		}
	}
	ok := worlds(b, func(w *world) {
		for i, n := range b.nodes {
			if b.known[i] {
				w.checkGuard(t, n.name, w.ran[i], b.guards[i])
				w.checkJoin(t, i)
			}
		}
		for k, e := range edges {
			w.checkGuard(t, b.expr(e), w.taken(e), guards[k])
		}
		for _, p := range pairs {
			w.checkPair(t, p)
		}
	})
	if ok {
		*refused += checkRefused(t, b)
	}
	return ok
}

// checkPair: edges that exclude each other are not taken together, and of edges that are
// the same none is taken alone.
func (w *world) checkPair(t *testing.T, p pair) {
	if !p.excludes && !p.same {
		return
	}
	x, y := w.taken(p.x), w.taken(p.y)
	if p.excludes && x && y || p.same && x != y {
		t.Errorf("%v and %v: taken %v and %v, but excludes %v, same %v",
			w.b.expr(p.x), w.b.expr(p.y), x, y, p.excludes, p.same)
	}
}

// checkGuard: a guard is never too narrow, and if it is exact it is not too wide.
func (w *world) checkGuard(t *testing.T, what any, happens bool, g guard) {
	if happens && !w.holds(g) || g.exact && !happens && w.holds(g) {
		t.Errorf("%v: happens %v, guard holds %v, exact %v", what, happens, w.holds(g), g.exact)
	}
}

// checkJoin: of edges that were given without a word either at most one is taken in any
// world, or all of them or none.
func (w *world) checkJoin(t *testing.T, i int) {
	after := w.b.nodes[i].after
	if len(after) < 2 {
		return
	}
	n := 0
	for _, e := range after {
		if w.taken(e) {
			n++
		}
	}
	switch op := w.b.follows[i].Op; {
	case op == OpAny && n > 1:
		t.Errorf("%s: %d edges that exclude each other are taken", w.b.nodes[i].name, n)
	case op == OpAll && n != 0 && n != len(after):
		t.Errorf("%s: %d of %d edges are taken", w.b.nodes[i].name, n, len(after))
	}
}

// checkRefused: a join of exact guards is refused only if there is a world in which some
// edges are taken and others not, and one in which two are taken.
func checkRefused(t *testing.T, b *build) int {
	refused := 0
	for i, n := range b.nodes {
		if b.known[i] || len(n.after) < 2 {
			continue
		}
		exact := true
		for _, e := range n.after {
			g, ok := b.guardOf(n, e)
			exact = exact && ok && g.exact
		}
		if !exact {
			continue
		}
		some, several := false, false
		worlds(b, func(w *world) {
			taken := 0
			for _, e := range n.after {
				if w.taken(e) {
					taken++
				}
			}
			some = some || taken > 0 && taken < len(n.after)
			several = several || taken > 1
		})
		if !some || !several {
			t.Errorf("%s is refused without need: some %v, several %v", n.name, some, several)
		}
		refused++
	}
	return refused
}
