package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
)

// durable measures how many supersteps of 1 KB a second become durable when so many runs are at
// work, against a bare loop that fills one synced transaction with one entry of the same bytes for
// each of them: the most that grouping can give where Badger syncs. Every window has a directory of
// its own, and half a second to one and a half, in which ten runs and more write tables; what a
// thousand do once takes longer, and they do it once, twice or three times. One run, and
// transactions of their own, write less than a table in it.
func durable(s session) ([]row, error) {
	var rows []row
	for _, t := range []struct {
		runs   int
		target float64
	}{{1, 0.95}, {10, 0.9}, {100, 0.85}, {1_000, 0.8}} {
		if !s.wants(fmt.Sprintf("durable-%d/", t.runs)) {
			continue
		}
		some, err := durably(s, t.runs, t.target)
		if err != nil {
			return rows, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func durably(s session, runs int, target float64) ([]row, error) {
	g := chain(s.length, write)
	size, err := sizeOf(s, g)
	if err != nil {
		return nil, err
	}
	supersteps := runs * s.length
	all, err := besideBare(s, runs, size, fresh(s, true, func(b *bed) contender { return b.runs(g, runs) }))
	if err != nil {
		return nil, err
	}
	ours, theirs := all[0].times(1/float64(supersteps)), all[1].times(1/float64(supersteps))
	s.charts.durable.point("pawl", float64(runs), 1e9/ours.median())
	s.charts.durable.point("bare Badger, grouped", float64(runs), 1e9/theirs.median())
	name := fmt.Sprintf("durable-%d", runs)
	rows := []row{atLeast(name+"/to-bare-grouped", theirs.over(ours), "ratio", target,
		"%.0f durable supersteps of %d bytes a second, %.0f in bare transactions of %d",
		1e9/ours.median(), size, 1e9/theirs.median(), runs)}
	if runs == 100 {
		alone := all[2].times(1 / float64(runs))
		rows = append(rows, atLeast(name+"/to-bare-alone", alone.over(ours), "ratio", 10,
			"%.0f a second in bare transactions of their own", 1e9/alone.median()))
	}
	return rows, nil
}

// besideBare measures one that writes as many supersteps as so many runs, each time, beside bare
// Badger: with one entry for each run in a transaction, and for a hundred runs also with
// transactions of their own, one superstep of each a time.
func besideBare(s session, runs, size int, one stage) ([]series, error) {
	two := [2]stage{one, freshBare(s, size, true, func(b *bare, n int) error { return b.groups(runs)(n * s.length) })}
	if runs != 100 {
		return s.alike(s.long, two)
	}
	return s.alike(s.long, two, freshBare(s, size, true, func(b *bare, n int) error { return b.alone(runs)(n) }))
}

// sizeOf returns how many bytes most supersteps of g write, keys and values.
func sizeOf(s session, g *dag.Graph[Work]) (int, error) {
	var sizes []int
	b, err := openBedWith(s, true, badgerstore.Options{Observe: func(g checkpoint.Group) {
		if g.Appends == 1 {
			sizes = append(sizes, g.Bytes)
		}
	}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	err = b.runs(g, 1)(1)
	if err := errors.Join(err, b.close()); err != nil { // the observer has ended
		return 0, err
	}
	if len(sizes) == 0 {
		return 0, errors.New("the store told of no group")
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2], nil
}

// fresh does it n times with a new store.
func fresh(s session, synced bool, work func(b *bed) contender) stage {
	return func(n int) (func() error, func(), error) {
		b, err := openBed(s, synced)
		if err != nil {
			return nil, nil, err
		}
		do := work(b)
		return func() error { return do(n) }, b.discard, nil
	}
}

// freshBare does it n times with a new database.
func freshBare(s session, size int, synced bool, do func(b *bare, n int) error) stage {
	return func(n int) (func() error, func(), error) {
		b, err := openBare(s, size, synced)
		if err != nil {
			return nil, nil, err
		}
		return func() error { return do(b, n) }, b.discard, nil
	}
}
