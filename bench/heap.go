package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
)

// heaps measures what runs take of memory with a store of Badger: those that rest, for which there
// should be no goroutine and hardly anything, and those that are at work, with their stacks.
func heaps(s session) ([]row, error) {
	idle := s.scale(10_000, 500)
	var handle, goroutines series
	for range s.rounds {
		bytes, extra, err := resting(s, idle)
		if err != nil {
			return nil, err
		}
		handle, goroutines = append(handle, bytes/float64(idle)), append(goroutines, extra)
	}
	rows := []row{
		atMost("heap/idle-handle", handle, "bytes", 1024, "live heap for each of %d runs that wait, after their calls have returned", idle),
		atMost("heap/idle-goroutines", goroutines, "goroutines", 0, "more than before, while %d runs wait", idle),
	}
	for _, whole := range []int{1, 1_000, 10_000} {
		runs := min(whole, s.scale(whole, 300))
		var all series
		for range s.rounds {
			bytes, err := flyingHeap(s, runs)
			if err != nil {
				return rows, err
			}
			all = append(all, bytes/(1<<20))
		}
		rows = append(rows, shown(fmt.Sprintf("heap/running-%d", whole), all, "MiB",
			"live heap and stacks of %d runs at once, each at work in a node: %.3g KiB each", runs, all.median()*1024/float64(runs)))
	}
	return rows, nil
}

// openQuiet opens a store whose memory does not change meanwhile: its tables are large enough.
func openQuiet(s session) (*bed, error) {
	return openBedWith(s, false, badgerstore.Large())
}

// resting returns what so many runs take that wait, and how many goroutines there are more: one of
// before may have ended.
func resting(s session, runs int) (bytes, goroutines float64, err error) {
	b, err := openQuiet(s)
	if err != nil {
		return 0, 0, err
	}
	defer b.discard()
	d := dispatch(chain(10, write), checkpoint.Store(b.store), dispatcher.Options{InterruptBefore: []string{"node-3"}})
	start := func(run string) error {
		if _, err := d.Start(context.Background(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			return fmt.Errorf("run %s should be interrupted: %w", run, err)
		}
		return nil
	}
	for i := range 100 {
		if err := start("before-" + strconv.Itoa(i)); err != nil {
			return 0, 0, err
		}
	}
	heap, count := live(), runtime.NumGoroutine()
	for i := range runs {
		if err := start("run-" + strconv.Itoa(i)); err != nil {
			return 0, 0, err
		}
	}
	bytes, goroutines = live()-heap, float64(max(0, runtime.NumGoroutine()-count))
	runtime.KeepAlive(d)
	return bytes, goroutines, nil
}

// flyingHeap returns what so many runs take that are at work at once.
func flyingHeap(s session, runs int) (float64, error) {
	b, err := openQuiet(s)
	if err != nil {
		return 0, err
	}
	defer b.discard()
	began := make(chan struct{}, runs)
	d := dispatch(flying(func() { began <- struct{}{} }), checkpoint.Store(b.store), dispatcher.Options{})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	heap := live()
	errs := make([]error, runs)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { // ends when ctx does
			if _, err := d.Start(ctx, "run-"+strconv.Itoa(i), nil); ctx.Err() == nil {
				errs[i] = errors.Join(fmt.Errorf("run %d ended, which should be at work", i), err)
				cancel(errs[i])
			}
		})
	}
	for range runs {
		select {
		case <-began:
		case <-ctx.Done():
			all.Wait()
			return 0, cmp.Or(errs...)
		}
	}
	bytes := live() - heap
	cancel(dispatcher.ErrDrain)
	all.Wait()
	return bytes, cmp.Or(errs...)
}

// live returns the bytes of the heap that are in use, and of stacks.
func live() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
