package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

func TestScenario11CancelledBeforeTheStart(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, func(s *Tale) { s.Word.Set("kept") })
	rests(t, res, err, checkpoint.StatusCancelled, "a")
	w.expect(t)
	res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, func(*Tale) { t.Error("the input was asked for twice") })
	completes(t, res, err)
	if res.State.Word.Get() != "kept" {
		t.Errorf("the input is %q, want it kept", res.State.Word.Get())
	}
	w.expect(t, "a", "b", "c")
}

// A run is taken up also under a context that is done, and rests as that says: one that had failed
// too. What failed is in its log, and the next call runs it again.
func TestScenario11FailedAndThenCancelled(t *testing.T) {
	for status, call := range map[checkpoint.Status]func(*dispatcher.Dispatcher[Tale], context.Context) (*dispatcher.Result[Tale], error){
		checkpoint.StatusCancelled: func(d *dispatcher.Dispatcher[Tale], ctx context.Context) (*dispatcher.Result[Tale], error) {
			return d.Resume(ctx, run)
		},
		checkpoint.StatusTimedOut: func(d *dispatcher.Dispatcher[Tale], ctx context.Context) (*dispatcher.Result[Tale], error) {
			return d.Run(ctx, run, nil)
		},
	} {
		var w witness
		var store memory.Store
		fails := true
		g := line(t, &w, func(context.Context, *Tale) error {
			if fails {
				return errWeather
			}
			return nil
		})
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "b")
		w.expect(t, "a", "b")

		ctx, cancel := context.WithCancel(t.Context())
		if cancel(); status == checkpoint.StatusTimedOut {
			ctx, cancel = context.WithDeadline(t.Context(), time.Unix(0, 0))
			defer cancel()
		}
		res, err = call(process(t, g, &store, dispatcher.Options{}), ctx)
		rests(t, res, err, status, "b")
		w.expect(t)
		if got := kinds(readLog(t, &store), checkpoint.AttemptFailed, checkpoint.Failed); len(got) != 2 {
			t.Errorf("the log tells of %q, want the failed attempt and that the run failed", got)
		}

		fails = false
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "b#2", "c")
	}
}

func TestScenario12CancelWhileARuns(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	why := errors.New("abort")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := dag.New[Tale]("line")
	first := dag.Step(b, "a", w.sees(func(context.Context, *Tale) error { cancel(why); return nil }))
	second := dag.Step(b, "b", w.sees(nil), first)
	dag.Step(b, "c", w.sees(nil), second)
	g := frozen(t, b)

	res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusCancelled, "b")
	if !errors.Is(err, why) {
		t.Errorf("%v does not hold the cause", err)
	}
	says(t, res.State, "a")
	w.expect(t, "a")
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "b", "c")
	says(t, res.State, "a", "b", "c")
}

// A cancel by the run's id counts as one of the context does, once Cancel has returned: however
// quick the nodes are, and whatever else the run is told.
func TestScenario12CancelledByIDWhileARuns(t *testing.T) {
	quiet(t)
	for _, o := range []dispatcher.Options{
		{}, {Lag: 3}, {Paranoid: true}, {Observe: func(dispatcher.Event) {}}, {Parallel: 1},
	} {
		var w witness
		var store memory.Store
		b := dag.New[Tale]("line")
		var d *dispatcher.Dispatcher[Tale]
		first := dag.Step(b, "a", w.sees(func(ctx context.Context, _ *Tale) error {
			return d.Cancel(context.WithoutCancel(ctx), run, errors.New("abort")) // ctx ends as soon as the caller hears of it
		}))
		second := dag.Step(b, "b", w.sees(nil), first)
		dag.Step(b, "c", w.sees(nil), second)
		var err error
		if d, err = dispatcher.New(frozen(t, b), &store, o); err != nil {
			t.Fatal(err)
		}

		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "b")
		w.expect(t, "a")
		says(t, res.State, "a")
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "b", "c")
	}
}

func TestScenario13DeadlineInANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		d := process(t, line(t, &w, func(ctx context.Context, _ *Tale) error {
			return heeds(ctx, time.Hour)
		}), &store, dispatcher.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		began := time.Now()
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call returned after %v, want one minute", took)
		}
		if n := len(kinds(readLog(t, &store), checkpoint.AttemptFailed)); n != 0 {
			t.Errorf("the error after the deadline was counted as %d attempts", n)
		}
		w.expect(t, "a", "b")
	})
}

// Scenario 14: a node that ends after the deadline, but within the grace period, has run;
// nothing after it has. What one does that takes longer is told with the faults.
func TestScenario14NodeIgnoresTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		g := line(t, &w, func(context.Context, *Tale) error { lasts(time.Minute); return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 58*time.Second)
		defer cancel()

		began := time.Now()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "c")
		if took := time.Since(began); took != time.Minute || len(res.Abandoned) > 0 {
			t.Errorf("the call returned after %v and abandoned %q, want one minute and nothing", took, res.Abandoned)
		}
		says(t, res.State, "a", "b")
		w.expect(t, "a", "b")
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "c")
	})
}

func TestScenario15TimeoutOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		b := dag.New[Tale]("line")
		first := dag.Step(b, "a", w.sees(nil))
		dag.Step(b, "b", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }), first).
			With(dag.Policy{Timeout: time.Minute})
		dag.Step(b, "beside", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, 2*time.Minute) }), first)
		d := process(t, frozen(t, b), &store, dispatcher.Options{})

		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "b")
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Path != "b" || failed.Kind != dag.FailedTimeout || failed.Budget != time.Minute {
			t.Errorf("the error is %#v, want a time-out of b after a minute", failed)
		}
		if !errors.Is(err, dispatcher.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is to be an ErrTimeout and no context.DeadlineExceeded", err)
		}
		for _, word := range []string{"b", "1m0s"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the message %q does not name %s", err, word)
			}
		}
		if got := strings.Join(res.Finished, " "); got != "beside" {
			t.Errorf("finished siblings: %q, want beside, whose context is its own", got)
		}
	})
}

func TestScenario16CancelDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		b := dag.New[Tale]("patience")
		dag.Step(b, "a", w.sees(func(context.Context, *Tale) error { return errWeather })).
			With(dag.Policy{Attempts: 5, Backoff: dag.Constant(time.Hour)})
		d := process(t, frozen(t, b), &store, dispatcher.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)

		began := time.Now()
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "a")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call returned after %v, want one minute", took)
		}
		w.expect(t, "a")
	})
}

// Scenario 18: siblings of a node that fails finish, by default; nothing writes to the state
// after the call has returned.
func TestScenario18SiblingsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		late := make(chan *Tale, 1)
		fails := true
		b := dag.New[Tale]("siblings")
		one := dag.Step(b, "one", w.sees(func(context.Context, *Tale) error {
			if fails {
				return errWeather
			}
			return nil
		}))
		two := dag.Step(b, "two", w.sees(func(ctx context.Context, s *Tale) error {
			late <- s // a goroutine that the node leaves behind has it
			return heeds(ctx, time.Minute)
		}))
		dag.Step(b, "three", w.sees(nil), one, two)
		g := frozen(t, b)

		began := time.Now()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "one")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call returned after %v, want the minute that two needs", took)
		}
		(<-late).Word.Set("too late")
		fails = false
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "one", "two", "one#2", "three")
		says(t, res.State, "one", "two", "three")
		if res.State.Word.IsSet() {
			t.Errorf("a write after the end of a visit reached the state: %q", res.State.Word.Get())
		}
	})
}
