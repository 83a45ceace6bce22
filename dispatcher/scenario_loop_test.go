package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// counts adds one to the count.
func counts(_ context.Context, s *Tale) error {
	s.Count.Add(1)
	return nil
}

func TestScenario05LoopEndsAtFive(t *testing.T) {
	quiet(t)
	var w witness
	body := dag.New[Tale]("body")
	dag.Step(body, "count", w.sees(counts))
	b := dag.New[Tale]("counter")
	loop := dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 5 }, 100)
	dag.Step(b, "done", w.sees(nil), loop.On(dag.Done))
	dag.Step(b, "exhausted", w.sees(nil), loop.On(dag.Exhausted))
	var store memory.Store
	d := process(t, frozen(t, b), &store, dispatcher.Options{})

	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "loop/1/count", "loop/2/count", "loop/3/count", "loop/4/count", "loop/5/count", "done")
	if n := res.State.Count.Get(); n != 5 {
		t.Errorf("the count is %d, want 5", n)
	}
}

func TestScenario06LimitOfThreeSupersteps(t *testing.T) {
	quiet(t)
	var w witness
	body := dag.New[Tale]("body")
	dag.Step(body, "count", w.sees(counts))
	b := dag.New[Tale]("counter")
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 1000)
	g := frozen(t, b)
	var store memory.Store
	limits := dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 3}}

	res, err := process(t, g, &store, limits).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "loop/4/count")
	var limit *dispatcher.LimitError
	if !errors.As(err, &limit) || limit.Limit != "supersteps" || limit.Max != 3 {
		t.Errorf("the error is %v, want a LimitError of 3 supersteps", err)
	}
	w.expect(t, "loop/1/count", "loop/2/count", "loop/3/count")
	if voided := kinds(readLog(t, &store), checkpoint.Voided); len(voided) > 0 {
		t.Errorf("the limit voided %q, want nothing", voided)
	}
	for k := 1; k <= 3; k++ {
		at, err := process(t, g, &store, limits).At(t.Context(), run, fmt.Sprintf("loop/%d@1", k))
		if err != nil || at.State.Count.Get() != k {
			t.Errorf("the checkpoint of iteration %d counts %d, %v", k, at.State.Count.Get(), err)
		}
	}

	res, err = process(t, g, &store, limits).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "loop/4/count")
	w.expect(t)
	limits.Limits.Supersteps = 5
	res, err = process(t, g, &store, limits).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "loop/6/count")
	w.expect(t, "loop/4/count", "loop/5/count")
}

// The counter of attempts lives in the log: two failed attempts of three are two after a
// restart, inside a loop as well.
func TestScenario24RetryCounterInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		body := dag.New[Tale]("body")
		dag.Step(body, "try", w.sees(func(context.Context, *Tale) error { return errWeather })).
			With(dag.Policy{Attempts: 3, Backoff: dag.Constant(time.Minute)})
		b := dag.New[Tale]("tries")
		dag.Step(b, "first", w.sees(nil))
		dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 2)
		g := frozen(t, b)
		var store memory.Store

		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "loop/1/try")
		w.expect(t, "first", "loop/1/try", "loop/1/try#2")

		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "loop/1/try")
		w.expect(t, "loop/1/try#3")
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Attempt != 3 || !errors.Is(err, errWeather) {
			t.Errorf("the error is %v, want attempt 3 of loop/1/try", err)
		}
	})
}

// errWeather is what nodes fail with.
var errWeather = errors.New("bad weather")
