package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// lingers is a goroutine that a node leaves behind: it goes on asking, reading and writing
// after the visit has returned.
func lingers(ctx context.Context, t *testing.T, left *sync.WaitGroup, s *Tale) {
	left.Go(func() {
		for i := range 200 {
			lasts(time.Millisecond) // the visit has returned
			if _, err := dag.Ask[string](ctx, "late", "is anybody there?"); err == nil {
				t.Error("a question that nobody answered has an answer")
			}
			_, _, _ = dag.Failures(ctx), dag.Attempt(ctx), dag.Key(ctx)
			s.Word.Set(fmt.Sprint("late ", i))
		}
	})
}

// behind returns a graph whose failed attempts, and whose question, leave goroutines behind.
func behind(t *testing.T, w *witness, left *sync.WaitGroup) *dag.Graph[Tale] {
	b := dag.New[Tale]("behind")
	falls := dag.Step(b, "falls", w.sees(func(context.Context, *Tale) error { return errWeather }))
	tries := dag.Step(b, "tries", w.sees(func(ctx context.Context, s *Tale) error {
		if dag.Attempt(ctx) < 3 {
			lingers(ctx, t, left, s)
			return errWeather
		}
		return nil
	}), falls.Failed()).With(dag.Policy{Attempts: 3, Backoff: dag.Constant(10 * time.Millisecond)})
	asks := dag.Step(b, "asks", w.sees(func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?")
		if err != nil {
			lingers(ctx, t, left, s)
			return err
		}
		s.Notes.Put("answer", word)
		return nil
	}), tries)
	dag.Step(b, "works", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, 100*time.Millisecond) }), tries)
	dag.Step(b, "last", w.sees(nil), asks)
	return frozen(t, b)
}

// A goroutine that a node leaves behind changes nothing: in its own visit, in the next
// attempt, or in the run.
func TestGoroutineThatANodeLeavesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		var left sync.WaitGroup
		d := process(t, behind(t, &w, &left), &store, dispatcher.Options{})
		ended := make(chan ending, 1)
		go func() {
			res, err := d.Run(t.Context(), run, nil)
			ended <- ending{res: res, err: err}
		}()
		lasts(50 * time.Millisecond) // works goes on, and those that were left behind
		if err := d.Answer(t.Context(), run, asked(t, d), "this"); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		left.Wait()
		completes(t, e.res, e.err)
		if e.res.State.Word.IsSet() || notes(e.res.State)["answer"] != "this" {
			t.Errorf("the state is %s", asJSON(t, e.res.State))
		}
		if n := len(kinds(readLog(t, &store), checkpoint.Interrupted)); n != 1 {
			t.Errorf("%d questions were asked, want the one", n)
		}
	})
}

// Attempts, interrupts and failures of one visit do not begin it anew: the pause before it is
// taken once.
func TestInterruptBeforeIsTakenOncePerVisit(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("once")
	calls := 0
	dag.Step(b, "tries", w.sees(func(ctx context.Context, _ *Tale) error {
		if calls++; calls < 6 {
			return errWeather
		}
		_, err := dag.Ask[bool](ctx, "sure", "sure?")
		return err
	})).With(dag.Policy{Attempts: 2})
	g := frozen(t, b)
	o := dispatcher.Options{InterruptBefore: []string{"tries"}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "tries")
	w.expect(t)
	for range 2 {
		res, err = process(t, g, &store, o).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "tries")
	}
	w.expect(t, "tries", "tries#2", "tries#3", "tries#4")
	d := process(t, g, &store, o)
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "tries")
	if len(res.Interrupts) != 1 || res.Interrupts[0].Kind != dispatcher.KindAsked {
		t.Fatalf("the interrupts are %+v, want the question", res.Interrupts)
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// A rejection is a failure that can be followed: before a visit, by the visit's own edge;
// after one, by the edge of what holds it.
func TestRejectionIsFollowed(t *testing.T) {
	for _, after := range []bool{false, true} {
		quiet(t)
		var w witness
		var store memory.Store
		var told []dag.Failure
		inner, b := dag.New[Tale]("inner"), dag.New[Tale]("top")
		dag.Step(inner, "held", w.sees(counts))
		holder := dag.Loop(b, "holder", frozen(t, inner), func(*Tale) bool { return false }, 3)
		dag.Step(b, "rescue", w.sees(func(ctx context.Context, _ *Tale) error { told = dag.Failures(ctx); return nil }), holder.Failed())
		dag.End(b, dag.Edge[Tale](holder))
		g := frozen(t, b)
		o, count := dispatcher.Options{InterruptBefore: []string{"holder/2/held"}}, 1
		if after {
			o, count = dispatcher.Options{InterruptAfter: []string{"holder/2/held"}}, 2
		}
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "holder/2/held")
		d := process(t, g, &store, o)
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
			t.Fatal(err)
		}
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		if len(told) != 1 || told[0].Kind != dag.FailedRejected || told[0].Path != "holder/2/held" {
			t.Errorf("the follower was told %+v", told)
		}
		if n := res.State.Count.Get(); n != count {
			t.Errorf("the count is %d, want %d", n, count)
		}
		if err := d.Answer(t.Context(), run, "again", dispatcher.Approve); !errors.Is(err, dispatcher.ErrNotAwaited) && !errors.Is(err, dispatcher.ErrCompleted) {
			t.Errorf("an answer to a completed run returned %v", err)
		}
	}
}

// Many runs at once, of one dispatcher over one store, don't know of each other.
func TestManyRunsAtOnce(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, nest(t, &w, nil), &store, dispatcher.Options{Parallel: 7})
	const n = 100
	type end struct {
		id string
		ending
	}
	ends := make(chan end, n)
	for i := range n {
		go func() {
			id := fmt.Sprint("run ", i)
			res, err := d.Run(t.Context(), id, func(s *Tale) { s.Word.Set(id) })
			ends <- end{id, ending{res: res, err: err}}
		}()
	}
	for range n {
		e := <-ends
		completes(t, e.res, e.err)
		if got := e.res.State.Word.Get(); got != e.id || !slices.Equal(e.res.State.Said.Slice(), nested) {
			t.Errorf("%s has the state %s", e.id, asJSON(t, e.res.State))
		}
	}
}
