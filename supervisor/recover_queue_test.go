package supervisor_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that takes long keeps none of the runs that were left behind it from their turns.
func TestRecoverBehindALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a-4", "a-3", "a-2", "a-1", "a-0")
		d := process(t, line(t, "line", 2, func(ctx context.Context, _ int) error {
			if strings.Contains(dag.Key(ctx), "a-0") {
				lasts(time.Hour)
			}
			lasts(time.Second)
			return nil
		}), &store, dispatcher.Options{})
		began, others := time.Now(), time.Duration(0)
		s := supervise(t, &store, supervisor.Options{Cap: 2, Queue: 2, Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Ended && e.Run != "a-0" {
				others = time.Since(began)
			}
		}}, d)
		r, err := s.Recover(t.Context())
		if want := []string{"a-0", "a-1", "a-2", "a-3", "a-4"}; err != nil || !slices.Equal(r.Rested, want) {
			t.Errorf("Recover = %+v, %v, want that all rest", r, err)
		}
		if others > time.Minute {
			t.Errorf("the others ended after %v, behind one that takes hours", others)
		}
	})
}

// What is recovered has at most half of the queue, however many may be at work.
func TestRecoverLeavesHalfOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a-7", "a-6", "a-5", "a-4", "a-3", "a-2", "a-1", "a-0")
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 4, Queue: 6}, d)
		for _, run := range []string{"x-0", "x-1", "x-2", "x-3"} {
			submit(t, s, d, "x", run)
		}
		ended := make(chan supervisor.Recovery, 1)
		go func() { // ends with the last run
			r, _ := s.Recover(t.Context())
			ended <- r
		}()
		synctest.Wait()
		if _, waiting := s.Load(); waiting != 3 {
			t.Errorf("%d runs wait in a queue of 6, want half", waiting)
		}
		if r := <-ended; len(r.Rested) != 8 {
			t.Errorf("Recover = %+v, want that all rest", r)
		}
	})
}

// A run that another process is at work on when its turn comes is that one's.
func TestRecoverOfARunThatAnotherProcessTakesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a")
		g := line(t, "line", 2, func(context.Context, int) error { lasts(time.Minute); return nil })
		d, other := process(t, g, &store, dispatcher.Options{}), process(t, g, &store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Recovered}}
		s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
		submit(t, s, d, "", "first")
		synctest.Wait()
		recovered := recovering(t, s)
		lasts(time.Minute + time.Second)
		over := make(chan error)
		go func() { // ends with the run, which the test waits for
			_, err := other.Continue(t.Context(), "a")
			over <- err
		}()
		if r := <-recovered; !slices.Equal(r.Busy, []string{"a", "first"}) || len(r.Rested)+len(r.Failed)+len(r.Left) > 0 {
			t.Errorf("Recover = %+v", r)
		}
		if err := <-over; err != nil {
			t.Errorf("the other process: %v", err)
		}
		told.expect(t)
	})
}
