package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// tails measures the slowest hundredth of appends of 1 KB by one run, while another run writes
// states of 8 MiB without a pause, against the same while nobody else writes. Every window has a
// directory of its own.
func tails(s session) ([]row, error) {
	large := noise(2, s.scale(8<<20, 64<<10))
	var states []int // of each window that has them
	idle, beside, err := besideIdle(s, func(alone bool) (float64, error) {
		p99, n, err := tail(s, alone, large)
		if !alone {
			states = append(states, n)
		}
		return p99, err
	})
	if err != nil {
		return nil, err
	}
	rows := []row{besideLarge(idle, beside, states, len(large))}
	idle, beside, err = besideIdle(s, func(alone bool) (float64, error) { return bareTail(s, alone) })
	if err != nil {
		return rows, err
	}
	return append(rows, shown("tail/bare-beside-large-to-idle", beside.over(idle), "ratio",
		"the same of a bare Badger to which nobody says when: transactions of 1 KB beside others of %d KiB without a pause begin at %.3g µs, and at %.3g µs alone",
		barePiece>>10, beside.median()*1e-3, idle.median()*1e-3)), nil
}

// besideLarge is the row of appends, which is not ok if there was a window beside which no state
// was begun.
func besideLarge(idle, beside series, states []int, bytes int) row {
	all, none := 0, 0
	for _, n := range states {
		if all += n; n == 0 {
			none++
		}
	}
	r := atMost("tail/append-beside-large-to-idle", beside.over(idle), "ratio", 3,
		"the slowest hundredth of synced appends of 1 KB begins at %.3g µs beside states of %d KiB, of which %d were begun meanwhile, and at %.3g µs alone",
		beside.median()*1e-3, bytes>>10, all, idle.median()*1e-3)
	if none > 0 {
		r.OK, r.Note = false, fmt.Sprintf("no large state was begun beside %d of %d windows; ", none, len(states))+r.Note
	}
	return r
}

// besideIdle measures, in turns, alone and while somebody else writes.
func besideIdle(s session, measure func(alone bool) (float64, error)) (idle, beside series, err error) {
	for round := range s.rounds {
		for k := range 2 {
			alone := (k+round)%2 == 0
			v, err := measure(alone)
			if err != nil {
				return nil, nil, err
			}
			if alone {
				idle = append(idle, v)
			} else {
				beside = append(beside, v)
			}
		}
	}
	return idle, beside, nil
}

// tail appends for a window and returns the 99th percentile, with how many large states another run
// began to write meanwhile. The window goes on until it is one: a slow disk may take all of it for
// the one before.
func tail(s session, alone bool, large string) (p99 float64, states int, err error) {
	b, err := openBed(s, true)
	if err != nil {
		return 0, 0, err
	}
	defer b.discard()
	if alone {
		p99, err := slowest(appendTimes(b.store, s, atOnce))
		return p99, 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var written atomic.Int64
	began, ended := make(chan struct{}), make(chan struct{})
	d := dispatch(chain(64, func(_ context.Context, w *Work) error {
		if w.Title.Set(large); written.Add(1) == 2 {
			close(began) // the first one is stored
		}
		return nil
	}), checkpoint.Store(b.store), dispatcher.Options{})
	var other error
	go func() { // waited for below, ends when ctx does
		defer close(ended)
		for n := 0; other == nil; n++ {
			_, other = d.Start(ctx, "large-"+strconv.Itoa(n), nil)
		}
		if errors.Is(other, context.Canceled) {
			other = nil
		}
	}()
	select {
	case <-began:
		before := written.Load()
		p99, err = slowest(appendTimes(b.store, s, func() bool { return written.Load() > before }))
		states = int(written.Load() - before)
	case <-ended:
	}
	cancel()
	<-ended
	return p99, states, errors.Join(err, other)
}

// slowest returns the 99th percentile.
func slowest(took series, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return took.quantile(0.99), nil
}

// appendTimes appends to one run, as timesOf.
func appendTimes(store checkpoint.Store, s session, enough func() bool) (took series, err error) {
	ctx := context.Background()
	w := &writer{store: store, run: "small"}
	if err := w.append(ctx); err != nil {
		return nil, err
	}
	return timesOf(s, enough, func() error { return w.append(ctx) })
}

// mostWindows is how many windows one may become until there is enough.
const mostWindows = 10

func atOnce() bool { return true }

// timesOf does it again and again for a window, and a hundred times at least, and then until there
// is enough, if that is within ten windows.
func timesOf(s session, enough func() bool, do func() error) (took series, err error) {
	least, first := s.scale(100, 10), time.Now()
	for {
		began := time.Now()
		if past := began.Sub(first); past >= s.long && len(took) >= least && (past >= mostWindows*s.long || enough()) {
			return took, nil
		}
		if err := do(); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began)))
	}
}

// barePiece is what a large value may be cut into.
const barePiece = 64 << 10

// bareTail commits 1 KB at a time for a window and returns the 99th percentile. If it is not alone
// another goroutine writes what pieces of large values are written in.
func bareTail(s session, alone bool) (p99 float64, err error) {
	b, err := openBare(s, 1_000, true)
	if err != nil {
		return 0, err
	}
	defer b.discard()
	pieces := &bare{db: b.db, value: []byte(noise(2, barePiece))}
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() { // waited for below, ends with stop
		var err error
		for !alone && err == nil && !stop.Load() {
			err = pieces.commitAs('p', b.ts.Add(1), 1)
		}
		ended <- err
	}()
	p99, err = slowest(timesOf(s, atOnce, func() error { return b.commit(1) }))
	stop.Store(true)
	return p99, cmp.Or(err, <-ended)
}
