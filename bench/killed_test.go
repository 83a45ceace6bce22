package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A recovery goes on with all runs that were in flight, and says so if there are fewer, or none,
// instead of waiting for them.
func TestRecoveredWantsAllRuns(t *testing.T) {
	const runs = 3
	dir, one := t.TempDir(), t.TempDir()
	inFlight(t, dir, runs)
	inFlight(t, one, 1)
	for _, test := range []struct {
		dir  string
		runs int
	}{{dir, runs}, {one, 1}} {
		r, err := recovered(test.dir, test.runs)
		if err != nil || r.first <= 0 || r.all < r.first || r.reading <= 0 {
			t.Errorf("recovered = %+v, %v; want three times, of %d runs", r, err, test.runs)
		}
	}
	for _, test := range []struct {
		dir  string
		runs int
		want string
	}{{dir, runs + 1, "3 runs in flight are listed, of 4"}, {t.TempDir(), 1, "0 runs in flight are listed, of 1"}} {
		if _, err := recovered(test.dir, test.runs); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("recovered = %v, want %s", err, test.want)
		}
	}
}

// A process is killed when all of its runs are in flight, and is not waited for without end.
func TestCrashed(t *testing.T) {
	s := session{dir: t.TempDir()}
	dir, err := crashed(s, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := recovered(dir, 3); err != nil {
		t.Errorf("recovered = %+v, %v; want what was in flight", r, err)
	}
	const none = 0 // which never are in flight
	if _, err := crashed(s, none, 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "not in flight after 200ms") {
		t.Errorf("crashed = %v, want that nothing was in flight in time", err)
	}
}

// Reading counts only if everything was read.
func TestReadLogsCounts(t *testing.T) {
	dir := t.TempDir()
	inFlight(t, dir, 1)
	b, err := reopenBed(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	info, err := b.store.Stat(t.Context(), "run-0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readLogs(b.store, []checkpoint.Info{info}); err != nil {
		t.Error(err)
	}
	more := info
	more.Head.Seq++
	if _, err := readLogs(b.store, []checkpoint.Info{info, more}); err == nil || !strings.Contains(err.Error(), "of run run-0") {
		t.Errorf("readLogs = %v, want an error that says what was read of run-0", err)
	}
	if _, err := readLogs(b.store, []checkpoint.Info{info, {Run: "run-1"}}); err == nil {
		t.Error("readLogs read a run that is not there")
	}
}

// inFlight makes a store in dir whose runs were left running.
func inFlight(t *testing.T, dir string, runs int) {
	b, err := reopenBed(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	began, failed := make(chan struct{}, runs), make(chan error, runs)
	d := dispatch(flying(func() { began <- struct{}{} }), checkpoint.Store(b.store), dispatcher.Options{})
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { // ends when ctx does, and is left running
			if _, err := d.Start(ctx, "run-"+strconv.Itoa(i), nil); ctx.Err() == nil {
				failed <- err
			}
		})
	}
	for range runs {
		select {
		case <-began:
		case err := <-failed:
			t.Fatalf("a run that should be in flight ended: %v", err)
		}
	}
	cancel(dispatcher.ErrDrain)
	all.Wait()
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
}
