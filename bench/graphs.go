package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Work is the state of most graphs that are measured: five cells, of which one is written.
type Work struct {
	Title state.Value[string]
	Notes state.List[string]
	Seen  state.Set[string]
	Score state.Value[float64]
	Count state.Sum[int]
}

func (w *Work) count() int { return w.Count.Get() }

// A counting state knows how many nodes have changed it.
type counting[S any] interface {
	*S
	count() int
}

// step is what every node does.
func step(_ context.Context, w *Work) error {
	w.Count.Add(1)
	return nil
}

// write is what nodes do that write 1 KB each.
func write(_ context.Context, w *Work) error {
	w.Title.Set(text)
	return nil
}

// writeLong is what nodes do that write more than a store leaves as it is.
func writeLong(_ context.Context, w *Work) error {
	w.Title.Set(longText)
	return nil
}

// plain is a Work without cells, for those that have none.
type plain struct {
	Title string
	Notes []string
	Seen  map[string]struct{}
	Score float64
	Count int
}

func plainStep(_ context.Context, p *plain) error {
	p.Count++
	return nil
}

// A Page is 1 KB as JSON, with a text of pageBytes.
type Page struct {
	Number int
	Title  string
	Text   string
}

const pageBytes = 950

var pageText = noise(1, pageBytes)

func page(n int, text string) Page {
	return Page{Number: n, Title: "a page of a thousand bytes", Text: text}
}

// A Book is the state of graphs whose nodes write a struct of 1 KB each.
type Book struct {
	Page  state.Value[Page]
	Count state.Sum[int]
}

func (b *Book) count() int { return b.Count.Get() }

// text is what nodes write that write 1 KB: so much that a superstep of it is 1 031 bytes, with its
// envelope and its key, and is kept as it is. An append of more than 1 152 bytes a store tries to
// compress; longText, of which a superstep is 1 501, gains nothing by it.
var text, longText = noise(1, 800), noise(4, 1_270)

// noise returns a text of n bytes which compresses as little as one can, and which is JSON as it
// is, whoever writes it: nothing in it is escaped.
func noise(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	text := make([]byte, 0, n)
	for len(text) < n {
		if c := byte('#' + random.IntN('~'-'#')); strings.IndexByte(`&<>\`, c) < 0 {
			text = append(text, c)
		}
	}
	return string(text)
}

// keep is what every node of those does.
func keep(_ context.Context, b *Book) error {
	n := b.Count.Get() + 1
	b.Count.Set(n)
	b.Page.Set(page(n, pageText))
	return nil
}

// chain is a graph of n nodes, each of which follows the one before it.
func chain[S any](n int, f func(context.Context, *S) error) *dag.Graph[S] {
	b := dag.New[S]("chain")
	last := dag.Step(b, "node-1", f)
	for i := 2; i <= n; i++ {
		last = dag.Step(b, fmt.Sprintf("node-%d", i), f, last)
	}
	return build(b)
}

// fan is a graph of width parallel nodes between a first and a last one.
func fan(width int) *dag.Graph[Work] {
	b := dag.New[Work]("fan")
	first := dag.Step(b, "first", step)
	sides := make([]dag.Edge[Work], width)
	for i := range sides {
		sides[i] = dag.Step(b, fmt.Sprintf("side-%d", i+1), step, first)
	}
	dag.Step(b, "last", step, sides...)
	return build(b)
}

func build[S any](b *dag.Builder[S]) *dag.Graph[S] {
	g, err := b.Build()
	if err != nil {
		panic(err) // the graphs are ours
	}
	return g
}

func dispatch[S any](g *dag.Graph[S], store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[S] {
	d, err := dispatcher.New(g, store, o)
	if err != nil {
		panic(err) // so are the options
	}
	return d
}
