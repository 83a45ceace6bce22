package main

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Work is the state of the graphs that are measured: five cells, of which one is written.
type Work struct {
	Title state.Value[string]
	Notes state.List[string]
	Seen  state.Set[string]
	Score state.Value[float64]
	Count state.Sum[int]
}

// step is what every node does.
func step(_ context.Context, w *Work) error {
	w.Count.Add(1)
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
