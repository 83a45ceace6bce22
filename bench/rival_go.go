//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// errgroups runs n bodies one after the other, each in an errgroup of its own.
func errgroups(n int) contender {
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			var p plain
			for range n {
				g, inner := errgroup.WithContext(ctx)
				g.Go(func() error { return plainStep(inner, &p) })
				if err := g.Wait(); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// A doubt is a question's side of a stopwatch: it runs from when a run first asks.
type doubt struct {
	asked time.Time // zero before
	took  time.Duration
}

func (d *doubt) ask() {
	if d.asked.IsZero() {
		d.asked = time.Now()
	}
}

func (d *doubt) settle() {
	d.took += time.Since(d.asked)
	d.asked = time.Time{}
}

// doubts runs a chain of n nodes, the last but one of which asks.
func doubts(n int) stopwatch {
	var clock doubt
	store := new(memory.Store)
	d := dispatch(doubtful(n, &clock), checkpoint.Store(store), dispatcher.Options{})
	made := 0
	return func(times int) (time.Duration, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		clock.took = 0
		for range times {
			made++
			run := "run-" + strconv.Itoa(made)
			r, err := d.Start(ctx, run, nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				return 0, fmt.Errorf("a run that asks should be interrupted: %w", err)
			}
			if err := d.Answer(ctx, run, r.Interrupts[0].ID, true); err != nil {
				return 0, err
			}
			if _, err := d.Run(ctx, run, nil); err != nil {
				return 0, err
			}
			clock.settle()
			if err := store.Delete(ctx, run); err != nil {
				return 0, err
			}
		}
		return clock.took, nil
	}
}

func doubtful(n int, clock *doubt) *dag.Graph[Work] {
	b := dag.New[Work]("doubtful")
	last := dag.Step(b, "node-1", step)
	for i := 2; i <= n; i++ {
		f := step
		if i == n-1 {
			f = func(ctx context.Context, w *Work) error {
				clock.ask()
				return ask(ctx, w)
			}
		}
		last = dag.Step(b, "node-"+strconv.Itoa(i), f, last)
	}
	return build(b)
}
