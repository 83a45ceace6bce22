package main

import (
	"context"
	"fmt"
	"time"

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
	defer b.discard()
	if u.bytes, err = b.measure(long); err != nil {
		return u, err
	}
	bare, err := openBare(s, u.bytes, false)
	if err != nil {
		return u, err
	}
	defer bare.discard()
	all, err := s.contest(b.runs(long, 1), b.runs(short, 1), bare.groups(1))
	if err != nil {
		return u, err
	}
	u.ours, u.theirs = all[0].per(all[1], 999), all[2]
	return u, nil
}

// lagging measures a run that may be ahead of the disk against one that waits for every sync, with
// nodes that wait for something else as long as for a sync.
func lagging(s session) ([]row, error) {
	b, err := openBed(s, true)
	if err != nil {
		return nil, err
	}
	defer b.discard()
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
