package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// note is one of the elements of 1 KB that Lists are made of.
var note = noise(3, 1000)

// lists measures what it costs to append 1 KB to a List of 10 MB, against one of 10 KB: for the
// state alone, where each append is the first one to a List that nobody else has touched, and for
// supersteps of a run that was given the List.
func lists(s session) ([]row, error) {
	long, short := s.scale(10_000, 1_000), 10
	alone, err := s.contest(firstAppends(long), firstAppends(short))
	if err != nil {
		return nil, err
	}
	of := fmt.Sprintf("a List of %d KB to one of %d KB", long, short)
	rows := []row{atMost("list/first-append", alone[0].over(alone[1]), "ratio", 1.1,
		"a draft, the first append of 1 KB, its delta, and that applied: %s; %.3g µs to %.3g µs",
		of, alone[0].median()*1e-3, alone[1].median()*1e-3)}
	for _, appends := range []int{10, 100} {
		var bytes [3]int
		times := s.scale(8, 1) // one takes less than the processor needs to come to itself
		took, err := s.probes([]int{times, times, times, times}, appendsOfRun(0, long, note, appends, &bytes[0]),
			appendsOfRun(0, short, note, appends, &bytes[1]), appendsOfRun(0, long, note[:10], appends, &bytes[2]),
			appendsOfRun(long, short, note, appends, new(int)))
		if err != nil {
			return rows, err
		}
		rows = append(rows, atMost(fmt.Sprintf("list/supersteps-%d", appends), took[0].over(took[1]), "ratio", 1.1,
			"the first %d supersteps of a run that append 1 KB each, with a memory store: %s; %.3g µs to %.3g µs",
			appends, of, took[0].median()*1e-3, took[1].median()*1e-3),
			shown(fmt.Sprintf("list/elements-%d", appends), took[2].over(took[1]), "ratio",
				"the same, but for the bytes: a List of %d times 10 bytes to one of %d times 1 KB; %.3g µs", long, short, took[2].median()*1e-3),
			shown(fmt.Sprintf("list/crowded-%d", appends), took[0].over(took[3]), "ratio",
				"as list/supersteps-%d, but that another run has made a List of %d KB just before what the short one is measured by, "+
					"so that heap and caches are as behind the long one: %.3g µs", appends, long, took[3].median()*1e-3))
		if appends == 100 {
			rows = append(rows, atMost("list/bytes", series{float64(bytes[0]) / float64(bytes[1])}, "ratio", 1.1,
				"bytes that the store is given by those, snapshots included: %s; %d to %d", of, bytes[0], bytes[1]))
		}
	}
	return rows, nil
}

// firstAppends appends again and again to a List of so many elements, and drops the result.
func firstAppends(elements int) contender {
	schema, err := state.Of[Work]()
	if err != nil {
		panic(err) // the type is ours
	}
	full := schema.New()
	fillNotes(elements, note)(full.Value().(*Work))
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

func fillNotes(elements int, with string) func(*Work) {
	return func(w *Work) {
		for range elements {
			w.Notes.Append(with)
		}
	}
}

// appendsOfRun times the first appends of a run that begins with a List of so many times the same
// text, from before the first one until all are stored, and tells how many bytes they give to the
// store. Before these, if crowd is not zero, another run begins with a List of 1 KB so many times.
func appendsOfRun(crowd, elements int, with string, appends int, bytes *int) probe {
	var store *counter
	var others *memory.Store
	var began time.Time
	var took time.Duration
	node := 0
	g := chain(appends+2, func(_ context.Context, w *Work) error {
		switch node++; node {
		case 1:
			var err error
			if crowd > 0 {
				others, err = crowded(crowd)
			}
			runtime.GC() // nobody pays for what the beginning left behind
			return err   // nor for what collecting does to caches: the superstep behind it takes 50 µs
		case 2:
			store.bytes.Store(0)
			began = time.Now()
		case appends + 2:
			took, *bytes = time.Since(began), int(store.bytes.Load())
			runtime.KeepAlive(others)
			return nil
		}
		w.Notes.Append(note)
		return nil
	})
	return func(times int) (all time.Duration, err error) {
		for range times {
			node, store = 0, &counter{Store: new(memory.Store)}
			_, err = dispatch(g, checkpoint.Store(store), dispatcher.Options{}).Start(context.Background(), "list", fillNotes(elements, with))
			if all += took; err != nil {
				break
			}
		}
		return all, err
	}
}

// crowded is a store in which another run has begun with a List of so many notes.
func crowded(notes int) (*memory.Store, error) {
	store := new(memory.Store)
	g := chain(1, func(context.Context, *Work) error { return nil })
	_, err := dispatch(g, store, dispatcher.Options{}).Start(context.Background(), "other", fillNotes(notes, note))
	return store, err
}

// A counter counts what a store is given by one run, whose node looks at it meanwhile: snapshots
// are written in the background.
type counter struct {
	*memory.Store
	bytes atomic.Int64
}

func (c *counter) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	for i := range entries {
		c.bytes.Add(int64(len(entries[i].Delta) + len(entries[i].Outer) + len(entries[i].Data)))
	}
	return c.Store.Append(ctx, l, after, entries)
}

func (c *counter) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	c.bytes.Add(int64(len(s.Data)))
	return c.Store.PutSnapshot(ctx, l, s)
}
