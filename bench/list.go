package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// note is one of the elements of 1 KB that Lists are made of.
var note = noise(3, 1000)

// lists measures what it costs to append 1 KB to a List of 10 MB, against one of 10 KB: for the
// state alone, where each append is the first one to a List that nobody else has touched, and for
// runs that rested before the first append and are resumed.
func lists(s session) ([]row, error) {
	long, short := s.scale(10_000, 1_000), 10
	alone, err := s.contest(firstAppends(long), firstAppends(short))
	if err != nil {
		return nil, err
	}
	const appends = 100
	var bytes [2]int
	runs, err := s.turns([]int{1, 1}, resumedAppends(long, appends, &bytes[0]), resumedAppends(short, appends, &bytes[1]))
	if err != nil {
		return nil, err
	}
	of := fmt.Sprintf("a List of %d KB to one of %d KB", long, short)
	return []row{
		atMost("list/first-append", alone[0].over(alone[1]), "ratio", 1.1,
			"a draft, the first append of 1 KB, its delta, and that applied: %s; %.3g µs to %.3g µs",
			of, alone[0].median()*1e-3, alone[1].median()*1e-3),
		atMost("list/run", runs[0].over(runs[1]), "ratio", 1.1,
			"a run with a memory store is resumed before the first of %d appends and completed: %s; %.3g µs to %.3g µs",
			appends, of, runs[0].median()*1e-3, runs[1].median()*1e-3),
		atMost("list/bytes", series{float64(bytes[0]) / float64(bytes[1])}, "ratio", 1.1,
			"bytes that the store is given by that run, snapshots included: %s; %d to %d", of, bytes[0], bytes[1]),
	}, nil
}

// firstAppends appends again and again to a List of so many elements, and drops the result.
func firstAppends(elements int) contender {
	schema, err := state.Of[Work]()
	if err != nil {
		panic(err) // the type is ours
	}
	full := schema.New()
	fillNotes(elements)(full.Value().(*Work))
	d, err := full.Delta()
	if err == nil {
		err = full.Apply(d)
	}
	return func(times int) error {
		for range times {
			view := full.Draft()
			draft := view.Draft()
			draft.Value().(*Work).Notes.Append(note)
			d, err := draft.Delta()
			if err == nil {
				err = view.Apply(d)
			}
			if err != nil {
				return err
			}
		}
		return err
	}
}

func fillNotes(elements int) func(*Work) {
	return func(w *Work) {
		for range elements {
			w.Notes.Append(note)
		}
	}
}

// resumedAppends goes on with a run whose state has a List of so many elements, and whose nodes each
// append another one. It tells how many bytes the last run gave to the store meanwhile.
func resumedAppends(elements, appends int, bytes *int) stage {
	g := chain(appends, func(_ context.Context, w *Work) error {
		w.Notes.Append(note)
		return nil
	})
	ctx := context.Background()
	return func(times int) (func() error, func(), error) {
		store := &counter{Store: new(memory.Store)}
		d := dispatch(g, checkpoint.Store(store), dispatcher.Options{InterruptBefore: []string{"node-1"}})
		for i := range times {
			if _, err := d.Start(ctx, strconv.Itoa(i), fillNotes(elements)); !errors.Is(err, dispatcher.ErrInterrupted) {
				return nil, nil, fmt.Errorf("a run should be interrupted before its first node: %w", err)
			}
		}
		store.bytes = 0
		return func() error {
			for i := range times {
				if _, err := d.Resume(ctx, strconv.Itoa(i)); err != nil {
					return err
				}
			}
			*bytes = store.bytes / times
			return nil
		}, nil, nil
	}
}

// A counter counts what a store is given by one run at a time.
type counter struct {
	*memory.Store
	bytes int
}

func (c *counter) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	for i := range entries {
		c.bytes += len(entries[i].Delta) + len(entries[i].Outer) + len(entries[i].Data)
	}
	return c.Store.Append(ctx, l, after, entries)
}

func (c *counter) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	c.bytes += len(s.Data)
	return c.Store.PutSnapshot(ctx, l, s)
}
