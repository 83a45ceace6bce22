package dispatcher_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What a person rejects while the run rests Failed, for a reason of its own, has failed when
// the run goes on: the resume renews what had failed before, and not the rejection. Only the
// next one overrules it.
func TestRejectedWhileFailed(t *testing.T) {
	for name, c := range rejectedPlaces() {
		t.Run(name, func(t *testing.T) { rejectedWhileFailed(t, c.options, c.path, c.ran) })
	}
}

// A rejectedPlace is where a person may reject something.
type rejectedPlace struct {
	options dispatcher.Options
	path    string
	ran     bool // the visit has run when it is rejected
}

func rejectedPlaces() map[string]rejectedPlace {
	return map[string]rejectedPlace{
		"before":            {dispatcher.Options{InterruptBefore: []string{"held"}}, "held", false},
		"asked":             {hookBefore([]string{"held"}, always(dispatcher.Ask("may it?"))), "held", false},
		"before, in a loop": {dispatcher.Options{InterruptBefore: []string{"rounds/turn"}}, "rounds/1/turn", false},
		"after, in a loop":  {dispatcher.Options{InterruptAfter: []string{"rounds/turn"}}, "rounds/1/turn", true},
		"before an item":    {dispatcher.Options{InterruptBefore: []string{"items/1"}}, "items/1", false},
		"after an embed":    {dispatcher.Options{InterruptAfter: []string{"house/room"}}, "house/room", true},
	}
}

// rejectedGraph is one of bad, which fails for as long as it is broken, beside one of each kind,
// and of last behind them all. Its nodes may have other names; more, behind last, is there if it
// has one.
func rejectedGraph(t testing.TB, w *witness, broken *bool, names map[string]string) *dag.Graph[Tale] {
	turn, room, b := dag.New[Tale]("turn"), dag.New[Tale]("room"), dag.New[Tale]("outer")
	dag.Step(turn, "turn", w.sees(nil))
	dag.Step(room, "room", w.sees(nil))
	called := func(name string) string { return cmp.Or(names[name], name) }
	bad := dag.Step(b, "bad", w.sees(func(context.Context, *Tale) error {
		if *broken {
			return errWeather
		}
		return nil
	}))
	rounds := dag.Loop(b, called("rounds"), frozen(t, turn), func(*Tale) bool { return true }, 2)
	items := dag.Each(b, called("items"), eachOf(1), func(ctx context.Context, s *Tale, _ string) error { return w.sees(nil)(ctx, s) })
	house := dag.Embed(b, called("house"), frozen(t, room), func(_, _ *Tale) {}, func(_, _ *Tale) {})
	last := dag.Step(b, "last", w.sees(nil), bad, rounds, items, house, dag.Step(b, called("held"), w.sees(nil)))
	if more := names["more"]; more != "" {
		dag.Step(b, more, w.sees(nil), last)
	}
	return frozen(t, b)
}

func rejectedWhileFailed(t *testing.T, o dispatcher.Options, path string, ran bool) {
	quiet(t)
	var w witness
	var store memory.Store
	broken := true
	g := rejectedGraph(t, &w, &broken, nil)
	first := []string{"bad", "rounds/1/turn", "items/1", "house/room", "held"}
	if !ran {
		first = slices.DeleteFunc(first, func(s string) bool { return s == path })
	}

	res, _ := process(t, g, &store, o).Run(t.Context(), run, nil)
	if res.Status != checkpoint.StatusFailed || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s, and waits for %v", res.Status, res.Interrupts)
	}
	w.expect(t, first...)
	if err := process(t, g, &store, o).Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	broken = false
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	var n *dispatcher.NodeError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &n) || n.Kind != dag.FailedRejected || n.Path != path {
		t.Fatalf("the run is %s at %q, %v, want %s rejected", res.Status, res.Cursor.Visits, err, path)
	}
	w.expect(t, "bad#2")

	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	if len(o.Hooks.Intercept) > 0 {
		rests(t, res, err, checkpoint.StatusInterrupted, path) // it is asked again
		w.expect(t)
		return
	}
	completes(t, res, err) // the rejection is overruled
	if ran {
		w.expect(t, "last")
	} else {
		w.expect(t, path, "last")
	}
}
