package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A fall is a way in which a node fails, and what is told of it.
type fall struct {
	name   string
	policy dag.Policy
	body   part
	want   dag.Failure // without its path
}

var falls = []fall{
	{"error", dag.Policy{}, func(context.Context, *Tale) error { return errWeather }, dag.Failure{Attempts: 1, Kind: dag.FailedError, Message: "bad weather"}},
	{"attempts", dag.Policy{Attempts: 3}, func(ctx context.Context, _ *Tale) error {
		return fmt.Errorf("attempt %d: %w", dag.Attempt(ctx), errWeather)
	}, dag.Failure{Attempts: 3, Kind: dag.FailedError, Message: "attempt 3: bad weather"}},
	{"not worth it", dag.Policy{Attempts: 3, Retry: worthwhile}, func(context.Context, *Tale) error { return errBroken },
		dag.Failure{Attempts: 1, Kind: dag.FailedError, Message: "the bucket is broken"}},
	{"panic", dag.Policy{}, func(context.Context, *Tale) error { panic("smoke") }, dag.Failure{Attempts: 1, Kind: dag.FailedPanic, Message: "smoke"}},
	{"goexit", dag.Policy{}, func(context.Context, *Tale) error { runtime.Goexit(); return nil },
		dag.Failure{Attempts: 1, Kind: dag.FailedGoexit, Message: "called runtime.Goexit"}},
	{"timeout", dag.Policy{Timeout: time.Minute}, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) },
		dag.Failure{Attempts: 1, Kind: dag.FailedTimeout, Message: "context deadline exceeded"}},
	{"state", dag.Policy{}, func(_ context.Context, s *Tale) error { s.Word.Set("\xff"); return nil }, dag.Failure{Attempts: 1, Kind: dag.FailedState}},
}

// fallen returns a graph whose node "falls" fails: at the top, inside a Loop, or inside an
// Embed. rescue follows the failure of what holds it and notes what is told of it.
func fallen(t testing.TB, w *witness, f fall, place string, told *[]dag.Failure) *dag.Graph[Tale] {
	b, inner := dag.New[Tale]("top"), dag.New[Tale]("inner")
	at := inner
	if place == "top" {
		at = b
	}
	before := dag.Step(at, "before", w.sees(counts))
	falls := dag.Step(at, "falls", w.sees(func(ctx context.Context, s *Tale) error {
		s.Count.Add(100) // dropped with the draft
		if place == "loop" && visitPath(ctx) == "holder/1/falls" {
			return nil
		}
		return f.body(ctx, s)
	}), before).With(f.policy)
	var failed dag.Edge[Tale]
	switch place {
	case "top":
		failed = falls.Failed()
		dag.End(b, dag.Edge[Tale](falls))
	case "loop":
		l := dag.Loop(b, "holder", frozen(t, inner), func(*Tale) bool { return false }, 5)
		failed = l.Failed()
		dag.Step(b, "never", w.sees(nil), l)
	case "embed":
		e := dag.Embed(b, "holder", frozen(t, inner), func(_, _ *Tale) {}, func(from, to *Tale) { to.Count.Add(from.Count.Get()) })
		failed = e.Failed()
		dag.Step(b, "never", w.sees(nil), e)
	}
	dag.Step(b, "rescue", w.sees(func(ctx context.Context, _ *Tale) error {
		*told = dag.Failures(ctx)
		return nil
	}), failed)
	return frozen(t, b)
}

// A failure whose edge is followed: what failed is told to the follower, the same live and
// after a restart; what a Loop has finished is kept, an Embed gives nothing out.
func TestFailureEdge(t *testing.T) {
	for _, f := range falls {
		for _, c := range []struct {
			place, path string
			count       int // what is kept
		}{
			{"top", "falls", 1},
			{"loop", "holder/2/falls", 102}, // two iterations count, and one falls
			{"embed", "holder/falls", 0},
		} {
			t.Run(c.place+"/"+f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					var store memory.Store
					var live, later []dag.Failure
					res, err := process(t, fallen(t, &w, f, c.place, &live), &store, dispatcher.Options{}).Run(t.Context(), "live", nil)
					completes(t, res, err)
					f.want.Path = c.path
					if len(live) == 1 && f.want.Message == "" {
						f.want.Message = live[0].Message
					}
					if !slices.Equal(live, []dag.Failure{f.want}) {
						t.Errorf("the follower was told %+v, want %+v", live, f.want)
					}
					if n := res.State.Count.Get(); n != c.count {
						t.Errorf("the count is %d, want %d", n, c.count)
					}

					o := dispatcher.Options{InterruptBefore: []string{"rescue"}}
					res, err = process(t, fallen(t, &w, f, c.place, &later), &store, o).Run(t.Context(), run, nil)
					rests(t, res, err, checkpoint.StatusInterrupted, "rescue")
					if n := res.State.Count.Get(); n != c.count {
						t.Errorf("before the restart the count is %d, want %d", n, c.count)
					}
					w.took()
					res, err = process(t, fallen(t, &w, f, c.place, &later), &store, o).Resume(t.Context(), run)
					completes(t, res, err)
					w.expect(t, "rescue")
					if !slices.Equal(later, live) || res.State.Count.Get() != c.count {
						t.Errorf("after a restart the follower was told %+v, live %+v; the count is %d", later, live, res.State.Count.Get())
					}
				})
			})
		}
	}
}

// A fracture is a node that fails inside another one whose failure nobody follows.
type fracture struct {
	holder string // loop or embed
	path   string
	ran    []string
	again  []string
	count  int // outside, when the run is completed
}

var fractures = []fracture{
	{"loop", "holder/1/falls", []string{"holder/1/before", "holder/1/falls"},
		[]string{"holder/1/falls#2", "holder/2/before", "holder/2/falls", "last"}, 2},
	{"embed", "holder/falls", []string{"holder/before", "holder/falls"}, []string{"holder/falls#2", "last"}, 1},
}

// Without a failure edge the run fails, with a cursor that points inside; a resume goes on
// there, and nothing that the frame had finished is lost or run again.
func TestFailureInsideWithoutAnEdge(t *testing.T) {
	for _, f := range fractures {
		t.Run(f.holder, func(t *testing.T) {
			quiet(t)
			f.mend(t)
		})
	}
}

func (f fracture) mend(t *testing.T) {
	var w witness
	var store memory.Store
	inner, b := dag.New[Tale]("inner"), dag.New[Tale]("top")
	before := dag.Step(inner, "before", w.sees(counts))
	fails := true
	dag.Step(inner, "falls", w.sees(func(context.Context, *Tale) error {
		if fails {
			return errWeather
		}
		return nil
	}), before)
	var holder dag.Edge[Tale]
	if f.holder == "loop" {
		holder = dag.Loop(b, "holder", frozen(t, inner), func(s *Tale) bool { return s.Count.Get() == 2 }, 5)
	} else {
		holder = dag.Embed(b, "holder", frozen(t, inner), func(_, _ *Tale) {}, func(from, to *Tale) { to.Count.Add(from.Count.Get()) })
	}
	dag.Step(b, "last", w.sees(nil), holder)
	g := frozen(t, b)
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, f.path)
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) || failed.Path != f.path || !errors.Is(err, errWeather) {
		t.Errorf("the error is %v, want that of %s", err, f.path)
	}
	if n := res.State.Count.Get(); n != 0 {
		t.Errorf("outside the count is %d before the frame has ended", n)
	}
	w.expect(t, f.ran...)
	fails = false
	res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, f.again...)
	if n := res.State.Count.Get(); n != f.count {
		t.Errorf("at the end the count is %d, want %d", n, f.count)
	}
}

// Beside a visit that has failed whole frames go on until they settle or wait; no later
// superstep of its own frame, or of those above, begins.
func TestFailureLetsFramesBesideItGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		fails := true
		body, inner, b := dag.New[Tale]("body"), dag.New[Tale]("inner"), dag.New[Tale]("top")
		one := dag.Step(body, "one", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Second) }))
		dag.Step(body, "two", w.sees(counts), one)
		breaks := dag.Step(inner, "breaks", w.sees(func(context.Context, *Tale) error {
			if fails {
				return errWeather
			}
			return nil
		}))
		slow := dag.Step(inner, "slow", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }))
		dag.Step(inner, "later", w.sees(nil), breaks, slow)
		loop := dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 3 }, 5)
		house := dag.Embed(b, "house", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) {})
		dag.Step(b, "last", w.sees(nil), loop, house)
		g := frozen(t, b)

		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "house/breaks")
		w.expect(t, "house/breaks", "house/slow", "loop/1/one", "loop/1/two", "loop/2/one", "loop/2/two", "loop/3/one", "loop/3/two")
		if want := []string{"loop", "house/slow"}; !slices.Equal(res.Finished, want) {
			t.Errorf("finished: %q, want %q", res.Finished, want)
		}
		if res.Superstep != 0 || res.State.Count.Get() != 0 {
			t.Errorf("superstep %d has ended with %s", res.Superstep, asJSON(t, res.State))
		}
		fails = false
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "house/breaks#2", "house/later", "last")
		if res.State.Count.Get() != 3 {
			t.Errorf("the count is %d, want 3", res.State.Count.Get())
		}
	})
}

// Failure edges at two depths: the inner one is taken, the outer one isn't.
func TestFailureIsTakenWhereItIsFollowed(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	inner, b := dag.New[Tale]("inner"), dag.New[Tale]("top")
	falls := dag.Step(inner, "falls", w.sees(func(context.Context, *Tale) error { return errWeather }))
	dag.Step(inner, "rescue", w.sees(nil), falls.Failed())
	loop := dag.Loop(b, "loop", frozen(t, inner), func(*Tale) bool { return true }, 2)
	dag.Step(b, "outer", w.sees(nil), loop.Failed())
	dag.Step(b, "last", w.sees(nil), loop)
	res, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "loop/1/falls", "loop/1/rescue", "last")
	says(t, res.State, "loop/1/rescue", "last")
}
