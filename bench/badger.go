package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// onBadger measures supersteps of one node whose appends go to Badger and are not synced, against
// transactions of the same bytes in a bare Badger. They are those of whole runs of 1 000, of which
// the beginning and the end are less than a hundredth. Every window has a directory of its own.
func onBadger(s session) ([]row, error) {
	small, err := againstBare(s, chain(unsyncedLength, step))
	if err != nil {
		return nil, err
	}
	large, err := againstBare(s, chain(unsyncedLength, write))
	if err != nil {
		return nil, err
	}
	long, err := againstBare(s, chain(unsyncedLength, writeLong))
	if err != nil {
		return nil, err
	}
	ours, theirs := small.ours.median()*1e-3, small.theirs.median()*1e-3
	return []row{
		atMost("badger/superstep", small.ours.times(1e-3), "µs", 10, "a superstep of %d bytes, not synced", small.bytes),
		atMost("badger/superstep-to-bare", small.ours.over(small.theirs), "ratio", 1.4,
			"a superstep of %d bytes %.3g µs, a bare transaction of the same %.3g µs", small.bytes, ours, theirs),
		atMost("badger/superstep-1KB-to-bare", large.ours.over(large.theirs), "ratio", 1.4,
			"a superstep of %d bytes %.3g µs, a bare transaction of the same %.3g µs",
			large.bytes, large.ours.median()*1e-3, large.theirs.median()*1e-3),
		shown("badger/superstep-1500B-to-bare", long.ours.over(long.theirs), "ratio",
			"a superstep of %d bytes, which a store tries to compress and keeps as it is, %.3g µs, a bare transaction of the same %.3g µs",
			long.bytes, long.ours.median()*1e-3, long.theirs.median()*1e-3),
	}, nil
}

// unsyncedLength is of the chains that are not synced.
const unsyncedLength = 1_000

type unsynced struct {
	ours, theirs series // a superstep, a transaction
	bytes        int
}

func againstBare(s session, g *dag.Graph[Work]) (u unsynced, err error) {
	if u.bytes, err = sizeOf(s, g); err != nil {
		return u, err
	}
	all, err := s.alike(s.long, [2]stage{
		fresh(s, false, func(b *bed) contender { return b.runs(g, 1) }),
		freshBare(s, u.bytes, false, func(b *bare, n int) error { return b.groups(1)(n * unsyncedLength) }),
	})
	if err != nil {
		return u, err
	}
	u.ours, u.theirs = all[0].times(1.0/unsyncedLength), all[1].times(1.0/unsyncedLength)
	return u, nil
}

// waits is what each node of lagging waits for, about as long as for a sync.
const waits = 200 * time.Microsecond

// lagging measures a run that may be ahead of the disk against one that waits for every sync, with
// nodes that wait for something else as long as for a sync: a run that waits for the disk alone has
// little to do meanwhile. Every window has a directory of its own and a quarter of a second: in a
// whole one such a run would not fill a table either.
func lagging(s session) ([]row, error) {
	g := chain(s.length, func(ctx context.Context, w *Work) error {
		time.Sleep(waits)
		return write(ctx, w)
	})
	lags := []int{0, 1, 4}
	var stages []stage
	for _, lag := range lags {
		stages = append(stages, fresh(s, true, func(b *bed) contender {
			return b.runsWith(g, 1, dispatcher.Options{Lag: lag})
		}))
	}
	all, err := s.stages(s.long/4, stages...)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, lag := range lags[1:] {
		rows = append(rows, atLeast(fmt.Sprintf("lag-%d/to-sync", lag), all[0].over(all[i+1]), "ratio", 1.2,
			"supersteps a second of one run, at most %d ahead of the disk, to one that waits; each node sleeps %v, "+
				"since a run that waits for the disk alone gains little", lag, waits))
	}
	return rows, nil
}
