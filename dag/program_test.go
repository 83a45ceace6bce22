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
	switch p.next(8) {
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
	case 6:
		outcomes := []string{"a", "b", "c"}[:1+p.next(3)]
		f := func(context.Context, *notes) ([]string, error) { return nil, nil }
		n := Choose(p.b, name, f, outcomes, after...)
		if !careless {
			End(p.b, n)
		}
		p.exits(n, outcomes, careless)
	case 7:
		n := p.each(name, after)
		End(p.b, n)
		p.edges = append(p.edges, func(p *program) Edge[notes] {
			return []Edge[notes]{n, n.Failed(), n.On(Done), n.On(Empty)}[p.next(4)]
		})
	}
}

func (p *program) each(name string, after []Edge[notes]) RouteNode[notes, EachOutcome] {
	items := func(*notes) []int { return nil }
	if p.next(2) == 0 {
		return Each(p.b, name, items, func(context.Context, *notes, int) error { return nil }, after...)
	}
	pass := func(*notes, int, *notes) {}
	return EachGraph(p.b, name, items, body, pass, pass, after...)
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
			return n.On(outcomes[0], outcomes[1:min(2, len(outcomes))]...)
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
