package dispatcher_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A refused call leaves nothing behind, not even the lease that it had for a moment.
func TestAmendRefusedChangesNothing(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := process(t, callsGraph(t, nothing[Tale]), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	unchanged(t, &store, run, func() {
		if err := d.Cancel(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrCompleted) {
			t.Errorf("the cancel of a completed run returned %v, want ErrCompleted", err)
		}
	})
	unchanged(t, &store, "nobody", func() {
		if err := d.Cancel(t.Context(), "nobody", nil); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("the cancel of no run returned %v, want ErrNotFound", err)
		}
	})
	res, err = d.Turn(t.Context(), run, nil) // the lease is free
	completes(t, res, err)
}
