package dag

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/state"
)

type notes struct {
	Count state.Sum[int]
}

// A program decides, by numbers it is given, which graph to write: the same numbers give
// the same graph. Where the numbers end they are zero.
type program struct {
	numbers []byte
	b       *Builder[notes]
	edges   []func(p *program) Edge[notes] // one for each node that can be followed
}

func (p *program) next(n int) int {
	if len(p.numbers) == 0 {
		return 0
	}
	i := int(p.numbers[0]) % n
	p.numbers = p.numbers[1:]
	return i
}

// write writes a graph of at most most nodes. If careless it makes mistakes too.
func (p *program) write(most int, careless bool) {
	p.b = New[notes]("random")
	for range 1 + p.next(most) {
		p.node(careless)
	}
	for range p.next(3) {
		End(p.b, p.after(2, careless)...)
	}
}

func (p *program) node(careless bool) {
	name := fmt.Sprintf("n%d", len(p.b.nodes))
	after := p.after(4, careless)
	if careless && p.next(16) == 0 {
		name = []string{"", "n0", "a b", "7"}[p.next(4)]
	}
	switch p.next(6) {
	case 0, 1:
		f := func(context.Context, *notes) error { return nil }
		n := Step(p.b, name, f, after...)
		p.edges = append(p.edges, func(p *program) Edge[notes] {
			return []Edge[notes]{n, n.Failed()}[p.next(2)]
		})
	case 2:
		outcomes := []string{"a", "b", "c"}[:2+p.next(2)]
		f := func(context.Context, *notes) (string, error) { return "a", nil }
		n := Route(p.b, name, f, outcomes, after...)
		if !careless {
			End(p.b, n)
		}
		p.exits(n, outcomes, careless)
	case 3:
		l := Loop(p.b, name, body, func(*notes) bool { return true }, 1, after...)
		End(p.b, l)
		p.edges = append(p.edges, func(p *program) Edge[notes] {
			return []Edge[notes]{l, l.Failed(), l.On(Done), l.On(Exhausted)}[p.next(4)]
		})
	case 4:
		outcomes := make([]string, 60+p.next(10)) // sets of one word, and of two
		for i := range outcomes {
			outcomes[i] = fmt.Sprint("o", i)
		}
		f := func(context.Context, *notes) (string, error) { return "a", nil }
		n := Route(p.b, name, f, outcomes, after...)
		End(p.b, n)
		p.exits(n, outcomes, careless)
	case 5:
		Fail(p.b, name, after...)
	}
}

var body = func() *Graph[notes] {
	b := New[notes]("body")
	Step(b, "only", func(context.Context, *notes) error { return nil })
	g, _ := b.Build()
	return g
}()

func (p *program) exits(n RouteNode[notes, string], outcomes []string, careless bool) {
	p.edges = append(p.edges, func(p *program) Edge[notes] {
		switch p.next(6) {
		case 0:
			return n
		case 1:
			return n.Failed()
		case 2:
			if careless {
				return n.On("a", "x")
			}
			return n.On(outcomes[len(outcomes)-1])
		case 3:
			return n.On(outcomes[0], outcomes[1])
		}
		return n.On(outcomes[p.next(len(outcomes))])
	})
}

func (p *program) after(most int, careless bool) []Edge[notes] {
	var edges []Edge[notes]
	for range p.next(most) {
		if e := p.edge(2, careless); e != nil || careless {
			edges = append(edges, e)
		}
	}
	return edges
}

func (p *program) edge(depth int, careless bool) Edge[notes] {
	if len(p.edges) == 0 {
		return nil
	}
	kind := p.next(8)
	if depth == 0 || kind < 5 {
		return p.edges[p.next(len(p.edges))](p)
	}
	var of []Edge[notes]
	for range 2 + p.next(2) {
		of = append(of, p.edge(depth-1, careless))
	}
	if careless && p.next(8) == 0 {
		of = of[:p.next(2)]
	}
	if kind < 7 {
		return Any(of...)
	}
	return All(of...)
}

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
	value := w.values[e.Node]
	failed := w.b.failure[e.Node] && value == w.b.domains[e.Node]-1
	switch {
	case !w.ran[e.Node] || failed != e.Failed:
		return false
	case failed || e.On == nil:
		return true
	}
	for _, o := range e.On {
		if w.b.nodes[e.Node].outcomes[value] == o {
			return true
		}
	}
	return false
}

// holds reports whether g holds in w.
func (w *world) holds(g guard) bool {
	for t := g.terms; t != nil; t = t.next {
		if !t.in.has(w.values[t.variable]) {
			return false
		}
	}
	return true
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
		w := &world{b, make([]int, len(b.nodes)), make([]bool, len(b.nodes))}
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

// An exit of the graph under test, with the guard that Build found for it.
type guarded struct {
	e Expr
	g guard
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
	var all []guarded
	for i, n := range b.nodes {
		for _, e := range n.after {
			if g, ok := b.guardOf(n, e); ok {
				all = append(all, guarded{e, g})
			}
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
		for i, x := range all {
			w.checkGuard(t, x.String(b), w.taken(x.e), x.g)
			for _, y := range all[:i] {
				if excludes(x.g, y.g) && w.taken(x.e) && w.taken(y.e) {
					t.Errorf("%s and %s are taken together", x.String(b), y.String(b))
				}
				if same(x.g, y.g) && w.taken(x.e) != w.taken(y.e) {
					t.Errorf("of %s and %s one is taken", x.String(b), y.String(b))
				}
			}
		}
	})
	if ok {
		*refused += checkRefused(t, b)
	}
	return ok
}

func (x guarded) String(b *build) string { return b.expr(x.e).String() }

// checkGuard: a guard is never too narrow, and if it is exact it is not too wide.
func (w *world) checkGuard(t *testing.T, what string, happens bool, g guard) {
	if happens && !w.holds(g) || g.exact && !happens && w.holds(g) {
		t.Errorf("%s: happens %v, guard holds %v, exact %v", what, happens, w.holds(g), g.exact)
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

// FuzzBuild writes graphs with every kind of mistake. Build never panics, and what it
// accepts can be described, drawn and compared.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 0, 2, 1, 1, 0, 0, 2, 1, 3, 3})
	random := rand.New(rand.NewPCG(2, 0))
	for range 50 {
		numbers := make([]byte, 100)
		for i := range numbers {
			numbers[i] = byte(random.IntN(256))
		}
		f.Add(numbers)
	}
	f.Fuzz(func(t *testing.T, numbers []byte) {
		p := &program{numbers: numbers}
		p.write(40, len(numbers)%2 == 1)
		g, err := p.b.Build()
		if err != nil {
			if !strings.HasPrefix(err.Error(), `dag: graph "random": `) {
				t.Errorf("Build: %v", err)
			}
			return
		}
		var d document
		if err := json.Unmarshal(g.plan.JSON, &d); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(d)
		if err != nil || string(again) != string(g.plan.JSON) {
			t.Errorf("the JSON %s\nreads as  %s, %v", g.plan.JSON, again, err)
		}
		if c := Changes(g.plan.JSON, again); len(c) > 0 {
			t.Errorf("a graph differs from itself: %q", c)
		}
		if g.Mermaid() == "" || g.DOT() == "" {
			t.Error("a drawing is empty")
		}
	})
}
