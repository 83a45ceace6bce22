package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// scaling measures the largest things that are promised to work against ordinary ones: each further
// superstep, item or byte should cost what the first thousands did.
func scaling(s session) ([]row, error) {
	var rows []row
	for _, measure := range []func(session) ([]row, error){longRuns, manyItems, largeStates} {
		some, err := measure(s)
		if err != nil {
			return rows, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// longRuns measures a run of a million supersteps against a hundred of ten thousand: running them,
// and finding out where one stands once the store was opened anew.
func longRuns(s session) ([]row, error) {
	const short = 100
	supersteps := s.scale(1_000_000, 20_000)
	var running, standing [2]series
	times := []int{1, short}
	for round := range s.rounds {
		for k := range times {
			i := (k + round) % len(times)
			ran, stood, err := longRun(s, times[i], supersteps/times[i])
			if err != nil {
				return nil, err
			}
			running[i] = append(running[i], float64(ran)*1e-3/float64(supersteps))
			standing[i] = append(standing[i], float64(stood)*1e-6)
		}
	}
	return []row{
		atMost("scale/supersteps", running[0].over(running[1]), "ratio", 1.25,
			"a superstep of a run of %d (%.3g µs) to one of %d runs of %d (%.3g µs), one after the other, with a store of Badger that is not synced",
			supersteps, running[0].median(), short, supersteps/short, running[1].median()),
		shown("scale/supersteps-open", standing[0], "ms",
			"where a run of %d supersteps stands, with its state, in a store just opened; of %d: %.3g ms",
			supersteps, supersteps/short, standing[1].median()),
	}, nil
}

// longRun runs so many supersteps so many times, ten in each iteration of a loop, and tells how
// long that took, and how long it takes to find out where the last one stands in the store opened
// anew.
func longRun(s session, runs, supersteps int) (running, standing time.Duration, err error) {
	b, err := openBed(s, false)
	if err != nil {
		return 0, 0, err
	}
	defer func() { b.discard() }()
	loop := dag.New[Work]("loop")
	dag.Loop(loop, "again", chain(10, step), func(w *Work) bool { return w.Count.Get() >= supersteps }, supersteps)
	g := build(loop)
	o := dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 2 * supersteps}}
	d, last := dispatch(g, checkpoint.Store(b.store), o), ""
	began := time.Now()
	for i := range runs {
		last = "run-" + strconv.Itoa(i)
		if _, err := d.Start(context.Background(), last, nil); err != nil {
			return 0, 0, err
		}
	}
	running = time.Since(began)
	if err := b.close(); err != nil {
		return 0, 0, err
	}
	again, err := reopenBed(b.dir, true)
	if err != nil {
		return 0, 0, err
	}
	b = again
	began = time.Now()
	r, err := dispatch(g, checkpoint.Store(b.store), o).State(context.Background(), last)
	if err != nil {
		return 0, 0, err
	}
	if n := r.State.Count.Get(); n != supersteps {
		return 0, 0, fmt.Errorf("a run of %d supersteps has counted to %d", supersteps, n)
	}
	return running, time.Since(began), nil
}

// manyItems measures an Each of as many items as one may have against one of a thousand.
func manyItems(s session) ([]row, error) {
	many, few := s.scale(100_000, 1_000), s.scale(1_000, 100)
	all, err := s.probes([]int{many, few}, eachOf(many, 1), eachOf(few, many/few))
	if err != nil {
		return nil, err
	}
	return []row{atMost("scale/items", all[0].over(all[1].times(float64(few)/float64(many))), "ratio", 1.25,
		"an item of an Each of %d (%.3g µs) to one of an Each of %d, with a memory store", many, all[0].median()*1e-3, few)}, nil
}

// eachOf runs an Each of so many items, again and again, each time with a new memory store, which
// is made before, with its dispatcher.
func eachOf(items, times int) probe {
	b := dag.New[Work]("each")
	all := make([]int, items)
	dag.Each(b, "items", func(*Work) []int { return all }, func(_ context.Context, w *Work, _ int) error {
		w.Count.Add(1)
		return nil
	})
	g := build(b)
	return func(int) (time.Duration, error) {
		ready := make([]*dispatcher.Dispatcher[Work], times)
		for i := range ready {
			ready[i] = dispatch(g, checkpoint.Store(new(memory.Store)), dispatcher.Options{})
		}
		began := time.Now()
		for _, d := range ready {
			if r, err := d.Start(context.Background(), "each", nil); err != nil || r.State.Count.Get() != items {
				return 0, fmt.Errorf("an Each of %d items: %w", items, err)
			}
		}
		return time.Since(began), nil
	}
}

// A Chest is a state of many large values, of which its nodes write none.
type Chest struct {
	Count state.Sum[int]
	Files state.Map[string, string]
}

// largeStates measures supersteps over a state near the limit of 256 MiB against those over a small
// one. What the input takes is not measured, nor what it takes to collect what that left behind.
func largeStates(s session) ([]row, error) {
	const file = 1 << 20
	files := s.scale(240, 2)
	all, err := s.probes([]int{1_000, 1_000}, overFiles(files, file), overFiles(1, 1))
	if err != nil {
		return nil, err
	}
	return []row{atMost("scale/state", all[0].over(all[1]), "ratio", 1.25,
		"a superstep that adds to a Sum beside %d MiB (%.3g µs) to one beside a byte (%.3g µs), with a memory store",
		files, all[0].median()*1e-3, all[1].median()*1e-3)}, nil
}

// overFiles runs a chain beside so many values of so many bytes, and tells how long n supersteps
// took: those between a first node, which collects, and a last one.
func overFiles(files, bytes int) probe {
	return func(n int) (took time.Duration, err error) {
		var began time.Time
		node := 0
		g := chain(n+2, func(_ context.Context, c *Chest) error {
			switch node++; node {
			case 1:
				runtime.GC()
				return nil
			case 2:
				began = time.Now()
			case n + 2:
				took = time.Since(began)
				return nil
			}
			c.Count.Add(1)
			return nil
		})
		d := dispatch(g, checkpoint.Store(new(memory.Store)), dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 256 << 20}})
		r, err := d.Start(context.Background(), "large", func(c *Chest) {
			for i := range files {
				c.Files.Put(strconv.Itoa(i), strings.Repeat("x", bytes))
			}
		})
		if err == nil && r.State.Count.Get() != n {
			err = fmt.Errorf("%d supersteps have counted to %d", n, r.State.Count.Get())
		}
		return took, err
	}
}
