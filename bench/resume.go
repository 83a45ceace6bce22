package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// resumes measures what it costs to ask a question near the end of a chain, to answer it and
// to go on in the same process, with a memory store: the difference to the same chain
// without a question.
func resumes(s session) ([]row, error) {
	var rows []row
	for _, n := range []int{10, 1_000} {
		all, err := s.contest(asking(n), stored(chain(n, step), nil))
		if err != nil {
			return nil, err
		}
		rows = append(rows, atMost(fmt.Sprintf("resume-%d", n), all[0].per(all[1], 1).times(1e-3), "µs", 10,
			"interrupt, answer and resume in a chain of %d", n))
	}
	return rows, nil
}

// asking runs a chain of n nodes, the last but one of which asks, and answers it.
func asking(n int) contender {
	store := new(memory.Store)
	d := dispatch(questioning(n), checkpoint.Store(store), dispatcher.Options{})
	made := 0
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			made++
			run := "run-" + strconv.Itoa(made)
			r, err := d.Start(ctx, run, nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				return fmt.Errorf("a run that asks should be interrupted: %w", err)
			}
			if err := d.Answer(ctx, run, r.Interrupts[0].ID, true); err != nil {
				return err
			}
			if _, err := d.Run(ctx, run, nil); err != nil {
				return err
			}
			if err := store.Delete(ctx, run); err != nil {
				return err
			}
		}
		return nil
	}
}

func questioning(n int) *dag.Graph[Work] {
	b := dag.New[Work]("questioning")
	last := dag.Step(b, "node-1", step)
	for i := 2; i <= n; i++ {
		f := step
		if i == n-1 {
			f = ask
		}
		last = dag.Step(b, "node-"+strconv.Itoa(i), f, last)
	}
	return build(b)
}

func ask(ctx context.Context, w *Work) error {
	if _, err := dag.Ask[bool](ctx, "sure", "Shall I go on?"); err != nil {
		return err
	}
	return step(ctx, w)
}
