package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eachOf returns a function items that returns n of them: item1, item2…
func eachOf(n int) func(*Tale) []string {
	return func(*Tale) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("item%d", i+1)
		}
		return list
	}
}

// An eachGauge counts the bodies that are in flight.
type eachGauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *eachGauge) begin() (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.most = max(g.most, g.now)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now--
	}
}

// Scenario 37: of six items with two places never more than two are in flight, and their
// results stand in the order of the items, whichever ends first.
func TestScenario37ItemsInOrderWithinTheWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var gauge eachGauge
		b := dag.New[Tale]("tale")
		review := dag.Each(b, "review", eachOf(6), func(ctx context.Context, s *Tale, item string) error {
			defer gauge.begin()()
			w.note(ctx)
			s.Said.Append(item)
			s.Count.Add(1)
			lasts(time.Duration('7'-item[4]) * time.Second) // later items are quicker
			return nil
		}).With(dag.Policy{Parallel: 2})
		dag.Step(b, "after", w.sees(nil), review)
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "item1", "item2", "item3", "item4", "item5", "item6", "after")
		if gauge.most != 2 {
			t.Errorf("%d bodies were in flight, want 2", gauge.most)
		}
		w.expect(t, "review/1", "review/2", "review/3", "review/4", "review/5", "review/6", "after")
	})
}

// Scenario 38: without items an Each ends Empty, and runs nothing.
func TestScenario38NoItems(t *testing.T) {
	t.Parallel()
	var w witness
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachOf(0), func(ctx context.Context, _ *Tale, _ string) error {
		w.note(ctx)
		return nil
	})
	dag.Step(b, "some", w.sees(nil), review.On(dag.Done))
	dag.Step(b, "none", w.sees(nil), review.On(dag.Empty))
	dag.Step(b, "any", w.sees(nil), review)
	store := new(memory.Store)
	res, err := process(t, frozen(t, b), store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "none", "any")
	w.expect(t, "none", "any")
	for _, e := range readLog(t, store) {
		if e.Path == "review" && e.Kind == checkpoint.Done && e.Outcome != string(dag.Empty) {
			t.Errorf("the Each is done with outcome %q", e.Outcome)
		}
	}
}

// Scenario 39: item 3 of 6 fails. A resume runs neither what is done nor anything twice.
func TestScenario39ResumeBehindAFailedItem(t *testing.T) {
	t.Parallel()
	var w witness
	broken := true
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachOf(6), func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		if item == "item3" && broken {
			return errors.New("torn page")
		}
		s.Said.Append(item)
		return nil
	}).With(dag.Policy{Parallel: 1})
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "review/3", "review/4", "review/5", "review/6")
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) || failed.Path != "review/3" || !strings.Contains(err.Error(), "torn page") {
		t.Errorf("the run failed with %v, want the failure of review/3", err)
	}
	if want := []string{"review/1", "review/2"}; !slices.Equal(res.Finished, want) {
		t.Errorf("finished %q, want %q", res.Finished, want)
	}
	w.expect(t, "review/1", "review/2", "review/3")
	broken = false
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "review/3#2", "review/4", "review/5", "review/6")
	says(t, res.State, "item1", "item2", "item3", "item4", "item5", "item6")
}

// Scenario 40: a run that stopped in the second of two fan-outs goes on in that one.
func TestScenario40TwoFanOuts(t *testing.T) {
	t.Parallel()
	var w witness
	broken := true
	body := func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		if broken && visitPath(ctx) == "second/2" {
			return errors.New("torn page")
		}
		s.Said.Append(visitPath(ctx))
		return nil
	}
	b := dag.New[Tale]("tale")
	first := dag.Each(b, "first", eachOf(3), body)
	dag.Each(b, "second", eachOf(3), body, first)
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	if w.took(); res.Status != checkpoint.StatusFailed {
		t.Fatalf("the run is %s: %v", res.Status, err)
	}
	cursor := res.Cursor.Visits
	if len(cursor) == 0 || slices.ContainsFunc(cursor, func(v string) bool { return !strings.HasPrefix(v, "second/") }) {
		t.Errorf("the cursor is %q, want items of the second", cursor)
	}
	broken = false
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "first/1", "first/2", "first/3", "second/1", "second/2", "second/3")
	for _, v := range w.took() {
		if !slices.Contains(cursor, strings.TrimSuffix(v, "#2")) {
			t.Errorf("%s ran again", v)
		}
	}
}

// Scenario 42: each of several payloads is a visit of its own that sees its own, and what
// they write merges in their order.
func TestScenario42EachSeesItsPayload(t *testing.T) {
	t.Parallel()
	var w witness
	leaf := dag.New[Tale]("leaf")
	dag.Step(leaf, "read", func(ctx context.Context, s *Tale) error {
		w.note(ctx)
		s.Word.Set(s.Word.Get() + "!")
		return nil
	})
	b := dag.New[Tale]("tale")
	dag.EachGraph(b, "send", eachOf(3), frozen(t, leaf),
		func(_ *Tale, item string, to *Tale) { to.Word.Set(item) },
		func(from *Tale, item string, to *Tale) {
			to.Said.Append(from.Word.Get())
			to.Notes.Put(item, from.Word.Get())
		})
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "item1!", "item2!", "item3!")
	w.expect(t, "send/1/read", "send/2/read", "send/3/read")
}

// Scenario 43: a graph of an item that ends at a dag.Fail, or panics, fails its item, and the
// failure is told to what follows.
func TestScenario43AFailingGraphOfAnItem(t *testing.T) {
	t.Parallel()
	leaf := dag.New[Tale]("leaf")
	way := dag.Route(leaf, "way", func(_ context.Context, s *Tale) (way, error) {
		switch s.Word.Get() {
		case "item2":
			return right, nil
		case "item3":
			panic("no such page")
		}
		return left, nil
	}, []way{left, right})
	dag.End(leaf, way.On(left))
	dag.Fail(leaf, "lost", way.On(right))
	b := dag.New[Tale]("tale")
	var told []dag.Failure
	send := dag.EachGraph(b, "send", eachOf(4), frozen(t, leaf),
		func(_ *Tale, item string, to *Tale) { to.Word.Set(item) },
		func(_ *Tale, item string, to *Tale) { to.Said.Append(item) },
	).With(dag.Policy{Errors: dag.Collect})
	dag.Step(b, "count", func(ctx context.Context, _ *Tale) error {
		told = dag.Failures(ctx)
		return nil
	}, send)
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "item1", "item4")
	want := []dag.Failure{
		{Path: "send/2/lost", Kind: dag.FailedEnd, Message: "reached the end lost"},
		{Path: "send/3/way", Attempts: 1, Kind: dag.FailedPanic, Message: "no such page"},
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %+v, want %+v", told, want)
	}
}
