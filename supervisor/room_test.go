package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A Recover that waits for room in the queue has it when a run is withdrawn, and ends when the
// supervisor drains.
func TestRoomForARecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a-1", "a-0")
		d := process(t, line(t, "line", 2, func(ctx context.Context, _ int) error { return heeds(ctx, time.Hour) }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Queue: 2}, d)
		submit(t, s, d, "x", "x-0")
		first, _ := submit(t, s, d, "x", "x-1"), submit(t, s, d, "x", "x-2")
		waits := func(want int) {
			t.Helper()
			synctest.Wait()
			if _, waiting := s.Load(); waiting != want {
				t.Errorf("%d runs wait, want %d", waiting, want)
			}
		}
		waits(2)
		type ending struct {
			supervisor.Recovery
			err error
		}
		ended := make(chan ending, 1)
		go func() { // ends with the Drain
			r, err := s.Recover(t.Context())
			ended <- ending{r, err}
		}()
		waits(2)
		if !first.Withdraw() {
			t.Error("x-1 could not be withdrawn")
		}
		waits(2) // x-2 and one of those that are recovered
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		report, err := s.Drain(ctx)
		if err != nil || len(report.Waiting) != 2 || !slices.Contains(report.Waiting, "x-2") {
			t.Errorf("Drain = %+v, %v", report, err)
		}
		if e := <-ended; !errors.Is(e.err, supervisor.ErrDraining) || !slices.Equal(e.Left, []string{"a-0", "a-1"}) {
			t.Errorf("Recover = %+v, %v", e.Recovery, e.err)
		}
	})
}

// A run that rests and has left a node that did not return is stuck, and not finished.
func TestDrainOfARunThatRestsAndHasLeftANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		end := make(chan struct{})
		defer close(end)
		d := process(t, line(t, "line", 1, func(context.Context, int) error { <-end; return nil }), &store, dispatcher.Options{Grace: time.Second})
		s := supervise(t, &store, supervisor.Options{}, d)
		task, err := supervisor.Go(t.Context(), s, d, "", "run", func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return d.Run(ctx, "run", nil, drain)
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		report, err := s.Drain(t.Context())
		if !errors.Is(err, supervisor.ErrStuck) {
			t.Errorf("Drain = %v", err)
		}
		reports(t, report, supervisor.Drain{Stuck: []string{"run"}})
		if res, err := task.Wait(t.Context()); res.Status != checkpoint.StatusTimedOut || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the run is %s: %v", res.Status, err)
		}
	})
}

// A node may fail with any error, also with that by which a Recover knows that it has to look
// again.
func TestRecoverOfARunThatFailsWithAStaleCursor(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	d := process(t, line(t, "line", 2, func(context.Context, int) error { return dispatcher.ErrStaleCursor }), &store, dispatcher.Options{})
	recovered := 0
	s := supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
		if e.Kind == supervisor.Recovered && e.Err == nil {
			recovered++
		}
	}}, d)
	r, err := s.Recover(t.Context())
	if err != nil || !slices.Equal(r.Rested, []string{"run"}) || recovered != 1 {
		t.Errorf("Recover = %+v, %v, told of %d", r, err, recovered)
	}
	if got := statuses(t, &store)["run"]; got != checkpoint.StatusFailed {
		t.Errorf("the run is %s", got)
	}
}

// So may a hook. The run has not gone on then, and a call that looks again would be told the same
// for ever.
func TestRecoverOfARunWhoseHookFailsWithAStaleCursor(t *testing.T) {
	for _, why := range []error{dispatcher.ErrStaleCursor, checkpoint.ErrCursor} {
		var store memory.Store
		left(t, "line", 2, &store, "run")
		asked := 0
		d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error {
			if asked++; asked > 10 {
				return errLost
			}
			return why
		}}})
		s := supervise(t, &store, supervisor.Options{}, d)
		if r, err := s.Recover(t.Context()); err != nil || !errors.Is(failed(r)["run"], why) || asked != 1 {
			t.Errorf("Recover = %+v, %v, asked the hook %d times", r, err, asked)
		}
	}
}

// Nor is what a program is asked about what has become stale, by Options.Revalidate.
func TestRecoverOfARunWhoseRevalidationFailsWithAStaleCursor(t *testing.T) {
	for _, why := range []error{dispatcher.ErrStaleCursor, checkpoint.ErrCursor} {
		var store memory.Store
		drain := make(chan struct{})
		g := line(t, "line", 2, func(ctx context.Context, _ int) error {
			close(drain)
			return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
		})
		asked := 0
		d := process(t, g, &store, dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error {
			if asked++; asked > 10 {
				return errLost
			}
			return why
		}})
		leave(t, d, drain, "run")
		s := supervise(t, &store, supervisor.Options{}, d)
		if r, err := s.Recover(t.Context()); err != nil || !errors.Is(failed(r)["run"], why) || asked != 1 {
			t.Errorf("Recover = %+v, %v, asked %d times", r, err, asked)
		}
	}
}
