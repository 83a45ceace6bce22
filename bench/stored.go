package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Shelf collects 1 KB in each superstep.
type Shelf struct {
	Texts state.List[string]
}

// collect appends a text that is like no other.
func collect(_ context.Context, s *Shelf) error {
	s.Texts.Append(noise(uint64(100+s.Texts.Len()), 1024))
	return nil
}

// storing measures what a store of Badger keeps of a run of 200 supersteps that collects 1 KB in
// each, against that and the state which it comes to, and reading the run once from a store that
// has just been opened, against a bare Badger that copies the values of the same keys.
func storing(s session) ([]row, error) {
	var rows []row
	lengths := []int{10, 50, 200, 1_000}
	if s.quick {
		lengths = []int{10, 200}
	}
	for _, n := range lengths {
		size, err := storedOf(s, n)
		if err != nil {
			return rows, err
		}
		payload, live := float64(n)*1024, float64(n)*1024
		s.charts.stored.point("pawl", float64(n), size/1e6)
		s.charts.stored.point("the state that it comes to", float64(n), live/1e6)
		s.charts.stored.point("a copy of the state for each superstep (computed)", float64(n), payload*float64(n+1)/2/1e6)
		if n == 200 {
			rows = append(rows, atMost("stored/to-payload-and-state", series{size / (payload + live)}, "ratio", 1.2,
				"%.0f KB in the files of a closed store for each run, of %d supersteps of 1 KB of text that compresses as little as text can",
				size/1000, n))
		}
	}
	return read200(s, rows)
}

// storedOf returns how many bytes of files each further run takes.
func storedOf(s session, supersteps int) (float64, error) {
	const further = 4
	g := chain(supersteps, collect)
	var sizes [2]int64
	for i, runs := range []int{1, 1 + further} {
		b, err := collected(s, g, runs)
		if err != nil {
			return 0, err
		}
		if err := b.close(); err != nil {
			return 0, err
		}
		if sizes[i], err = sizeOfFiles(b.dir); err != nil {
			return 0, err
		}
		b.discard()
	}
	return float64(sizes[1]-sizes[0]) / further, nil
}

// collected returns a store in which there are so many runs of g.
func collected(s session, g *dag.Graph[Shelf], runs int) (*bed, error) {
	b, err := openBed(s, false)
	if err != nil {
		return nil, err
	}
	d := dispatch(g, checkpoint.Store(b.store), dispatcher.Options{})
	for i := range runs {
		if _, err := d.Start(context.Background(), "run-"+strconv.Itoa(i), nil); err != nil {
			b.discard()
			return nil, err
		}
	}
	return b, nil
}

// read200 adds to rows those of reading.
func read200(s session, rows []row) ([]row, error) {
	const length = 200
	g := chain(length, collect)
	b, err := collected(s, g, 1)
	if err != nil {
		return rows, err
	}
	c, err := copyStore(s, b)
	defer c.discard()
	if err != nil {
		return rows, err
	}
	all, err := s.turns([]int{1, 1, 1, 1}, c.opened(readAll(length)), c.opened(stateOf(g, length)), c.scanned(copying), c.scanned(checkingEntries))
	if err != nil {
		return rows, err
	}
	return append(rows,
		atMost("stored/cold-read-to-bare", all[0].over(all[2]), "ratio", 3,
			"all entries, with checksums checked, and that each append follows the one before it, %.3g µs; a bare Badger copies the values of the same keys in %.3g µs",
			all[0].median()*1e-3, all[2].median()*1e-3),
		shown("stored/checked-to-bare", all[3].over(all[2]), "ratio",
			"the least of stored/cold-read: the bare Badger, CRC-32C of each value, and one walk through its JSON, of which nothing is kept, %.3g µs", all[3].median()*1e-3),
		shown("stored/cold-state-to-bare", all[1].over(all[2]), "ratio",
			"where the run stands and its state, by a dispatcher that has never seen it: %.3g µs", all[1].median()*1e-3)), nil
}

// readAll reads a run of so many supersteps, each of which is two entries, behind two of its
// beginning and before one of its end.
func readAll(supersteps int) func(context.Context, *badgerstore.Store) error {
	return func(ctx context.Context, store *badgerstore.Store) error {
		return readEntries(ctx, store, "run-0", 2*supersteps+3)
	}
}

// readEntries reads a run, and returns an error unless it has so many entries.
func readEntries(ctx context.Context, store checkpoint.Store, run string, want int) error {
	n := 0
	for _, err := range store.Read(ctx, run, 1, 0) {
		if err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%s has %d entries, not %d", run, n, want)
	}
	return nil
}

func stateOf(g *dag.Graph[Shelf], supersteps int) func(context.Context, *badgerstore.Store) error {
	return func(ctx context.Context, store *badgerstore.Store) error {
		r, err := dispatch(g, checkpoint.Store(store), dispatcher.Options{}).State(ctx, "run-0")
		if err != nil {
			return err
		}
		return endedSupersteps(r, supersteps)
	}
}

// endedSupersteps returns an error unless r has ended so many supersteps.
func endedSupersteps[S any](r *dispatcher.Result[S], supersteps int) error {
	if r.Superstep != supersteps {
		return fmt.Errorf("%s has ended %d supersteps, not %d", r.Run, r.Superstep, supersteps)
	}
	return nil
}
