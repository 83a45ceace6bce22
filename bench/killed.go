package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// killed measures how long it takes from opening the store of a process that was killed with 10 000
// runs in flight until the first of them is at work, and until all are. In every round it is
// another process, killed by SIGKILL.
func killed(s session) ([]row, error) {
	runs := s.scale(10_000, 200)
	var first, all, reading, over series
	for range s.rounds {
		dir, err := crashed(s, runs, 5*time.Minute)
		if err != nil {
			return nil, err
		}
		r, err := recovered(dir, runs)
		_ = os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
		first, all, reading = append(first, r.first), append(all, r.all), append(reading, r.reading)
		over = append(over, r.first/(1+r.reading))
	}
	return []row{
		atMost("killed/to-first-node", over, "ratio", 1,
			"%.3g s from opening the store to the first node at work, to 1 s and the time to read what was in the logs of %d runs again, %.3g s",
			first.median(), runs, reading.median()),
		shown("killed/to-all-nodes", all, "s", "from opening the store until all of %d runs are at work", runs),
	}, nil
}

// flying is a graph whose second node is at work until its process ends.
func flying(began func()) *dag.Graph[Work] {
	b := dag.New[Work]("flight")
	first := dag.Step(b, "first", write)
	dag.Step(b, "second", func(ctx context.Context, _ *Work) error {
		began()
		<-ctx.Done()
		return ctx.Err()
	}, first)
	return build(b)
}

// takeOff is the process that is killed: it says when all runs are in flight.
func takeOff(args []string) error {
	runs, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	b, err := reopenBed(args[0], true)
	if err != nil {
		return err
	}
	var began atomic.Int64
	ready := make(chan struct{})
	d := dispatch(flying(func() {
		if began.Add(1) == int64(runs) {
			close(ready)
		}
	}), checkpoint.Store(b.store), dispatcher.Options{})
	failed := make(chan error)
	for i := range runs {
		go func() { // ends with the process
			_, err := d.Start(context.Background(), "run-"+strconv.Itoa(i), nil)
			failed <- err
		}()
	}
	select {
	case err := <-failed:
		return err
	case <-ready:
	}
	fmt.Println("in flight")
	return <-failed
}

// crashed returns the directory of the store of a process that was killed with so many runs in
// flight. It waits no longer than most until they are.
func crashed(s session, runs int, most time.Duration) (string, error) {
	dir, err := os.MkdirTemp(s.dir, "killed-")
	if err != nil {
		return "", err
	}
	c, err := childOf("flight", dir, strconv.Itoa(runs))
	if err != nil {
		return "", err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(most, func() { _ = c.Process.Kill() })
	said, err := bufio.NewReader(out).ReadString('\n')
	if !late.Stop() {
		err = fmt.Errorf("%d runs were not in flight after %v", runs, most)
	}
	_ = c.Process.Kill()
	_ = c.Wait() // it was killed
	if err != nil {
		return "", fmt.Errorf("the process that was to be killed said %q: %w", said, err)
	}
	return dir, nil
}

// A recovery is what one took, in seconds.
type recovery struct{ first, all, reading float64 }

// recovered does what a program does that was started again: it opens the store, lists what was
// left running and goes on with it.
func recovered(dir string, runs int) (r recovery, err error) {
	began := time.Now()
	b, err := reopenBed(dir, true)
	if err != nil {
		return r, err
	}
	defer b.close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var at atomic.Int64
	first, last := make(chan struct{}), make(chan struct{})
	d := dispatch(flying(func() {
		n := at.Add(1)
		if n == 1 {
			close(first)
		}
		if n == int64(runs) {
			close(last)
		}
	}), checkpoint.Store(b.store), dispatcher.Options{})
	var there []checkpoint.Info
	failed := make(chan error, runs+1) // of each run, and of the listing
	var flights sync.WaitGroup
	flights.Go(func() { // ends with its runs, which end when ctx does
		running := checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusRunning}, Limit: 1_000}
		for info, err := range checkpoint.Runs(ctx, b.store, running) {
			if err != nil {
				failed <- err
				return
			}
			there = append(there, info)
			flights.Go(func() {
				if _, err := d.Run(ctx, info.Run, nil); ctx.Err() == nil {
					failed <- fmt.Errorf("a recovered run ended: %w", err)
				}
			})
		}
		if len(there) < runs {
			failed <- fmt.Errorf("%d runs in flight are listed, of %d", len(there), runs)
		}
	})
	if r.first, err = until(first, failed, began); err == nil {
		r.all, err = until(last, failed, began)
	}
	cancel(dispatcher.ErrDrain)
	flights.Wait()
	if err == nil {
		r.reading, err = readLogs(b.store, there)
	}
	return r, err
}

// until returns how many seconds after began it was reached, or the first error before that.
func until(reached <-chan struct{}, failed <-chan error, began time.Time) (float64, error) {
	select {
	case <-reached:
		return time.Since(began).Seconds(), nil
	case err := <-failed:
		return 0, err
	}
}

// readLogs returns how many seconds it takes to read what was in the logs of runs when they were
// listed, which is all of it that a recovery had to read.
func readLogs(store checkpoint.Store, runs []checkpoint.Info) (float64, error) {
	began := time.Now()
	for _, info := range runs {
		read := uint64(0)
		for _, err := range store.Read(context.Background(), info.Run, 1, info.Head.Seq) {
			if err != nil {
				return 0, err
			}
			read++
		}
		if read != info.Head.Seq {
			return 0, fmt.Errorf("%d entries of run %s were read, of %d", read, info.Run, info.Head.Seq)
		}
	}
	return time.Since(began).Seconds(), nil
}
