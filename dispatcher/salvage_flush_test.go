package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// A hoard is the state of Loops that keep more of what is finished in them than shares an append.
type hoard struct {
	A, B state.Fold[joined]
	Said state.List[string]
}

// hoards is a Loop that is followed when it fails, in which one fails in which something is
// finished.
func hoards(t *testing.T, finished time.Duration, more func(b *dag.Builder[hoard])) *dag.Graph[hoard] {
	part := joined{strings.Repeat("x", 2400<<10)}
	once := func(*hoard) bool { return true }
	inner := dag.New[hoard]("inner")
	dag.Step(inner, "ok", func(_ context.Context, s *hoard) error {
		lasts(finished) // lands behind what fails
		s.A.Merge(part)
		s.B.Merge(part)
		s.Said.Append("ok")
		return nil
	})
	dag.Each(inner, "each", func(s *hoard) []int { return make([]int, 2+s.Said.Len()) },
		func(context.Context, *hoard, int) error { return errWeather }).With(dag.Policy{Parallel: 1})
	body := dag.New[hoard]("body")
	dag.Loop(body, "inside", frozen(t, inner), once, 1)
	b := dag.New[hoard]("hoards")
	more(b)
	around := dag.Loop(b, "around", frozen(t, body), once, 1)
	dag.Step(b, "after", func(context.Context, *hoard) error { return nil }, around.Failed())
	return frozen(t, b)
}

func nothingMore(*dag.Builder[hoard]) {}

// An observer that ends its goroutine while a part of what failed Loops keep becomes durable breaks
// the call off, and what it was told of is in the log once.
func TestObserverExitsWhileLoopsKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, store, told := hoards(t, time.Second, nothingMore), new(narrowStore), 0
		_, err := process(t, g, store, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.SuperstepEnded && e.Path == "around/1/inside/1" {
				if told++; told == 1 {
					runtime.Goexit()
				}
			}
		}}).Run(t.Context(), run, nil)
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || fault.Kind != "observer" || told != 1 {
			t.Errorf("the call returns %v, and the observer was told %d times, want its own fault, once", err, told)
		}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if got := res.State.Said.Len(); got != 1 {
			t.Errorf("%d things are kept, want 1", got)
		}
	})
}

// A process that dies between the appends of what failed Loops keep leaves a run that goes on, also
// if an Each that failed in them would have other items by what was kept before.
func TestCrashWhileLoopsKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := hoards(t, time.Second, nothingMore)
		for n, died := 1, true; died; n++ {
			store := &pawltest.Mortal{Store: new(narrowStore)}
			store.DieAfter(n)
			res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if died = store.Died(); died {
				if err := store.Revive(t.Context()); err != nil {
					t.Fatal(err)
				}
				res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			}
			completes(t, res, err)
			if got := res.State.Said.Len(); got != 1 {
				t.Errorf("death after write %d: %d things are kept, want 1", n, got)
			}
		}
	})
}

// What is decided behind the appends of what failed Loops keep shares an append as far as a store
// takes it.
func TestManyLargeInputsBehindWhatLoopsKeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 2<<20)
		reads := dag.New[Tale]("reads")
		dag.Step(reads, "reads", func(context.Context, *Tale) error { return nil })
		item := dag.New[Tale]("item")
		first := dag.Step(item, "first", func(context.Context, *Tale) error {
			lasts(time.Second)
			return nil
		})
		dag.Embed(item, "large", frozen(t, reads), func(_, to *Tale) { to.Word.Set(large) }, func(*Tale, *Tale) {}, first)
		g := hoards(t, 2*time.Second, func(b *dag.Builder[hoard]) {
			dag.Step(b, "quick", func(context.Context, *hoard) error { return nil })
			dag.EachGraph(b, "each", func(*hoard) []int { return make([]int, 34) }, frozen(t, item), func(*hoard, int, *Tale) {}, func(*Tale, int, *hoard) {})
		})
		d := process(t, g, new(narrowStore), dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitDone && e.Path == "quick" {
				lasts(time.Minute) // all others have returned by then, and land together
			}
		}})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// What several interceptors ask before one visit is one append: of more than a visit may ask none
// is asked, and the visit is denied.
func TestSeveralLargeQuestionsBeforeAVisit(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 16<<20-64)
	var o dispatcher.Options
	for i := range 4 {
		o.Hooks.Intercept = append(o.Hooks.Intercept, dispatcher.Interceptor{Name: fmt.Sprint("asks", i),
			Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Ask(large) }})
	}
	b := dag.New[Tale]("asked")
	dag.Step(b, "visit", func(context.Context, *Tale) error { return nil })
	res, err := process(t, frozen(t, b), new(narrowStore), o).Run(t.Context(), run, nil)
	var failed *dispatcher.NodeError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &failed) || failed.Kind != dag.FailedDenied {
		t.Errorf("the run is %s: %.300v, want its visit denied", res.Status, err)
	}
}
