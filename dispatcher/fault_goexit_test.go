package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An input function that blows up leaves no run behind.
func TestBlastInTheInput(t *testing.T) {
	for _, k := range blasts {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				d := process(t, powder(t, &w), &store, powderOptions)
				bomb.Store(&charge{"input", k.blast})
				defer bomb.Store(nil)
				input := func(*Powder) { blow("input") }

				res, err := d.Run(t.Context(), run, input)
				if err == nil || res.State == nil {
					t.Fatalf("the run returned %+v, %v", res, err)
				}
				blamed(t, err, "", "input", k.kind)
				if k.found != nil && !k.found(err) {
					t.Errorf("what was panicked with is not found in %v", err)
				}
				if _, err := d.State(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) {
					t.Errorf("a run was left behind: %v", err)
				}
				w.expect(t)
				bomb.Store(nil)
				res, err = d.Run(t.Context(), run, input)
				completes(t, res, err)
			})
		})
	}
}

// An observer that panics never touches the run. One that ends its goroutine ends the call,
// with an error that says so; the run is left behind as by a process that died.
func TestBlastInTheObserver(t *testing.T) {
	for _, k := range blasts {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				g := powder(t, &w)
				bomb.Store(&charge{"observer", k.blast})
				defer bomb.Store(nil)
				res, err := process(t, g, &store, powderOptions).Run(t.Context(), run, nil)
				if k.kind == dag.FailedGoexit {
					blamed(t, err, "", "observer", k.kind)
					bomb.Store(nil)
					res, err = process(t, g, &store, powderOptions).Run(t.Context(), run, nil)
				}
				completes(t, res, err)
				w.expect(t, append([]string(nil), burnt...)...)
			})
		})
	}
}

// Code that decides ends the goroutine of a run, and so does an observer that is told of it: what
// was decided is stated once, whether the observer does so once or each time.
func TestGoexitInAnObserverBehindADecision(t *testing.T) {
	for _, always := range []bool{false, true} {
		b := dag.New[Tale]("exits")
		body := dag.New[Tale]("body")
		dag.Step(body, "draft", nothing)
		var ends atomic.Bool
		dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool {
			if !ends.Load() {
				runtime.Goexit()
			}
			return true
		}, 2)
		g := frozen(t, b)
		var store memory.Store
		told := 0
		o := dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.AttemptFailed && !ends.Load() {
				if told++; always || told == 1 {
					runtime.Goexit()
				}
			}
		}}
		_, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || fault.Kind != "observer" || told != 1 {
			t.Errorf("always=%t: the observer was told %d times, and the call returned %v", always, told, err)
		}
		sameMachine(t, process(t, g, &store, dispatcher.Options{}), run)
		ends.Store(true)
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
	}
}

// The goroutine that looks after a run may be ended at any event, by an observer, or beside
// siblings by Policy.Retry: the siblings are waited for, and what is durable by then does not
// run again.
func TestGoexitBesideSiblings(t *testing.T) {
	for _, place := range []string{"observer", "retry"} {
		n := 1
		for ; !t.Failed(); n++ {
			more := false
			synctest.Test(t, func(t *testing.T) { more = exitAt(t, place, n) })
			if !more {
				break
			}
		}
		if n < 4 {
			t.Errorf("%s: only %d moments were tried", place, n-1)
		}
	}
}

// exitAt ends the goroutine at the n-th moment. It reports whether there was one.
func exitAt(t *testing.T, place string, n int) bool {
	var w witness
	var store memory.Store
	var moments atomic.Int64
	at := func(here string) {
		if here == place && moments.Add(1) == int64(n) {
			runtime.Goexit()
		}
	}
	b := dag.New[Tale]("beside")
	var all []dag.Edge[Tale]
	for i, name := range []string{"one", "two", "three"} {
		all = append(all, dag.Step(b, name, w.sees(func(ctx context.Context, _ *Tale) error {
			if err := heeds(ctx, time.Duration(i+1)*time.Second); err != nil || dag.Attempt(ctx) > 1 {
				return err
			}
			return errWeather
		})).With(dag.Policy{Attempts: 2, Retry: func(error) bool { at("retry"); return true }}))
	}
	dag.Step(b, "last", w.sees(nil), all...)
	g := frozen(t, b)
	o := dispatcher.Options{Observe: func(dispatcher.Event) { at("observer") }}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	if moments.Load() < int64(n) {
		completes(t, res, err)
		return false
	}
	if err == nil {
		t.Errorf("%s %d: the call returned no error", place, n)
	}
	w.took()
	done := kinds(readLog(t, &store), checkpoint.Done)
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	if res.Status != checkpoint.StatusCompleted || err != nil && !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("%s %d: the run is %s, %v", place, n, res.Status, err)
	}
	for _, name := range w.took() {
		if visit, _, _ := strings.Cut(name, "#"); slices.Contains(done, "done "+visit) {
			t.Errorf("%s %d: %s was durable and ran again", place, n, visit)
		}
	}
	return true
}
