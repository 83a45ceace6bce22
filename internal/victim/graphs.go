package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// Work is the state of every graph.
type Work struct {
	Seed  state.Value[int64]
	Steps state.Sum[int64]    // visits
	Chain state.Value[string] // of the visits that have nobody beside them
	Trail state.List[string]  // a mark for each visit
	Pages state.List[string]  // what makes a state large
}

// graphs have a function that builds them, and one that does the same work in a plain loop and
// says where supersteps of the run's own frame end.
var graphs = map[string]struct {
	build     func(*victim, *dag.Builder[Work])
	reference func(*plain)
}{
	"line50": { // nodes in a row
		func(v *victim, b *dag.Builder[Work]) { v.row(b, advance, numbered("step", 50)...) },
		func(p *plain) { p.row(p.advance, numbered("step", 50)...) },
	},
	"slow": { // a second in ten parts
		func(v *victim, b *dag.Builder[Work]) { v.row(b, slowly, numbered("step", 10)...) },
		func(p *plain) { p.row(p.advance, numbered("step", 10)...) },
	},
	"big": { // a state that grows to 8 MiB
		func(v *victim, b *dag.Builder[Work]) { v.row(b, write, numbered("step", 8)...) },
		func(p *plain) { p.row(p.write, numbered("step", 8)...) },
	},
	"leaf50": { // nodes in a row, of which each puts its page in the place of the one before
		func(v *victim, b *dag.Builder[Work]) { v.row(b, turnOver, numbered("step", 50)...) },
		func(p *plain) { p.row(p.turnOver, numbered("step", 50)...) },
	},
	"diamond": { // two nodes side by side
		func(v *victim, b *dag.Builder[Work]) {
			top := v.step(b, "top", advance)
			v.step(b, "bottom", advance, v.step(b, "left", leave, top), v.step(b, "right", leave, top))
		},
		func(p *plain) {
			p.row(p.advance, "top")
			p.leave("left")
			p.leave("right")
			p.end()
			p.row(p.advance, "bottom")
		},
	},
	"fan200": { // a node for 200 items side by side
		func(v *victim, b *dag.Builder[Work]) {
			before := v.step(b, "before", advance)
			v.step(b, "after", advance, dag.Each(b, "fan", items, v.item, before))
		},
		func(p *plain) {
			p.row(p.advance, "before")
			for i := range fan {
				p.leave(fmt.Sprintf("fan/%d", i+1))
			}
			p.end()
			p.row(p.advance, "after")
		},
	},
	"loop1000": { // one superstep, in which a frame has a thousand
		func(v *victim, b *dag.Builder[Work]) {
			dag.Loop(b, "loop", v.turn(), func(w *Work) bool { return w.Steps.Get() == turns }, turns)
		},
		func(p *plain) {
			for i := range turns {
				p.advance(fmt.Sprintf("loop/%d/turn", i+1))
			}
			p.end()
		},
	},
	"stubborn": { // a node that does not heed its context, for a minute
		func(v *victim, b *dag.Builder[Work]) {
			v.step(b, "after", advance, v.step(b, "stubborn", ignore, v.step(b, "before", advance)))
		},
		func(p *plain) { p.row(p.advance, "before", "stubborn", "after") },
	},
	"panic": { // a node that always panics, behind one that does not
		func(v *victim, b *dag.Builder[Work]) { v.step(b, "panic", fail, v.step(b, "before", advance)) },
		func(p *plain) { p.row(p.advance, "before") },
	},
	"hitl": { // a node that asks a person
		func(v *victim, b *dag.Builder[Work]) {
			v.step(b, "after", advance, v.step(b, "ask", ask, v.step(b, "before", advance)))
		},
		func(p *plain) { p.row(p.advance, "before", "ask", "after") },
	},
}

func graphNames() []string { return slices.Sorted(maps.Keys(graphs)) }

const (
	fan   = 200
	turns = 1000
)

func items(*Work) []int { return make([]int, fan) }

func (v *victim) item(ctx context.Context, w *Work, _ int) error {
	return leave(ctx, w, v.began(ctx))
}

// turn is the body of the loop.
func (v *victim) turn() *dag.Graph[Work] {
	b := dag.New[Work]("turn")
	v.step(b, "turn", advance)
	graph, err := b.Build()
	if err != nil {
		panic(fmt.Sprintf("the body of the loop can't be built: %v", err))
	}
	return graph
}

// build builds the graph of the call.
func (v *victim) build() (*dag.Graph[Work], error) {
	b := dag.New[Work](v.graph)
	graphs[v.graph].build(v, b)
	return b.Build()
}

// A body is the function of a node, which is told the path of its visit.
type body func(ctx context.Context, w *Work, path string) error

// step adds a node whose body says that it begins.
func (v *victim) step(b *dag.Builder[Work], name string, do body, after ...dag.Edge[Work]) dag.Node[Work] {
	return dag.Step(b, name, func(ctx context.Context, w *Work) error { return do(ctx, w, v.began(ctx)) }, after...)
}

// row adds nodes in a row.
func (v *victim) row(b *dag.Builder[Work], do body, names ...string) {
	var after []dag.Edge[Work]
	for _, name := range names {
		after = []dag.Edge[Work]{v.step(b, name, do, after...)}
	}
}

// numbered returns n names.
func numbered(name string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", name, i+1)
	}
	return names
}

// leave is the body of what has others beside it.
func leave(_ context.Context, w *Work, path string) error {
	w.Steps.Add(1)
	w.Trail.Append(mark(w.Seed.Get(), path))
	return nil
}

func advance(ctx context.Context, w *Work, path string) error {
	w.Chain.Set(link(w.Chain.Get(), path))
	return leave(ctx, w, path)
}

func write(ctx context.Context, w *Work, path string) error {
	w.Pages.Append(page(w.Seed.Get(), path))
	return advance(ctx, w, path)
}

func turnOver(ctx context.Context, w *Work, path string) error {
	w.Pages.Replace([]string{leaf(w.Seed.Get(), path)})
	return advance(ctx, w, path)
}

func slowly(ctx context.Context, w *Work, path string) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(100 * time.Millisecond):
		return advance(ctx, w, path)
	}
}

func ignore(ctx context.Context, w *Work, path string) error {
	time.Sleep(time.Minute)
	return advance(ctx, w, path)
}

func fail(context.Context, *Work, string) error { panic("as it was told to") }

var errRefused = errors.New("the answer is no")

func ask(ctx context.Context, w *Work, path string) error {
	yes, err := dag.Ask[bool](ctx, "goes-on", "Shall it go on?")
	if err == nil && !yes {
		err = errRefused
	}
	if err != nil {
		return err
	}
	return advance(ctx, w, path)
}

func mark(seed int64, path string) string { return sum(fmt.Sprintf("%d %s", seed, path))[:16] }

func link(chain, path string) string { return sum(chain + " " + path) }

// page is a text of 1 MiB that does not compress well: 16384 hex SHA-256 of "seed path n", n
// from 0.
func page(seed int64, path string) string { return text(seed, path, 1<<14) }

// leaf is the first eighth of a page.
func leaf(seed int64, path string) string { return text(seed, path, 1<<11) }

func text(seed int64, path string, sums int) string {
	var b strings.Builder
	for n := range sums {
		b.WriteString(sum(fmt.Sprintf("%d %s %d", seed, path, n)))
	}
	return b.String()
}
