package dispatcher_test

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A cancel that a Turn hears before or while its input is taken cancels that turn, and is drained
// once.
func TestCancelOfATurnBeforeItsInput(t *testing.T) {
	for _, when := range []string{"OnStart", "input"} {
		var store memory.Store
		cancels := func(at string) {
			if at == when {
				postCancelBy(t, &store, "1", "Ada")
			}
		}
		turn := false
		d := process(t, callsTalk(t, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error {
			if turn {
				cancels("OnStart")
			}
			return nil
		}}})
		if _, err := d.Run(t.Context(), run, hear("one")); err != nil {
			t.Fatal(err)
		}
		turn = true
		res, err := d.Turn(t.Context(), run, func(s *Talk) { cancels("input"); hear("two")(s) })
		if n := drainedBy(t, &store, "cancel:1"); n != 1 {
			t.Errorf("%s: %d entries drain the cancel, want one", when, n)
		}
		nothingIsPosted(t, &store)
		if res.Status != checkpoint.StatusCancelled {
			t.Errorf("%s: the run is %s: %v", when, res.Status, err)
		}
	}
}
