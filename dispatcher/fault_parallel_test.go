package dispatcher_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// wide returns a graph of n parallel nodes that take a second each, and the largest number
// of them that ever ran at once.
func wide(t testing.TB, n int, p dag.Policy) (*dag.Graph[Tale], *atomic.Int32) {
	var now, most atomic.Int32
	b := dag.New[Tale]("wide")
	for i := range n {
		dag.Step(b, fmt.Sprintf("n%d", i), func(ctx context.Context, s *Tale) error {
			k := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
			}
			s.Count.Add(1)
			return heeds(ctx, time.Second)
		}).With(p)
	}
	return frozen(t, b), &most
}

// Options.Parallel bounds the bodies that run at once, over all runs of a dispatcher, and
// nothing is left unused.
func TestParallelBodies(t *testing.T) {
	for _, c := range []struct {
		parallel, runs, width int
		most                  int32
		took                  time.Duration
	}{
		{parallel: 1, runs: 1, width: 6, most: 1, took: 6 * time.Second},
		{parallel: 3, runs: 1, width: 6, most: 3, took: 2 * time.Second},
		{parallel: 3, runs: 4, width: 6, most: 3, took: 8 * time.Second},
		{parallel: 100, runs: 4, width: 6, most: 24, took: time.Second},
		{parallel: 0, runs: 4, width: 6, most: 24, took: time.Second},
		{parallel: 2, runs: 5, width: 1, most: 2, took: 3 * time.Second},
	} {
		t.Run(fmt.Sprintf("parallel=%d/runs=%d/width=%d", c.parallel, c.runs, c.width), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				g, most := wide(t, c.width, dag.Policy{})
				d := process(t, g, &store, dispatcher.Options{Parallel: c.parallel})
				began := time.Now()
				ends := make(chan error, c.runs)
				for i := range c.runs {
					go func() {
						_, err := d.Run(t.Context(), fmt.Sprint(i), nil)
						ends <- err
					}()
				}
				for range c.runs {
					if err := <-ends; err != nil {
						t.Error(err)
					}
				}
				if got := most.Load(); got != c.most {
					t.Errorf("%d bodies ran at once, want %d", got, c.most)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// Waiting for its turn is no part of an attempt: its time limit begins with its body.
func TestParallelBodiesAndTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		g, _ := wide(t, 5, dag.Policy{Timeout: 1500 * time.Millisecond})
		res, err := process(t, g, &store, dispatcher.Options{Parallel: 1}).Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// A run that waits for its turn hears of the end of its context at once, and what it waited
// for goes to others: also if its turn comes in the same moment.
func TestParallelBodiesAndCancel(t *testing.T) {
	for _, after := range []time.Duration{500 * time.Millisecond, time.Second} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				g, _ := wide(t, 1, dag.Policy{})
				d := process(t, g, &store, dispatcher.Options{Parallel: 1})
				first := make(chan error, 1)
				go func() {
					_, err := d.Run(t.Context(), "first", nil)
					first <- err
				}()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				began := time.Now()
				if _, err := d.Run(ctx, run, nil); err == nil {
					t.Error("a run completed that had no time")
				}
				if took := time.Since(began); took != after {
					t.Errorf("the call returned after %v, want %v", took, after)
				}
				if err := <-first; err != nil {
					t.Error(err)
				}
				last, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := d.Run(last, "last", nil); err != nil {
					t.Errorf("a run that has all to itself: %v", err)
				}
			})
		}
	}
}
