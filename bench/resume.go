package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// resumes measures what it costs to ask a question near the end of a chain, to answer it and to go
// on, with a memory store. In the process that asks, that is from the moment at which the node
// begins to the end of the run, two nodes included. A dispatcher that has never seen the run has to
// read its log first, as another process would: that counts from the answer.
func resumes(s session) ([]row, error) {
	var rows []row
	for _, n := range []int{10, 100, 1_000} {
		if !s.wants(fmt.Sprintf("resume-%d", n)) && !s.wants(fmt.Sprintf("resume-cold-%d/", n)) {
			continue
		}
		store := new(memory.Store)
		var behind uint64
		times := questionsOf(s, n)
		all, err := s.probes([]int{times, times}, asking(n), answered(n, store, &behind).timed)
		if err != nil {
			return rows, err
		}
		warm, cold := all[0].times(1e-3), all[1].times(1e-3)
		s.charts.resume.point("in the process that asked", float64(n), warm.median())
		s.charts.resume.point("in another one, from the log", float64(n), cold.median())
		entries := float64(behind) / float64(times*s.rounds)
		rows = append(rows,
			atMost(fmt.Sprintf("resume-%d", n), warm, "µs", 10, "interrupt, answer and resume in a chain of %d", n),
			atMost(fmt.Sprintf("resume-cold-%d", n), cold, "µs", 5+0.2*entries,
				"answer and resume by a dispatcher that has never seen the run; 5 µs, and 0.2 µs for each of %.0f entries behind the snapshot", entries))
	}
	if !s.wants("resume/flat") {
		return rows, nil
	}
	flat, err := s.flatness(asking)
	if err != nil {
		return rows, err
	}
	return append(rows, atMost("resume/flat", flat[0].over(flat[1]), "ratio", 1.25,
		"interrupt, answer and resume in a chain of 1 000, %.3g µs, to one of 10, %.3g µs", flat[0].median()*1e-3, flat[1].median()*1e-3)), nil
}

// questionsOf is how many questions behind n nodes are asked in a window.
func questionsOf(s session, n int) int { return s.scale(20_000/n, 2) }

// flatness lets questions behind 1 000 nodes and behind 10 take turns.
func (s session) flatness(behind func(nodes int) probe) ([]series, error) {
	return s.probes([]int{questionsOf(s, 1_000), questionsOf(s, 10)}, behind(1_000), behind(10))
}

// asking runs a chain of n nodes, the last but one of which asks, and answers it. It counts from
// the question on.
func asking(n int) probe {
	store := new(memory.Store)
	var began time.Time
	g := questioning(n, func(ctx context.Context, w *Work) error {
		if began.IsZero() {
			began = time.Now()
		}
		return ask(ctx, w)
	})
	d := dispatch(g, checkpoint.Store(store), dispatcher.Options{})
	made := 0
	return func(times int) (took time.Duration, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var last *dispatcher.Result[Work]
		runtime.GC()
		for range times {
			made++
			run := "run-" + strconv.Itoa(made)
			began = time.Time{}
			id, err := question(ctx, d, run)
			if err != nil {
				return 0, err
			}
			if last, err = answer(ctx, d, run, id); err != nil {
				return 0, err
			}
			took += time.Since(began)
			if err := store.Delete(ctx, run); err != nil {
				return 0, err
			}
		}
		return took, countsTo(last, n)
	}
}

// answered goes on with runs that another dispatcher has brought to a question, and adds up how
// many entries all of them have behind their newest snapshots.
func answered(n int, store *memory.Store, behind *uint64) stage {
	ctx := context.Background()
	return func(times int) (func() error, func(), error) {
		asks := dispatch(questioning(n, ask), checkpoint.Store(store), dispatcher.Options{})
		answers := dispatch(questioning(n, ask), checkpoint.Store(store), dispatcher.Options{})
		ids := make([]string, times)
		for i := range ids {
			run := "run-" + strconv.Itoa(i)
			if err := store.Delete(ctx, run); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
				return nil, nil, err
			}
			var err error
			if ids[i], err = question(ctx, asks, run); err != nil {
				return nil, nil, err
			}
		}
		for i := range ids { // not all runs have one at the same place: none is begun while another one is written
			n, err := behindSnapshot(store, "run-"+strconv.Itoa(i))
			if err != nil {
				return nil, nil, err
			}
			*behind += n
		}
		return func() error {
			var last *dispatcher.Result[Work]
			for i, id := range ids {
				var err error
				if last, err = answer(ctx, answers, "run-"+strconv.Itoa(i), id); err != nil {
					return err
				}
			}
			return countsTo(last, n)
		}, nil, nil
	}
}

// question starts a run that asks, and returns the id of the question.
func question(ctx context.Context, d *dispatcher.Dispatcher[Work], run string) (string, error) {
	r, err := d.Start(ctx, run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		return "", fmt.Errorf("a run that asks should be interrupted: %w", err)
	}
	return r.Interrupts[0].ID, nil
}

func answer(ctx context.Context, d *dispatcher.Dispatcher[Work], run, id string) (*dispatcher.Result[Work], error) {
	return d.Run(ctx, run, nil, dispatcher.Answering(id, true))
}

// behindSnapshot returns how many entries of a run have to be read that its newest snapshot does
// not have.
func behindSnapshot(store *memory.Store, run string) (uint64, error) {
	info, err := store.Stat(context.Background(), run)
	if err != nil {
		return 0, err
	}
	snapshot, err := store.Snapshot(context.Background(), run, info.Head.Seq)
	if errors.Is(err, checkpoint.ErrNotFound) {
		err = nil
	}
	return info.Head.Seq - snapshot.Head.Seq, err
}

// questioning is a chain of n nodes, of which the last but one asks.
func questioning(n int, ask func(context.Context, *Work) error) *dag.Graph[Work] {
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
