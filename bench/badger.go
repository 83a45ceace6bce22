package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// onBadger measures supersteps of one node whose appends go to Badger and are not synced,
// against transactions of the same bytes in a bare Badger.
func onBadger(s session) ([]row, error) {
	small, err := againstBare(s, chain(1_000, step), chain(1, step))
	if err != nil {
		return nil, err
	}
	large, err := againstBare(s, chain(1_000, write), chain(1, write))
	if err != nil {
		return nil, err
	}
	ours, theirs := small.ours.median()*1e-3, small.theirs.median()*1e-3
	return []row{
		atMost("badger/superstep", small.ours.times(1e-3), "µs", 10, "a further superstep of %d bytes, not synced", small.bytes),
		atMost("badger/superstep-to-bare", small.ours.over(small.theirs), "ratio", 1.4,
			"a superstep of %d bytes %.3g µs, a bare transaction of the same %.3g µs", small.bytes, ours, theirs),
		atMost("badger/superstep-1KB-to-bare", large.ours.over(large.theirs), "ratio", 1.4,
			"a superstep of %d bytes %.3g µs, a bare transaction of the same %.3g µs",
			large.bytes, large.ours.median()*1e-3, large.theirs.median()*1e-3),
	}, nil
}

type unsynced struct {
	ours, theirs series // a superstep, a transaction
	bytes        int
}

func againstBare(s session, long, short *dag.Graph[Work]) (u unsynced, err error) {
	b, err := openBed(s, false)
	if err != nil {
		return u, err
	}
	defer b.close()
	if u.bytes, err = b.measure(long); err != nil {
		return u, err
	}
	bare, err := openBare(s, u.bytes, false)
	if err != nil {
		return u, err
	}
	defer bare.db.Close()
	all, err := s.contest(b.runs(long, 1), b.runs(short, 1), bare.groups(1))
	if err != nil {
		return u, err
	}
	u.ours, u.theirs = all[0].per(all[1], 999), all[2]
	return u, nil
}

// durable measures how many supersteps of 1 KB a second become durable when so many runs
// are at work, against a bare loop that fills one synced transaction with one entry of the
// same bytes for each of them.
func durable(s session) ([]row, error) {
	var rows []row
	for _, t := range []struct {
		runs   int
		target float64
	}{{1, 0.95}, {10, 0.9}, {100, 0.85}} {
		some, err := durably(s, t.runs, t.target)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func durably(s session, runs int, target float64) ([]row, error) {
	b, err := openBed(s, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	g := chain(s.length, write)
	size, err := b.measure(g)
	if err != nil {
		return nil, err
	}
	bare, err := openBare(s, size, true)
	if err != nil {
		return nil, err
	}
	defer bare.db.Close()
	grouped := func(times int) error { return bare.groups(runs)(times * s.length) }
	contenders := []contender{b.runs(g, runs), grouped}
	if runs >= 100 {
		contenders = append(contenders, bare.alone(runs))
	}
	all, err := s.contest(contenders...)
	if err != nil {
		return nil, err
	}
	supersteps := float64(runs * s.length)
	ours, theirs := all[0].times(1/supersteps), all[1].times(1/supersteps)
	name := fmt.Sprintf("durable-%d", runs)
	rows := []row{atLeast(name+"/to-bare-grouped", theirs.over(ours), "ratio", target,
		"%.0f durable supersteps of %d bytes a second, %.0f in bare transactions of %d",
		1e9/ours.median(), size, 1e9/theirs.median(), runs)}
	if runs >= 100 {
		alone := all[2].times(1 / float64(runs))
		rows = append(rows, atLeast(name+"/to-bare-alone", alone.over(ours), "ratio", 10,
			"%.0f a second in bare transactions of their own", 1e9/alone.median()))
	}
	return rows, nil
}

// lagging measures a run that may be ahead of the disk against one that waits for every sync, with
// nodes that wait for something else as long as for a sync.
func lagging(s session) ([]row, error) {
	b, err := openBed(s, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	g := chain(s.length, func(ctx context.Context, w *Work) error {
		time.Sleep(200 * time.Microsecond)
		return write(ctx, w)
	})
	lags := []int{0, 1, 4}
	var contenders []contender
	for _, lag := range lags {
		contenders = append(contenders, b.runsWith(g, 1, dispatcher.Options{Lag: lag}))
	}
	all, err := s.contest(contenders...)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, lag := range lags[1:] {
		rows = append(rows, atLeast(fmt.Sprintf("lag-%d/to-sync", lag), all[0].over(all[i+1]), "ratio", 1.2,
			"supersteps a second of one run, at most %d ahead of the disk, to one that waits", lag))
	}
	return rows, nil
}

// A bed is a store in a directory of its own, and what its groups had in them.
type bed struct {
	store *badgerstore.Store
	made  int // runs

	mu    sync.Mutex
	bytes []int // of groups of one append; nil unless somebody measures
}

func openBed(s session, synced bool) (*bed, error) {
	dir, err := os.MkdirTemp(s.dir, "store-")
	if err != nil {
		return nil, err
	}
	open := badgerstore.OpenUnsynced
	if synced {
		open = badgerstore.Open
	}
	b := new(bed)
	b.store, err = open(context.Background(), dir, badgerstore.Options{Observe: b.observe})
	return b, err
}

func (b *bed) close() { _ = b.store.Close() } // what is in it is thrown away

func (b *bed) observe(g checkpoint.Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes != nil && g.Appends == 1 {
		b.bytes = append(b.bytes, g.Bytes)
	}
}

// measure returns how many bytes most supersteps of g write, keys and values.
func (b *bed) measure(g *dag.Graph[Work]) (int, error) {
	b.mu.Lock()
	b.bytes = make([]int, 0, 1_000)
	b.mu.Unlock()
	err := b.runs(g, 1)(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	sizes := b.bytes
	b.bytes = nil
	if err != nil {
		return 0, err
	}
	if len(sizes) == 0 {
		return 0, fmt.Errorf("the store told of no group")
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2], nil
}

// runs begins so many runs of g at once, and waits for all.
func (b *bed) runs(g *dag.Graph[Work], at int) contender {
	return b.runsWith(g, at, dispatcher.Options{})
}

func (b *bed) runsWith(g *dag.Graph[Work], at int, o dispatcher.Options) contender {
	d := dispatch(g, checkpoint.Store(b.store), o)
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		errs := make([]error, at)
		for range times {
			var all sync.WaitGroup
			for i := range errs {
				b.made++
				run := "run-" + strconv.Itoa(b.made)
				all.Go(func() { _, errs[i] = d.Start(ctx, run, nil) })
			}
			all.Wait()
			if err := firstError(errs); err != nil {
				return err
			}
		}
		return nil
	}
}
