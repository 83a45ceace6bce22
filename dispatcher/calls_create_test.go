package dispatcher_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that is created is durable, with all that it was given, and nothing of it has begun. The
// next process begins it, once. A Create that is repeated says that it is there.
func TestCreateLeavesARunPending(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		ctx := t.Context()
		ran := 0
		g := callsTalk(t, func(context.Context, *Talk) error { ran++; return nil })
		labels := map[string]string{"tenant": "a"}
		first := callsDispatcher(t, g, store, o)
		err := first.Create(ctx, run, hear("one"), dispatcher.Labels(labels), dispatcher.Correlation("order 7"), dispatcher.Settings(5, "me"))
		if err != nil {
			t.Fatal(err)
		}
		superUnheld(t, store, checkpoint.StatusPending)
		if ran != 0 {
			t.Error("something of the run has begun")
		}
		if err := first.Create(ctx, run, hear("two")); !errors.Is(err, dispatcher.ErrExists) {
			t.Errorf("a second Create returns %v", err)
		}
		res, err := callsDispatcher(t, g, store, o).Run(ctx, run, hear("three"))
		completes(t, res, err)
		if heard := heardIn(res.State); !slices.Equal(heard, []string{"one"}) || ran != 1 {
			t.Errorf("the run has heard %q, and its last node ran %d times", heard, ran)
		}
		if !maps.Equal(res.Labels, labels) || res.Correlation != "order 7" || string(res.Settings) != "5" {
			t.Errorf("the run has %v, %q and %s", res.Labels, res.Correlation, res.Settings)
		}
		if err := first.Create(ctx, run, nil); !errors.Is(err, dispatcher.ErrExists) {
			t.Errorf("a Create behind its end returns %v", err)
		}
	})
}

// What Create refuses leaves nothing in the store.
func TestCreateRefusesWithoutATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		g := callsTalk(t, nil)
		d := process(t, g, &store, dispatcher.Options{})
		for _, option := range []dispatcher.RunOption{
			dispatcher.Drain(make(chan struct{})), dispatcher.From(checkpoint.Cursor{}), dispatcher.Expire("a"),
			dispatcher.OrStart(), dispatcher.Manual(), dispatcher.Answering("a", 1), dispatcher.Author("me"),
			dispatcher.Because("so"), dispatcher.Message("m"),
		} {
			var refused *dispatcher.OptionError
			err := d.Create(t.Context(), run, nil, option)
			if !errors.As(err, &refused) || refused.Option != option.Name() {
				t.Errorf("with %s: %v", option.Name(), err)
			}
		}
		ended, end := context.WithCancelCause(t.Context())
		end(errWeather)
		if err := d.Create(ended, run, nil); !errors.Is(err, errWeather) || !errors.Is(err, context.Canceled) {
			t.Errorf("under a context that is done: %v", err)
		}
		var fault *dispatcher.FaultError
		if err := d.Create(t.Context(), run, func(*Talk) { panic("no input") }); !errors.As(err, &fault) {
			t.Errorf("with input that panics: %v", err)
		}
		if err := d.Create(t.Context(), "", nil); !errors.Is(err, checkpoint.ErrRunID) {
			t.Errorf("without an id: %v", err)
		}
		if _, err := store.Stat(t.Context(), run); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("there is a run: %v", err)
		}
		if err := process(t, g, nil, dispatcher.Options{}).Create(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrNoStore) {
			t.Errorf("without a store: %v", err)
		}
	})
}

// Promise P6 for a Create: whatever call of the store hangs, it returns within the grace period
// behind the end of its context. The run is there or it is not; it is Pending, and never Cancelled.
func TestCreateOverAStoreThatHangs(t *testing.T) {
	const grace = 400 * time.Millisecond
	for _, heeding := range []bool{false, true} {
		n := 1
		for more := true; more && !t.Failed(); n++ {
			synctest.Test(t, func(t *testing.T) { more = createHangs(t, n, heeding, grace) })
		}
		if n < 4 {
			t.Errorf("only %d calls were tried", n-1)
		}
	}
}

// createHangs lets a store hang from call n of a Create on. It reports whether there was one.
func createHangs(t *testing.T, n int, heeding bool, grace time.Duration) bool {
	var inner memory.Store
	var calls atomic.Int64
	free := make(chan struct{})
	store := &tampered{Store: &inner, before: hangsFrom(n, heeding, &calls, free)}
	g := callsTalk(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	err := process(t, g, store, dispatcher.Options{Grace: grace}).Create(ctx, run, hear("one"))
	if took := time.Since(end); took > grace {
		t.Errorf("call %d: Create returned %v after the end of its context", n, took)
	}
	hung := calls.Load() >= int64(n)
	close(free)
	lasts(time.Hour)
	info, there := inner.Stat(t.Context(), run)
	switch {
	case err == nil && there != nil:
		t.Errorf("call %d: what was acknowledged is not there: %v", n, there)
	case there == nil && info.Status != checkpoint.StatusPending:
		t.Errorf("call %d: the run is %s behind %v", n, info.Status, err)
	case !hung && err != nil:
		t.Errorf("without a call that hangs: %v", err)
	}
	res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, hear("one"))
	completes(t, res, err)
	return hung
}

// Observers and hooks are told that a run which was created is Pending, and of no error: nothing
// was drained. A Start that was drained before anything began says both.
func TestCreateIsToldAsWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var rested []dispatcher.Event
		var ended []dispatcher.End
		d := process(t, callsTalk(t, nil), &store, dispatcher.Options{
			Observe: func(e dispatcher.Event) {
				if e.Kind == dispatcher.RunRested {
					rested = append(rested, e)
				}
			},
			Hooks: dispatcher.Hooks{OnEnd: func(_ context.Context, e dispatcher.End) error {
				ended = append(ended, e)
				return nil
			}},
		})
		told := func(call string, want error) {
			t.Helper()
			if len(rested) != 1 || len(ended) != 1 {
				t.Fatalf("%s is told %d times, and ends %d times", call, len(rested), len(ended))
			}
			e, end := rested[0], ended[0]
			if e.Status != checkpoint.StatusPending || !e.Live || (e.Cause == "") != (want == nil) || !errors.Is(e.Err, want) {
				t.Errorf("%s is told as %s, %s: %v", call, e.Status, e.Cause, e.Err)
			}
			if end.Status != checkpoint.StatusPending || !errors.Is(end.Err, want) {
				t.Errorf("%s ends as %s: %v", call, end.Status, end.Err)
			}
			rested, ended = nil, nil
		}
		if err := d.Create(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		told("Create", nil)
		now := make(chan struct{})
		close(now)
		_, err := d.Start(t.Context(), run+"-2", nil, dispatcher.Drain(now))
		if !errors.Is(err, dispatcher.ErrDrain) {
			t.Fatal(err)
		}
		told("Start", dispatcher.ErrDrain)
	})
}

// A Create or a Start of a run that is at work says that it exists, also in another process, or if
// an earlier call has left a node that does not return; and that it is busy. It is not advised to
// cancel it, since a request came twice.
func TestCreateBesideARunAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), new(memory.Store)
		ends := make(chan struct{})
		g := callsTalk(t, func(context.Context, *Talk) error { <-ends; return nil })
		d := process(t, g, store, dispatcher.Options{Grace: time.Second})
		exists := func(d *dispatcher.Dispatcher[Talk], also error, text string) {
			t.Helper()
			text = `dispatcher: run "tale": run exists` + text
			if err := d.Create(ctx, run, hear("one")); !errors.Is(err, dispatcher.ErrExists) || !errors.Is(err, also) || err.Error() != text {
				t.Errorf("Create = %v", err)
			}
			if _, err := d.Start(ctx, run, hear("one")); !errors.Is(err, dispatcher.ErrExists) || !errors.Is(err, also) || err.Error() != text {
				t.Errorf("Start = %v", err)
			}
		}
		if err := d.Create(ctx, run, hear("one")); err != nil {
			t.Fatal(err)
		}
		until, cancel := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = d.Run(until, run, nil)
		}()
		synctest.Wait()
		atWork := ", and is at work: State tells how it stands, and Events what comes of it"
		exists(d, dispatcher.ErrBusy, atWork)
		exists(process(t, g, store, dispatcher.Options{}), dispatcher.ErrBusy, atWork)
		cancel()
		<-over
		exists(d, dispatcher.ErrStillRunning, ", and what an earlier call abandoned has not returned: say")
		close(ends)
	})
}

// Of several calls that create a run at once one has made it, and the others know that they have
// not: it exists, or is being made.
func TestCreateBesideCreate(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsTalk(t, nil), store, o)
		results := make(chan error)
		for range 8 {
			go func() { results <- d.Create(t.Context(), run, hear("one")) }()
		}
		made := 0
		for range 8 {
			switch err := <-results; {
			case err == nil:
				made++
			case !errors.Is(err, dispatcher.ErrExists) && !errors.Is(err, dispatcher.ErrBusy):
				t.Errorf("Create = %v", err)
			}
		}
		if made != 1 {
			t.Errorf("%d calls have made the run", made)
		}
		superUnheld(t, store, checkpoint.StatusPending)
	})
}

// Hooks and the observer see a Create as a call that was drained before anything had begun.
func TestCreateToldToHooksAndObserver(t *testing.T) {
	var told []string
	d := process(t, callsTalk(t, nil), new(memory.Store), dispatcher.Options{
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.RunStarted || e.Kind == dispatcher.RunRested {
				told = append(told, e.Kind.String()+" "+string(e.Status))
			}
		},
		Hooks: dispatcher.Hooks{
			OnStart: func(context.Context, dispatcher.Start) error { told = append(told, "start"); return nil },
			OnEnd: func(_ context.Context, e dispatcher.End) error {
				told = append(told, "end "+string(e.Status))
				return nil
			},
		},
	})
	if err := d.Create(t.Context(), run, hear("one")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"start", "run started ", "run rested pending", "end pending"}; !slices.Equal(told, want) {
		t.Errorf("told were %q, want %q", told, want)
	}
}

// A hook that heeds its context is told why a Create ends.
func TestCreateEndsWithItsCauseInAHook(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	d := process(t, callsTalk(t, nil), new(memory.Store), dispatcher.Options{Hooks: dispatcher.Hooks{
		OnStart: func(at context.Context, _ dispatcher.Start) error {
			cancel(errWeather)
			<-at.Done()
			return context.Cause(at)
		},
	}})
	if err := d.Create(ctx, run, hear("one")); !errors.Is(err, errWeather) {
		t.Errorf("Create = %v", err)
	}
}

// A Create whose context ends while OnStart runs makes the run all the same, if that lets it: the
// run is Pending, and not cancelled by what was to end a call that runs nothing.
func TestCreateWhoseContextEndsIsNotCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	store := new(memory.Store)
	d := process(t, callsTalk(t, nil), store, dispatcher.Options{Hooks: dispatcher.Hooks{
		OnStart: func(at context.Context, _ dispatcher.Start) error {
			cancel(errWeather)
			<-at.Done()
			return nil
		},
	}})
	if err := d.Create(ctx, run, hear("one")); err != nil {
		t.Errorf("Create = %v", err)
	}
	superUnheld(t, store, checkpoint.StatusPending)
}
