package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// inMemory measures supersteps of one node with a memory store: encoding, checksum, digest
// and copy, and no disk. What a further superstep costs is a difference of two chains.
func inMemory(s session) ([]row, error) {
	small, err := s.contest(
		stored(chain(1_000, step), nil), stored(chain(100, step), nil), stored(chain(1, step), nil),
		stored(chain(1_000, step), fill), stored(chain(1, step), fill))
	if err != nil {
		return nil, err
	}
	large, err := s.contest(stored(chain(1_000, keep), nil), stored(chain(1, keep), nil))
	if err != nil {
		return nil, err
	}
	long, short := small[0].per(small[2], 999), small[1].per(small[2], 99)
	filled := small[3].per(small[4], 999)
	return []row{
		atMost("memory/superstep", long.times(1e-3), "µs", 1.2, "a further superstep that adds to a Sum"),
		atMost("memory/superstep-1KB", large[0].per(large[1], 999).times(1e-3), "µs", 4,
			"a further superstep that sets a struct that is 1 KB of JSON"),
		atMost("memory/flat-in-graph", long.over(short), "ratio", 1.25,
			"a further superstep of 1 000 (%.0f ns) to one of 100 (%.0f ns)", long.median(), short.median()),
		atMost("memory/flat-in-state", filled.over(long), "ratio", 1.25,
			"a further superstep over a state of 64 KB (%.0f ns) to one over an empty state", filled.median()),
	}, nil
}

// stored runs g, which is a chain, with a memory store, which forgets each run when it has ended.
func stored[S any, C counting[S]](g *dag.Graph[S], input func(*S)) contender {
	store := new(memory.Store)
	d := dispatch(g, checkpoint.Store(store), dispatcher.Options{})
	made, nodes := 0, len(g.Plan().Nodes)
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var last *dispatcher.Result[S]
		for range times {
			made++
			run := "run-" + strconv.Itoa(made)
			r, err := d.Start(ctx, run, input)
			if err != nil {
				return err
			}
			last = r
			if err := store.Delete(ctx, run); err != nil {
				return err
			}
		}
		return countsTo[S, C](last, nodes)
	}
}

// fill gives the run 64 KB that its nodes don't touch.
func fill(w *Work) {
	note := strings.Repeat("x", 61)
	for range 1024 {
		w.Notes.Append(note)
	}
}
