package dispatcher_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What is asked about a run is told whose it is: hooks, interceptors and InterruptIf get the whole
// of it, in a call that opens the run and in one that goes on with it.
func TestWhoIsAskedIsToldAll(t *testing.T) {
	quiet(t)
	var w witness
	g := migrateSpin(t, &w, "spin", "loop", "draft")
	labels := map[string]string{"tenant": "a b", "empty": ""}
	var starts []dispatcher.Start
	var ends []dispatcher.End
	var calls []dispatcher.Call
	var bounds []dispatcher.Boundary
	seen := func(c dispatcher.Call) {
		if c.State == nil {
			t.Errorf("%s: there is no state", c.Path)
		}
		c.State = nil
		calls = append(calls, c)
	}
	o := dispatcher.Options{InterruptBefore: []string{"loop/1/draft"}}
	o.InterruptIf = func(b dispatcher.Boundary) bool { bounds = append(bounds, b); return false }
	o.Hooks = dispatcher.Hooks{
		OnStart: func(_ context.Context, s dispatcher.Start) error { starts = append(starts, s); return nil },
		OnEnd:   func(_ context.Context, e dispatcher.End) error { ends = append(ends, e); return nil },
		Intercept: []dispatcher.Interceptor{{
			Nodes:  []string{"loop/draft"},
			Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling { seen(c); return dispatcher.Continue() },
			After: func(_ context.Context, c dispatcher.Call, _ []string) dispatcher.Change {
				seen(c)
				return dispatcher.Keep()
			},
		}},
	}
	d := process(t, g, new(memory.Store), o)
	first, stopped := d.Run(t.Context(), run, nil, dispatcher.Labels(labels), dispatcher.Correlation("order 7"))
	rests(t, first, stopped, checkpoint.StatusInterrupted, "loop/1/draft")
	last, err := d.Resume(t.Context(), run)
	completes(t, last, err)

	start := dispatcher.Start{Run: run, Graph: "spin", Turn: 1, Correlation: "order 7", Labels: labels}
	resumed := start
	resumed.Resumed = true
	end := dispatcher.End{Run: run, Graph: "spin", Turn: 1, Correlation: "order 7", Labels: labels}
	held, over := end, end
	held.Status, held.Cursor, held.Err = checkpoint.StatusInterrupted, first.Cursor, stopped
	over.Status, over.Cursor = checkpoint.StatusCompleted, last.Cursor
	draft := func(path string) dispatcher.Call {
		return dispatcher.Call{Run: run, Graph: "spin", Turn: 1, Labels: maps.Clone(labels), Path: path, Node: "loop/draft", Kind: dag.KindStep, Attempt: 1}
	}
	bound := func(path, node string, after bool) dispatcher.Boundary {
		return dispatcher.Boundary{Run: run, Path: path, Node: node, After: after}
	}
	for what, c := range map[string]struct{ got, want any }{
		"OnStart":   {starts, []dispatcher.Start{start, resumed}},
		"OnEnd":     {ends, []dispatcher.End{held, over}},
		"Intercept": {calls, []dispatcher.Call{draft("loop/1/draft"), draft("loop/1/draft"), draft("loop/2/draft"), draft("loop/2/draft")}},
		"InterruptIf": {bounds, []dispatcher.Boundary{
			bound("begin", "begin", false), bound("begin", "begin", true), bound("loop", "loop", false),
			bound("loop/1/draft", "loop/draft", true),
			bound("loop/2/draft", "loop/draft", false), bound("loop/2/draft", "loop/draft", true),
			bound("loop", "loop", true), bound("end", "end", false), bound("end", "end", true),
		}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s is told\n%+v, want\n%+v", what, c.got, c.want)
		}
	}
}

// A question that is over in more time than a duration can say tells when it was asked.
func TestAskThatWaitsForAgesTellsWhenItWasAsked(t *testing.T) {
	quiet(t)
	now, ages := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)
	for until, want := range map[time.Time]time.Time{ages: now, now.Add(time.Hour): {}} {
		b := dag.New[Tale]("ages")
		dag.Step(b, "only", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[bool](ctx, "k", "?", dag.Until(until))
			return err
		})
		var store memory.Store
		o := dispatcher.WithNow(dispatcher.Options{}, func() time.Time { return now })
		res, err := process(t, frozen(t, b), &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
		read, _ := process(t, frozen(t, b), &store, o).State(t.Context(), run)
		for _, res := range []*dispatcher.Result[Tale]{res, read} {
			if len(res.Interrupts) != 1 || !res.Interrupts[0].Asked.Equal(want) || !res.Interrupts[0].Until.Equal(until) {
				t.Errorf("until %v: %+v, want it asked at %v", until, res.Interrupts, want)
			}
		}
	}
}
