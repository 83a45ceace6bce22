package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A recovery goes on with all runs that were in flight, and says so if there are fewer, or none, instead of
// waiting for them.
func TestRecoveredWantsAllRuns(t *testing.T) {
	const runs = 3
	dir := t.TempDir()
	inFlight(t, dir, runs)
	r, err := recovered(dir, runs)
	if err != nil || r.first <= 0 || r.all < r.first || r.reading <= 0 {
		t.Errorf("recovered = %+v, %v; want three times", r, err)
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
	began := make(chan struct{}, runs)
	d := dispatch(flying(func() { began <- struct{}{} }), checkpoint.Store(b.store), dispatcher.Options{})
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { _, _ = d.Start(ctx, "run-"+strconv.Itoa(i), nil) }) // it is left running
	}
	for range runs {
		<-began
	}
	cancel(dispatcher.ErrDrain)
	all.Wait()
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
}
