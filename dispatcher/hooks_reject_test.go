package dispatcher_test

import (
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
	for name, c := range map[string]struct {
		options dispatcher.Options
		path    string
		ran     bool // the visit has run when it is rejected
	}{
		"before":            {dispatcher.Options{InterruptBefore: []string{"held"}}, "held", false},
		"asked":             {hookBefore([]string{"held"}, always(dispatcher.Ask("may it?"))), "held", false},
		"before, in a loop": {dispatcher.Options{InterruptBefore: []string{"rounds/turn"}}, "rounds/1/turn", false},
		"after, in a loop":  {dispatcher.Options{InterruptAfter: []string{"rounds/turn"}}, "rounds/1/turn", true},
		"before an item":    {dispatcher.Options{InterruptBefore: []string{"items/1"}}, "items/1", false},
		"after an embed":    {dispatcher.Options{InterruptAfter: []string{"house/room"}}, "house/room", true},
	} {
		t.Run(name, func(t *testing.T) { rejectedWhileFailed(t, c.options, c.path, c.ran) })
	}
}

func rejectedWhileFailed(t *testing.T, o dispatcher.Options, path string, ran bool) {
	quiet(t)
	var w witness
	var store memory.Store
	broken := true
	turn, room, b := dag.New[Tale]("turn"), dag.New[Tale]("room"), dag.New[Tale]("outer")
	dag.Step(turn, "turn", w.sees(nil))
	dag.Step(room, "room", w.sees(nil))
	bad := dag.Step(b, "bad", w.sees(func(context.Context, *Tale) error {
		if broken {
			return errWeather
		}
		return nil
	}))
	rounds := dag.Loop(b, "rounds", frozen(t, turn), func(*Tale) bool { return true }, 2)
	items := dag.Each(b, "items", eachOf(1), func(ctx context.Context, s *Tale, _ string) error { return w.sees(nil)(ctx, s) })
	house := dag.Embed(b, "house", frozen(t, room), func(_, _ *Tale) {}, func(_, _ *Tale) {})
	dag.Step(b, "last", w.sees(nil), bad, rounds, items, house, dag.Step(b, "held", w.sees(nil)))
	g := frozen(t, b)
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
