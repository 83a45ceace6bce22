package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// reading measures what it takes to read a run of 32 appends of 1 KB, by the median of single
// reads, while another run commits without a pause, against the same while nobody writes.
func reading(s session) ([]row, error) {
	b, err := openBed(s, true)
	if err != nil {
		return nil, err
	}
	defer b.discard()
	ctx := context.Background()
	w := &writer{store: b.store, run: "read"}
	const appends = 32
	for range appends {
		if err := w.append(ctx); err != nil {
			return nil, err
		}
	}
	busy := &writer{store: b.store, run: "written"}
	idle, beside, err := besideIdle(s, func(alone bool) (median float64, err error) {
		if alone {
			return medianRead(ctx, b.store, s, appends)
		}
		err = busy.during(ctx, func() (err error) {
			median, err = medianRead(ctx, b.store, s, appends)
			return err
		})
		return median, err
	})
	if err != nil {
		return nil, err
	}
	return []row{atMost("read-beside-commits/to-idle", beside.over(idle), "ratio", 5,
		"the median of reading 32 appends: %.3g µs beside synced commits, %.3g µs alone", beside.median()*1e-3, idle.median()*1e-3)}, nil
}

// medianRead reads the run, which has so many entries, again and again for a window.
func medianRead(ctx context.Context, store checkpoint.Store, s session, entries int) (float64, error) {
	var took series
	for end := time.Now().Add(10 * s.window); time.Now().Before(end) || len(took) == 0; {
		began := time.Now()
		if err := readEntries(ctx, store, "read", entries); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began)))
	}
	return took.median(), nil
}

// A writer appends to one run.
type writer struct {
	store checkpoint.Store
	run   string
	lease checkpoint.Lease
	head  checkpoint.Head
}

func (w *writer) append(ctx context.Context) (err error) {
	e := checkpoint.Entry{Kind: checkpoint.Done}
	if w.head.Seq == 0 {
		if w.lease, err = w.store.Acquire(ctx, w.run, "bench"); err != nil {
			return err
		}
		e.Kind = checkpoint.Opened
		e.Data, err = json.Marshal(checkpoint.Opening{Graph: "graph", Digest: "digest"})
	} else {
		e.Delta, err = json.Marshal(text)
	}
	if err == nil {
		w.head, err = w.store.Append(ctx, w.lease, w.head, []checkpoint.Entry{e})
	}
	return err
}

// during appends while do is at work.
func (w *writer) during(ctx context.Context, do func() error) error {
	over := make(chan struct{})
	var all sync.WaitGroup
	var failed error
	began := w.head.Seq
	all.Go(func() {
		for failed == nil {
			select {
			case <-over:
				return
			default:
				failed = w.append(ctx)
			}
		}
	})
	err := do()
	close(over)
	all.Wait()
	err = errors.Join(err, failed)
	if err == nil && w.head.Seq == began {
		err = fmt.Errorf("nothing was written beside the reads")
	}
	return err
}
