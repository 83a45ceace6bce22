package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that was gone on with as a cancelled one, and was left running since the store had no room,
// is one that runs: who cancels it behind a Continue that has joined it has ended it, while a
// Submit goes on with it.
func TestCancelledWhileItWaitsForRoomBehindAContinueStaysCancelled(t *testing.T) {
	for _, of := range []struct {
		name              string
		submitted, goesOn bool
	}{
		{"Continue of a cancelled run", false, false},
		{"Submit", true, false},
		{"Continue of a cancelled run, and Submit", false, true},
	} {
		t.Run(of.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				left(t, "line", 3, store, "a")
				d := process(t, line(t, "line", 3, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d)
				if err := d.Cancel(t.Context(), "a", errByUser); err != nil {
					t.Fatal(err)
				}
				goesOn := func() *supervisor.Task[struct{}] {
					task, err := s.Continue(t.Context(), "", "a")
					if err != nil {
						t.Fatal(err)
					}
					return task
				}
				if of.submitted {
					submit(t, s, d, "", "a")
				} else {
					goesOn()
				}
				lasts(500 * time.Millisecond)
				store.full.Store(true)
				lasts(time.Second)
				holds(t, s, 1)
				task := goesOn()
				if of.goesOn {
					submit(t, s, d, "", "a")
				}
				store.full.Store(false)
				if err := d.Cancel(t.Context(), "a", errByUser); err != nil {
					t.Fatal(err)
				}
				<-task.Done()
				want := checkpoint.StatusCancelled
				if of.goesOn {
					want = checkpoint.StatusCompleted
				}
				if is := statuses(t, store)["a"]; is != want {
					t.Errorf("the run is %s, want %s", is, want)
				}
				if _, err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
