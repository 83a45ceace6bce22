package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Volume collects a page in each superstep. It is the state whose natural JSON a plainVolume
// reads.
type Volume struct {
	Pages state.List[Page]
	Count state.Sum[int]
}

func (v *Volume) count() int { return v.Count.Get() }

type plainVolume struct {
	Pages []Page
	Count int
}

// opening measures what it takes to know where a run stands which has ended 10 000 supersteps with
// 10 MB, by a dispatcher that has never seen it, on a store of Badger that has just been opened:
// without a look at the large cell, against a scan of the same keys that touches none of the
// values; and with a look at every element, against json.Unmarshal of the state's JSON.
func opening(s session) ([]row, error) {
	supersteps := s.scale(10_000, 500)
	last := fmt.Sprintf("node-%d", supersteps+1)
	g := chain(supersteps+1, func(_ context.Context, v *Volume) error {
		n := v.Count.Get() + 1
		v.Count.Add(1)
		v.Pages.Append(page(n, noise(uint64(n), pageBytes)))
		return nil
	})
	d := func(store checkpoint.Store) *dispatcher.Dispatcher[Volume] {
		return dispatch(g, store, dispatcher.Options{InterruptBefore: []string{last}})
	}
	b, err := openBed(s, false)
	if err != nil {
		return nil, err
	}
	r, err := d(b.store).Start(context.Background(), "volume", nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		b.discard()
		return nil, fmt.Errorf("the run should be interrupted before its last node: %w", err)
	}
	raw, err := json.Marshal(r.State)
	if err != nil {
		return nil, err
	}
	c, err := copyStore(s, b)
	defer c.discard()
	if err != nil {
		return nil, err
	}
	untouching := func(ctx context.Context, store *badgerstore.Store) error {
		r, err := d(store).State(ctx, "volume")
		if err != nil {
			return err
		}
		return errors.Join(endedSupersteps(r, supersteps), countsTo(r, supersteps))
	}
	decoded := func(ctx context.Context, store *badgerstore.Store) error {
		r, err := d(store).State(ctx, "volume")
		if err != nil {
			return err
		}
		bytes := 0
		for _, p := range r.State.Pages.All() {
			bytes += len(p.Text)
		}
		if bytes != supersteps*pageBytes {
			return fmt.Errorf("the state has %d bytes of text", bytes)
		}
		return nil
	}
	unmarshal := func(int) (func() error, func(), error) {
		return func() error { return json.Unmarshal(raw, new(plainVolume)) }, nil, nil
	}
	all, err := s.turns([]int{1, 1, 1, 1, 1}, c.opened(untouching), c.scanned(untouched), c.opened(decoded), unmarshal, c.scanned(checking))
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("%d supersteps of %.1f MB", supersteps, float64(len(raw))/1e6)
	return []row{
		atMost("open/untouched-to-scan", all[0].over(all[1]), "ratio", 4,
			"%s in %.3g ms; a scan of the same keys that touches no value %.3g ms", about, all[0].median()*1e-6, all[1].median()*1e-6),
		atMost("open/decoded-to-json", all[2].over(all[3]), "ratio", 1.3,
			"%s and every element in %.3g ms; json.Unmarshal of the state %.3g ms", about, all[2].median()*1e-6, all[3].median()*1e-6),
		shown("open/checked-to-scan", all[4].over(all[1]), "ratio", "the least of open/untouched: "+
			"each value checked by CRC-32C and copied, and nothing else, %.3g ms", all[4].median()*1e-6),
	}, nil
}
