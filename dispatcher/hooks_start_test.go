package dispatcher_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A hookLog notes which hooks were called, in order.
type hookLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *hookLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// took returns the lines since the last call.
func (l *hookLog) took() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *hookLog) expect(t testing.TB, want ...string) {
	t.Helper()
	if got := l.took(); !slices.Equal(got, want) {
		t.Errorf("hooks: %q, want %q", got, want)
	}
}

// ends are OnStart and OnEnd that note that they were called, and how the run stood.
func (l *hookLog) ends() dispatcher.Hooks {
	return dispatcher.Hooks{
		OnStart: func(_ context.Context, s dispatcher.Start) error {
			word := "opened"
			if s.Resumed {
				word = "resumed"
			}
			l.add("start %s turn %d: %s", s.Run, s.Turn, word)
			return nil
		},
		OnEnd: func(ctx context.Context, e dispatcher.End) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			line := fmt.Sprintf("end %s: %s", e.Run, e.Status)
			if len(e.Cursor.Visits) > 0 {
				line += " at " + strings.Join(e.Cursor.Visits, ",")
			}
			if len(e.Abandoned) > 0 {
				line += " without " + strings.Join(e.Abandoned, ",")
			}
			l.add("%s", line)
			return nil
		},
	}
}

// Scenario 44, and 10: the hooks at the ends of a run are called once each, whatever the
// way out; OnEnd when how the run rests is durable, and before anybody else can have it.
func TestScenario44HooksAtTheEnds(t *testing.T) {
	ask := func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "sure?")
		return err
	}
	minute := func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }
	for _, c := range []struct {
		name   string
		body   part
		fails  bool // the graph ends at a dag.Fail
		cancel error
		until  time.Duration // of the context
		limit  int
		tear   func(context.Context, call) error
		end    string
		kind   checkpoint.Kind // of the last entry
	}{
		{name: "completed", end: "completed", kind: checkpoint.Completed},
		{name: "failed", body: func(context.Context, *Tale) error { return errWeather }, end: "failed at b", kind: checkpoint.Failed},
		{name: "panic", body: func(context.Context, *Tale) error { panic(errWeather) }, end: "failed at b", kind: checkpoint.Failed},
		{name: "goexit", body: func(context.Context, *Tale) error { runtime.Goexit(); return nil }, end: "failed at b", kind: checkpoint.Failed},
		{name: "reached a fail", fails: true, end: "failed at ruin", kind: checkpoint.Failed},
		{name: "interrupted", body: ask, end: "interrupted at b", kind: checkpoint.Waiting},
		{name: "cancelled", body: minute, cancel: context.Canceled, end: "cancelled at b", kind: checkpoint.Cancelled},
		{name: "drained", body: minute, cancel: dispatcher.ErrDrain, end: "running at b", kind: checkpoint.Superstep},
		{name: "timed out", body: minute, until: time.Second, end: "timed_out at b", kind: checkpoint.TimedOut},
		{name: "limit", limit: 1, end: "failed at b", kind: checkpoint.Failed},
		{name: "store fails", tear: failsAt("Append", 2), end: "running", kind: checkpoint.Entered},
		{name: "store fails at once", tear: failsAt("Append", 1), end: "running"},
		{
			name: "abandoned", body: func(context.Context, *Tale) error { lasts(time.Hour); return nil },
			until: time.Second, end: "timed_out at b without b", kind: checkpoint.TimedOut,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var l hookLog
				inner := new(memory.Store)
				store := &tampered{Store: inner, before: c.tear}
				b := dag.New[Tale]("line")
				first := dag.Step(b, "a", w.sees(nil))
				second := dag.Step(b, "b", w.sees(c.body), first)
				if c.fails {
					dag.Fail(b, "ruin", second)
				}
				g := frozen(t, b)
				o := dispatcher.Options{Hooks: l.ends(), Limits: dispatcher.Limits{Supersteps: c.limit}}
				onEnd := o.Hooks.OnEnd
				o.Hooks.OnEnd = func(ctx context.Context, e dispatcher.End) error {
					log := readLogIf(t, inner)
					if c.kind != 0 && (len(log) == 0 || log[len(log)-1].Kind != c.kind) || c.kind == 0 && len(log) > 0 {
						t.Errorf("the log ends in %v, want %s", log, c.kind)
					}
					if _, err := process(t, g, inner, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
						t.Errorf("somebody else can have the run while OnEnd runs: %v", err)
					}
					return onEnd(ctx, e)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.until > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, c.until)
					defer stop()
				}
				if c.cancel != nil {
					time.AfterFunc(time.Second, func() { cancel(c.cancel) })
				}
				res, err := process(t, g, store, o).Run(ctx, run, nil)
				l.expect(t, "start tale turn 1: opened", "end tale: "+c.end)
				if len(res.Warnings) > 0 || (err == nil) != (c.end == "completed") {
					t.Errorf("the call returned %v, with the warnings %q", err, res.Warnings)
				}
				if !slices.Equal(res.Abandoned, map[bool][]string{true: {"b"}}[c.name == "abandoned"]) {
					t.Errorf("abandoned: %q", res.Abandoned)
				}
				lasts(2 * time.Hour) // for who was abandoned
			})
		})
	}
}

// failsAt fails the n-th call of a method.
func failsAt(method string, n int) func(context.Context, call) error {
	return func(_ context.Context, c call) error {
		if c.method == method && c.n == n {
			return errWeather
		}
		return nil
	}
}

// readLogIf is readLog for a run that may not be there.
func readLogIf(t testing.TB, store checkpoint.Store) []checkpoint.Entry {
	t.Helper()
	if info, err := store.Stat(context.Background(), run); errors.Is(err, checkpoint.ErrNotFound) || info.Head.Seq == 0 {
		return nil
	}
	return readLog(t, store)
}

// Hooks are called in each call in which the run is at work, and in no other.
func TestScenario44HooksOfEveryCall(t *testing.T) {
	quiet(t)
	var w witness
	var l hookLog
	var store memory.Store
	g := line(t, &w, func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "sure?")
		return err
	})
	d := process(t, g, &store, dispatcher.Options{Hooks: l.ends()})
	if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Fatal(err)
	}
	l.expect(t) // refused
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	l.expect(t, "start tale turn 1: opened", "end tale: interrupted at b")

	for _, again := range []func() (*dispatcher.Result[Tale], error){
		func() (*dispatcher.Result[Tale], error) { return d.Run(t.Context(), run, nil) },
		func() (*dispatcher.Result[Tale], error) { return d.Resume(t.Context(), run) },
	} {
		res, err = again()
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		l.expect(t) // everything that waits still does
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrExists) {
		t.Fatal(err)
	}
	stale := res.Cursor
	if _, err := d.Resume(t.Context(), run, dispatcher.From(stale)); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Fatal(err)
	}
	l.expect(t) // refused
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	l.expect(t, "start tale turn 1: resumed", "end tale: completed")
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	l.expect(t) // nothing to do
}

// A run that OnStart does not let begin is not opened, or stays as it was.
func TestScenario44OnStartRefuses(t *testing.T) {
	for name, refuse := range map[string]func() error{
		"error":  func() error { return errWeather },
		"panic":  func() error { panic(errWeather) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			var w witness
			var store memory.Store
			broken := false
			g := line(t, &w, func(ctx context.Context, _ *Tale) error {
				if broken {
					return nil
				}
				return errWeather
			})
			var l hookLog
			hooks := l.ends()
			hooks.OnStart = func(context.Context, dispatcher.Start) error { return refuse() }
			refusing := process(t, g, &store, dispatcher.Options{Hooks: hooks})
			allowing := process(t, g, &store, dispatcher.Options{})
			refused := func(err error) {
				t.Helper()
				var fault *dispatcher.FaultError
				if !errors.As(err, &fault) || fault.Kind != "hook" || !strings.Contains(err.Error(), "Hooks.OnStart") {
					t.Fatalf("the call returned %v, want a FaultError of kind hook", err)
				}
				if name != "goexit" && !errors.Is(err, errWeather) || name != "error" && len(fault.Stack) == 0 {
					t.Errorf("the error %v hides its cause, or its stack", err)
				}
			}

			res, err := refusing.Run(t.Context(), run, nil)
			refused(err)
			if _, err := allowing.State(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) || res.Status != "" {
				t.Errorf("a run was left behind: %v, %v", res.Status, err)
			}
			w.expect(t)

			res, err = allowing.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "b")
			w.expect(t, "a", "b")
			before := readLog(t, &store)
			res, err = refusing.Resume(t.Context(), run)
			refused(err)
			if res.Status != checkpoint.StatusFailed || !slices.Equal(res.Cursor.Visits, []string{"b"}) {
				t.Errorf("the result is of a run that is %s at %q", res.Status, res.Cursor.Visits)
			}
			if after := readLog(t, &store); len(after) != len(before) {
				t.Errorf("the log went from %d to %d entries", len(before), len(after))
			}
			w.expect(t)
			l.expect(t) // what has not begun does not end

			broken = true
			res, err = allowing.Resume(t.Context(), run)
			completes(t, res, err)
		})
	}
}

// What goes wrong in OnEnd is a warning, beside the result that the run has.
func TestScenario44OnEndFails(t *testing.T) {
	for name, end := range map[string]func() error{
		"error":  func() error { return errWeather },
		"panic":  func() error { panic(errWeather) },
		"goexit": func() error { runtime.Goexit(); return nil },
		"hang":   func() error { lasts(time.Hour); return errWeather },
	} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/cancelled=%t", name, cancelled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { warned(t, name, end, cancelled) })
			})
		}
	}
}

func warned(t *testing.T, name string, end func() error, cancelled bool) {
	var w witness
	var l hookLog
	var store memory.Store
	g := line(t, &w, func(ctx context.Context, _ *Tale) error {
		if cancelled {
			return heeds(ctx, time.Minute)
		}
		return nil
	})
	o := dispatcher.Options{
		Hooks: dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error { return end() }},
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.Warned || e.Kind == dispatcher.RunRested {
				l.add("%s", e.Kind)
			}
		},
	}
	d := process(t, g, &store, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	res, err := d.Run(ctx, run, nil)
	took := time.Since(began)

	if cancelled {
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		took -= time.Second
	} else {
		completes(t, res, err)
	}
	if len(res.Warnings) != 1 || !strings.HasPrefix(res.Warnings[0], "Hooks.OnEnd: ") {
		t.Errorf("warnings: %q, want one of OnEnd", res.Warnings)
	}
	if took > 5*time.Second || name != "hang" && took > 0 {
		t.Errorf("the call took %v beyond its context", took)
	}
	if name != "hang" {
		l.expect(t, "run rested", "warned")
		if len(res.Abandoned) > 0 {
			t.Errorf("abandoned: %q", res.Abandoned)
		}
		return
	}
	if !slices.Equal(res.Abandoned, []string{"Hooks.OnEnd"}) {
		t.Errorf("abandoned: %q, want OnEnd", res.Abandoned)
	}
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) {
		t.Errorf("a run beside it returned %v, want ErrStillRunning", err)
	}
	lasts(2 * time.Hour)
	end = func() error { return nil }
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if len(res.Warnings) > 0 {
		t.Errorf("warnings: %q", res.Warnings)
	}
}

// An OnEnd that returns soon after its context is done is waited for.
func TestOnEndObeysItsContext(t *testing.T) {
	for _, grace := range []time.Duration{20 * time.Millisecond, time.Second, 0} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/cancelled=%t", grace, cancelled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { obeysAtTheEnd(t, grace, cancelled) })
			})
		}
	}
}

func obeysAtTheEnd(t *testing.T, grace time.Duration, cancelled bool) {
	var w witness
	var store memory.Store
	g := line(t, &w, func(ctx context.Context, _ *Tale) error {
		if cancelled {
			return heeds(ctx, time.Minute)
		}
		return nil
	})
	d := process(t, g, &store, dispatcher.Options{Grace: grace, Hooks: dispatcher.Hooks{
		OnEnd: func(ctx context.Context, _ dispatcher.End) error {
			<-ctx.Done()
			lasts(time.Millisecond)
			return context.Cause(ctx)
		},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now()
	if cancelled {
		end = end.Add(time.Second)
	}
	res, err := d.Run(ctx, run, nil)
	if cancelled {
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
	} else {
		completes(t, res, err)
	}
	if want := []string{"Hooks.OnEnd: " + context.DeadlineExceeded.Error()}; !slices.Equal(res.Warnings, want) || len(res.Abandoned) > 0 {
		t.Errorf("warnings %q, abandoned %q, want the warnings %q alone", res.Warnings, res.Abandoned, want)
	}
	if took := time.Since(end); took > cmp.Or(grace, 5*time.Second) {
		t.Errorf("the call took %v beyond its end", took)
	}
}

// A call that was given up while OnStart hung calls OnEnd when OnStart returns: what the one
// has taken the other gives back.
func TestOnStartHangs(t *testing.T) {
	for _, failing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var l hookLog
			var store memory.Store
			hung := false
			hooks := l.ends()
			begin := hooks.OnStart
			hooks.OnStart = func(ctx context.Context, s dispatcher.Start) error {
				if hung {
					return begin(ctx, s)
				}
				hung = true
				lasts(time.Hour)
				if failing {
					return errWeather
				}
				return begin(ctx, s)
			}
			d := process(t, line(t, &w, nil), &store, dispatcher.Options{Hooks: hooks})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			end := time.Now().Add(time.Second)
			res, err := d.Run(ctx, run, nil)
			stuck(t, res, err, end, "Hooks.OnStart")
			l.expect(t)
			lasts(2 * time.Hour)
			if failing {
				l.expect(t)
			} else {
				l.expect(t, "start tale turn 1: opened", "end tale: running without Hooks.OnStart") // as the call has returned
			}
			if _, err := d.State(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) {
				t.Errorf("a run was left behind: %v", err)
			}
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
			l.expect(t, "start tale turn 1: opened", "end tale: completed")
		})
	}
}

// However a store hangs, OnEnd is called once for each OnStart, and the call returns in time.
func TestHooksOverAStoreThatHangs(t *testing.T) {
	for _, heeding := range []bool{false, true} {
		n := 1
		for ; !t.Failed(); n++ {
			more := false
			synctest.Test(t, func(t *testing.T) { more = hooksOverAHang(t, n, heeding) })
			if !more {
				break
			}
		}
		if n < 8 {
			t.Errorf("only %d calls of the store were tried", n-1)
		}
	}
}

func hooksOverAHang(t *testing.T, n int, heeding bool) (more bool) {
	var w witness
	var l hookLog
	var inner memory.Store
	var calls atomic.Int64
	free := make(chan struct{})
	store := &tampered{Store: &inner, before: hangsFrom(n, heeding, &calls, free)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(6 * time.Second)
	d := process(t, line(t, &w, nil), store, dispatcher.Options{Hooks: l.ends()})
	res, err := d.Run(ctx, run, nil)
	if late := time.Since(end); late > 0 {
		t.Errorf("call %d hangs: the run returned %v, %v late", n, err, late)
	}
	if calls.Load() < int64(n) {
		completes(t, res, err)
		return false
	}
	close(free)
	synctest.Wait()
	began, ended := 0, 0
	for _, line := range l.took() {
		if strings.HasPrefix(line, "start") {
			began++
		} else {
			ended++
		}
	}
	if began != ended || began > 1 {
		t.Errorf("call %d hangs: OnStart returned %d times, OnEnd was called %d times", n, began, ended)
	}
	return true
}

// An observer that hangs is not called beside itself to be told what went wrong in OnEnd, which has
// returned and is not abandoned.
func TestObserverHangsBesideOnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var l hookLog
		inside, now := make(chan struct{}, 1), make(chan struct{})
		close(now)
		d := process(t, line(t, &w, nil), new(memory.Store), dispatcher.Options{
			Grace: time.Second,
			Hooks: dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error { return errWeather }},
			Observe: func(e dispatcher.Event) {
				inside <- struct{}{}
				if e.Kind == dispatcher.RunRested {
					lasts(time.Minute)
				}
				l.add("%s", e.Kind)
				<-inside
			},
		})
		res, err := d.Run(t.Context(), run, nil, dispatcher.Drain(now))
		if !errors.Is(err, dispatcher.ErrDrain) || !slices.Equal(res.Abandoned, []string{"Options.Observe"}) {
			t.Errorf("Run = %v, and has abandoned %q, want the observer alone", err, res.Abandoned)
		}
		if want := []string{"Hooks.OnEnd: " + errWeather.Error()}; !slices.Equal(res.Warnings, want) {
			t.Errorf("warnings: %q, want %q", res.Warnings, want)
		}
		lasts(2 * time.Minute)
		l.expect(t, "appended", "run started", "run rested")
	})
}
