package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// found is the task of a run that waits or is at work.
func found(t *testing.T, s *supervisor.Supervisor, run string) *supervisor.Task[struct{}] {
	t.Helper()
	task, ok := s.Task(run)
	if !ok || task.Run() != run {
		t.Fatalf("Task(%q) = %v, %t", run, task, ok)
	}
	return task
}

func missing(t *testing.T, s *supervisor.Supervisor, run string) {
	t.Helper()
	if task, ok := s.Task(run); ok || task != nil {
		t.Errorf("Task(%q) = %v, %t, want none", run, task, ok)
	}
}

// Who has the id of a run finds its task while it waits or is at work, whoever submitted it, and
// may wait for it or withdraw it.
func TestTheTaskOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "left")
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		missing(t, s, "left")
		submit(t, s, d, "", "first")
		withdrawn := submit(t, s, d, "", "withdrawn")
		recovered := recovering(t, s)
		synctest.Wait()
		for _, run := range []string{"first", "left"} {
			task := found(t, s, run)
			if task.Withdraw() != (run == "left") {
				t.Errorf("%s was withdrawn, or was not", run)
			}
		}
		if r := <-recovered; len(r.Left) != 1 {
			t.Errorf("Recover = %+v", r)
		}
		missing(t, s, "left")
		if !found(t, s, "withdrawn").Withdraw() {
			t.Error("it waits, and was not withdrawn")
		}
		if _, err := withdrawn.Wait(t.Context()); !errors.Is(err, supervisor.ErrWithdrawn) {
			t.Errorf("who submitted it is told %v", err)
		}
		if res, err := found(t, s, "first").Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted || res.Superstep != 2 {
			t.Errorf("Wait = %+v, %v", res, err)
		}
		missing(t, s, "first")
		missing(t, nil, "first")
		missing(t, new(supervisor.Supervisor), "first")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Of a run that is gone on with for who has joined it there is a task each time, and no moment
// without one; who looks for it has joined nothing.
func TestTheTaskOfARunThatIsGoneOnWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var s *supervisor.Supervisor
		d := asking(t, &store)
		s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
			switch e.Kind {
			case supervisor.Joined, supervisor.Began, supervisor.Ended:
				if _, ok := s.Task("run"); !ok {
					t.Errorf("%s: it has no task", e.Kind)
				}
			}
		}}, d)
		var joined *supervisor.Task[parcel]
		first := calls(t, s, d, "run", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
			lasts(time.Second)
			res, err := d.Run(ctx, "run", nil, drain)
			if err := d.Answer(ctx, "run", "", true); err != nil {
				t.Error(err)
			}
			joined = submit(t, s, d, "", "run")
			return res, err
		})
		if _, err := found(t, s, "run").Wait(t.Context()); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Errorf("the first is told %v", err)
		}
		<-first.Done()
		if task, ok := s.Task("run"); ok {
			if _, err := task.Wait(t.Context()); err != nil {
				t.Errorf("the second is told %v", err)
			}
		}
		<-joined.Done()
		missing(t, s, "run")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
