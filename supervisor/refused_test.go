package supervisor_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// Who submits a run that is there as one of another graph, or for a call of its own, is told
// so, and not given the result of something else.
func TestWhatCannotBeJoinedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		hold := make(chan struct{})
		body := func(context.Context, int) error { <-hold; return nil }
		orders := process(t, line(t, "orders", 1, body), &store, dispatcher.Options{})
		refunds := process(t, line(t, "refunds", 1, body), &store, dispatcher.Options{})
		observe := func(e supervisor.Event) {
			if e.Kind == supervisor.Refused && !errors.Is(e.Err, dispatcher.ErrBusy) {
				t.Errorf("told %v", e)
			}
		}
		s := supervise(t, &store, supervisor.Options{Observe: observe}, orders, refunds)
		task := submit(t, s, orders, "", "7")

		var refused *supervisor.RunError
		_, err := supervisor.Submit(t.Context(), s, refunds, "", "7", nil)
		if !errors.As(err, &refused) || refused.Graph != "orders" || !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("a run of another graph: Submit returns %v", err)
		}
		_, err = supervisor.Go(t.Context(), s, orders, "", "7",
			func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				t.Error("the call was made beside another")
				return nil, errLost
			})
		if !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("a call of its own: Go returns %v", err)
		}
		close(hold)
		completes(t, task)
	})
}

// An option that a submission can't pass on is refused before anything waits, and not when the run
// has its turn.
func TestOptionsThatCannotBePassedOnAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Run != "run" {
				t.Errorf("told %v", e)
			}
		}}, d)
		completes(t, submit(t, s, d, "", "run"))
		for _, option := range []dispatcher.RunOption{
			dispatcher.Answering("", true), dispatcher.Drain(make(chan struct{})), dispatcher.OrStart(),
			dispatcher.From(checkpoint.Cursor{}), dispatcher.Expire("once#ok"),
			dispatcher.Author("Ada"), dispatcher.Because("so"), dispatcher.Message("m"),
		} {
			var refused *supervisor.OptionError
			_, err := supervisor.Submit(t.Context(), s, d, "", "none", nil, option)
			if !errors.As(err, &refused) || refused.Option != option.Name() {
				t.Errorf("Submit with %s returns %v", option.Name(), err)
			}
			if option.Name() == "From" || option.Name() == "Expire" {
				continue
			}
			_, err = s.Continue(t.Context(), "", "run", option)
			if !errors.As(err, &refused) || refused.Option != option.Name() {
				t.Errorf("Continue with %s returns %v", option.Name(), err)
			}
		}
	})
}

// Continue goes on from the cursor that it is given, and from no other.
func TestContinueFromACursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 3, &store, "run")
		d := process(t, line(t, "line", 3, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{}, d)
		at, err := d.State(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		from := func(c checkpoint.Cursor) error {
			task, err := s.Continue(t.Context(), "", "run", dispatcher.From(c))
			if err != nil {
				t.Fatal(err)
			}
			_, err = task.Wait(t.Context())
			return err
		}
		stale := at.Cursor
		stale.Seq--
		if err := from(stale); !errors.Is(err, dispatcher.ErrStaleCursor) {
			t.Errorf("from a cursor of before: %v", err)
		}
		if err := from(at.Cursor); err != nil {
			t.Errorf("from where the run stands: %v", err)
		}
	})
}

// A call of Go that works on another run than the one whose turn it is has both named, and its
// result is not taken for that of this one, however it ended.
func TestGoOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		fails := false
		d := process(t, line(t, "line", 1, func(context.Context, int) error {
			if fails {
				return errLost
			}
			return nil
		}), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{}, d)
		for _, other := range []string{"ends", "fails"} {
			fails = other == "fails"
			task, err := supervisor.Go(t.Context(), s, d, "", "mine",
				func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
					return d.Run(ctx, other, nil, drain)
				})
			if err != nil {
				t.Fatal(err)
			}
			res, err := task.Wait(t.Context())
			var refused *supervisor.RunError
			if !errors.As(err, &refused) || refused.Run != "mine" || !strings.Contains(err.Error(), `"`+other+`"`) {
				t.Errorf("the call that %s returns %v", other, err)
			}
			if fails && (errors.Is(err, errLost) || !strings.Contains(err.Error(), errLost.Error())) {
				t.Errorf("the failure of another run: %v", err)
			}
			if res.Run != "mine" || res.Status != "" || res.State.Steps.Len() != 0 {
				t.Errorf("the call that %s has the result %+v", other, res)
			}
		}
		if _, err := store.Stat(t.Context(), "mine"); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("there is a run of the task's id: %v", err)
		}
	})
}

// A run that a person cancels while it waits to be recovered stays cancelled.
func TestCancelledWhileItWaitsForRecovery(t *testing.T) {
	var store memory.Store
	left(t, "line", 3, &store, "a")
	synctest.Test(t, func(t *testing.T) {
		d := process(t, line(t, "line", 3, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		gate := make(chan struct{})
		_, err := supervisor.Go(t.Context(), s, d, "", "gate",
			func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				<-gate
				return nil, errLost
			})
		if err != nil {
			t.Fatal(err)
		}
		recovered := make(chan error)
		go func() { // ends when the test receives from recovered
			_, err := s.Recover(t.Context())
			recovered <- err
		}()
		synctest.Wait()
		if err := d.Cancel(t.Context(), "a", errLost); err != nil {
			t.Fatal(err)
		}
		close(gate)
		if err := <-recovered; err != nil {
			t.Fatal(err)
		}
		if info, err := store.Stat(t.Context(), "a"); err != nil || info.Status != checkpoint.StatusCancelled {
			t.Errorf("the run is %s, %v", info.Status, err)
		}
	})
}

// An observer that ends the goroutine it is told on takes no place with it, and no run.
func TestObserverThatEndsItsGoroutine(t *testing.T) {
	for _, kind := range []supervisor.EventKind{supervisor.Began, supervisor.Ended} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var ended atomic.Bool
			d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
			s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
				if e.Kind == kind && !ended.Swap(true) {
					runtime.Goexit()
				}
			}}, d)
			first, second := submit(t, s, d, "", "first"), submit(t, s, d, "", "second")
			completes(t, first)
			completes(t, second)
		})
	}
}
