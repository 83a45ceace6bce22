package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// benchChain is a graph of n nodes in a line, each of which adds to a Sum.
func benchChain(b testing.TB, n int) *dag.Graph[Tale] {
	line := dag.New[Tale]("line")
	count := func(_ context.Context, s *Tale) error {
		s.Count.Add(1)
		return nil
	}
	last := dag.Step(line, "node-1", count)
	for i := 2; i <= n; i++ {
		last = dag.Step(line, fmt.Sprintf("node-%d", i), count, last)
	}
	return frozen(b, line)
}

// BenchmarkStart is a whole run of a chain.
func BenchmarkStart(b *testing.B) {
	for _, stored := range []bool{false, true} {
		for _, n := range []int{1, 10, 1_000} {
			b.Run(fmt.Sprintf("stored=%v/nodes=%d", stored, n), func(b *testing.B) {
				var memories memory.Store
				var store checkpoint.Store
				if stored {
					store = &memories
				}
				d := callsDispatcher(b, benchChain(b, n), store, dispatcher.Options{})
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Start(b.Context(), run, nil); err != nil {
						b.Fatal(err)
					}
					if stored {
						if err := memories.Delete(b.Context(), run); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// interruptedAfter is a run of a chain that waits before its last node, in a store of memory.
func interruptedAfter(b *testing.B, nodes int, store *memory.Store) (fresh func() *dispatcher.Dispatcher[Tale]) {
	g := benchChain(b, nodes+1)
	o := dispatcher.Options{InterruptBefore: []string{fmt.Sprintf("node-%d", nodes+1)}}
	fresh = func() *dispatcher.Dispatcher[Tale] { return callsDispatcher(b, g, store, o) }
	if _, err := fresh().Start(b.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		b.Fatalf("the run should wait: %v", err)
	}
	return fresh
}

// BenchmarkState is what it takes a dispatcher that has never seen a run to know where it stands.
func BenchmarkState(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			d := interruptedAfter(b, n, new(memory.Store))()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.State(b.Context(), run); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNew is what a dispatcher costs a program that begins.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			g := benchChain(b, n)
			b.ReportAllocs()
			for b.Loop() {
				callsDispatcher(b, g, nil, dispatcher.Options{})
			}
		})
	}
}
