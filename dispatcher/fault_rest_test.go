package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A halt brings a line to rest while its first node runs; again is what runs after that, once
// the run was cancelled at rest.
type halt struct {
	status checkpoint.Status
	body   func(cancel context.CancelCauseFunc) error
	again  []string
}

var halts = []halt{
	{checkpoint.StatusFailed, func(context.CancelCauseFunc) error { return errWeather }, []string{"a#2", "b", "c"}},
	{checkpoint.StatusCancelled, func(cancel context.CancelCauseFunc) error { cancel(nil); return errWeather }, []string{"a", "b", "c"}},
	{checkpoint.StatusRunning, func(cancel context.CancelCauseFunc) error {
		cancel(dispatcher.ErrDrain)
		return errWeather
	}, []string{"a", "b", "c"}},
	{checkpoint.StatusInterrupted, func(context.CancelCauseFunc) error { return nil }, []string{"b", "c"}},
}

// At rest, whatever it rests as, a run becomes Cancelled at once, and goes on from there.
func TestCancelAtRest(t *testing.T) {
	for _, h := range halts {
		t.Run(string(h.status), func(t *testing.T) {
			quiet(t)
			h.cancel(t)
		})
	}
}

func (h halt) cancel(t *testing.T) {
	var w witness
	var store memory.Store
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	b := dag.New[Tale]("halts")
	first := dag.Step(b, "a", w.sees(func(context.Context, *Tale) error {
		if body := h.body; body != nil {
			h.body = nil
			return body(stop)
		}
		return nil
	}))
	dag.Step(b, "c", w.sees(nil), dag.Step(b, "b", w.sees(nil), first))
	g := frozen(t, b)
	var o dispatcher.Options
	if h.status == checkpoint.StatusInterrupted {
		o.InterruptBefore = []string{"b"}
	}
	res, err := process(t, g, &store, o).Run(ctx, run, nil)
	if err == nil || res.Status != h.status {
		t.Fatalf("the run is %s, %v", res.Status, err)
	}
	w.took()
	d := process(t, g, &store, o)
	if err := d.Cancel(t.Context(), run, errors.New("enough")); err != nil {
		t.Fatal(err)
	}
	res, err = d.State(t.Context(), run)
	if err != nil || res.Status != checkpoint.StatusCancelled {
		t.Errorf("the run is %s, %v, want it cancelled", res.Status, err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, h.again...)
}

// ErrDrain stops a run and leaves it Running, owned by nobody: the next process goes on.
func TestDrain(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			ctx, cancel := context.WithCancelCause(t.Context())
			if early {
				cancel(dispatcher.ErrDrain)
			} else {
				time.AfterFunc(time.Second, func() { cancel(dispatcher.ErrDrain) })
			}
			times := 0
			g := line(t, &w, func(ctx context.Context, _ *Tale) error {
				if times++; times > 1 {
					return nil
				}
				return heeds(ctx, time.Minute)
			})
			res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, func(s *Tale) { s.Word.Set("kept") })
			status, cursor, ran := checkpoint.StatusRunning, "b", []string{"a", "b"}
			if early {
				status, cursor, ran = checkpoint.StatusPending, "a", nil
			}
			rests(t, res, err, status, cursor)
			if !errors.Is(err, dispatcher.ErrDrain) {
				t.Errorf("the error %v does not hold its cause", err)
			}
			w.expect(t, ran...)
			info, err := store.Stat(t.Context(), run)
			if err != nil || info.Status != status || info.Owner != "" {
				t.Errorf("the store says %s, owned by %q, %v", info.Status, info.Owner, err)
			}
			res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			if res.State.Word.Get() != "kept" {
				t.Error("the input is lost")
			}
			says(t, res.State, "a", "b", "c")
		})
	}
}
