package main

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// nodeTarget is how long a further node may take, in microseconds.
const nodeTarget = 0.25

// chains measures linear chains without a store against goroutines that hand over to each
// other by a channel. What a further node costs is the difference to a chain of one node,
// so that the beginning and the end of a run don't count; chain-10/run is a whole run.
func chains(s session) ([]row, error) {
	var rows []row
	for _, n := range []int{10, 100, 1_000, 10_000} {
		if !s.wants(fmt.Sprintf("chain-%d/", n)) {
			continue
		}
		all, err := s.contest(starts(n), starts(1), handOvers(n), handOvers(1))
		if err != nil {
			return rows, err
		}
		ours, theirs := all[0].per(all[1], n-1), all[2].per(all[3], n-1)
		s.charts.chain.point("pawl", float64(n), ours.median())
		s.charts.chain.point("a goroutine and a channel", float64(n), theirs.median())
		name := fmt.Sprintf("chain-%d", n)
		rows = append(rows,
			atMost(name+"/node-to-handover", ours.over(theirs), "ratio", 0.7,
				"a further node %.0f ns, a goroutine and channel hand-over %.0f ns", ours.median(), theirs.median()),
			atMost(name+"/node", ours.times(1e-3), "µs", nodeTarget, "a further node, no store"))
		if n == 10 {
			rows = append(rows, atMost(name+"/run", all[0].times(1e-3), "µs", 3.5,
				"a whole run, no store; %.3g µs with hand-overs", all[2].median()*1e-3))
		}
	}
	if !s.wants("chain/flat") {
		return rows, nil
	}
	all, err := s.contest(starts(10_000), starts(100), starts(1))
	if err != nil {
		return rows, err
	}
	long, short := all[0].per(all[2], 9_999), all[1].per(all[2], 99)
	return append(rows, atMost("chain/flat", long.over(short), "ratio", 1.25,
		"a further node of 10 000 (%.0f ns) to one of 100 (%.0f ns)", long.median(), short.median())), nil
}

// starts runs a chain of n nodes.
func starts(n int) contender { return started(chain(n, step), n) }

// started runs a graph, whose runs count to so much, without a store, under a context that can be
// cancelled.
func started(g *dag.Graph[Work], count int) contender {
	d := dispatch(g, nil, dispatcher.Options{})
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var last *dispatcher.Result[Work]
		for range times {
			r, err := d.Start(ctx, "run", nil)
			if err != nil {
				return err
			}
			last = r
		}
		return countsTo(last, count)
	}
}

// countsTo checks what a run has counted whose nodes are steps, or keep. Who measures checks the
// last run of a window.
func countsTo[S any, C counting[S]](r *dispatcher.Result[S], want int) error {
	if n := C(r.State).count(); n != want {
		return fmt.Errorf("a run should count to %d, not to %d", want, n)
	}
	return nil
}

// handOvers runs n bodies one after the other, each in a goroutine of its own that hands
// over to the next one by a channel.
func handOvers(n int) contender {
	return each(func(ctx context.Context) error {
		var p plain
		done := make(chan error)
		for range n {
			go func() { done <- plainStep(ctx, &p) }()
			if err := <-done; err != nil {
				return err
			}
		}
		return nil
	})
}
