package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// rewindToEnd brings a run to its end, over the interrupts of interceptors and boundaries.
func (c *randomCase) rewindToEnd(t *testing.T, ctx context.Context, d *dispatcher.Dispatcher[cells], id string) (*dispatcher.Result[cells], error) {
	t.Helper()
	res, err := d.Run(ctx, id, inputs)
	for calls := 0; c.paused(restOf(res), interrupts(res)); calls++ {
		if calls > 1000 {
			t.Fatal("the run does not come to its end")
		}
		res, err = d.Resume(ctx, id)
	}
	return res, err
}

// sameMachine checks that the machine of a run is the one that a replay of its log gives.
func sameMachine[S any](t *testing.T, d *dispatcher.Dispatcher[S], id string) {
	t.Helper()
	at, err := dispatcher.MachineAt(t.Context(), d, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := dispatcher.Replayed(t.Context(), d, id, 0)
	if err != nil || string(at) != string(replayed) {
		t.Errorf("from a snapshot: %s\nfrom the start:  %s (%v)", at, replayed, err)
	}
}

// A run that is rewound to any of its checkpoints comes to where it came before, and what had
// finished at the checkpoint does not run again.
func TestRandomGraphsRewound(t *testing.T) {
	t.Parallel()
	n := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%80 != 0 { // a graph has many checkpoints
			return
		}
		store := mortal{snapshots: map[uint64][]byte{}}
		d := c.newDispatcher(t, &store, dispatcher.Eager(dispatcher.Options{}))
		b := &bench{run: runID}
		if _, err := c.rewindToEnd(t, b.context(t.Context()), d, runID); isRefusal(err) {
			t.Fatal(err)
		}
		var points []dispatcher.Checkpoint
		for p, err := range d.History(t.Context(), runID) {
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, p)
		}
		for i, p := range slices.Backward(points) {
			if err := d.Rewind(t.Context(), runID, p.Address(), dispatcher.RewindOptions{}); err != nil {
				t.Fatalf("%s: %v", p.Address(), err)
			}
			then, err := d.State(t.Context(), runID)
			if err != nil || then.Status != checkpoint.StatusPending || len(then.Interrupts) > 0 {
				t.Fatalf("%s: the rewound run is %s and waits for %v, %v", p.Address(), then.Status, then.Interrupts, err)
			}
			finished := slices.Clone(then.Finished)
			b := &bench{run: fmt.Sprintf("%s~%d", runID, len(points)-i), body: func(_ context.Context, path string) error {
				if slices.Contains(finished, path) && !c.want.voided {
					t.Errorf("%s: visit %s runs again, and had finished", p.Address(), path)
				}
				return nil
			}}
			res, err := c.rewindToEnd(t, b.context(t.Context()), d, runID)
			sameRest(t, "rewound to "+p.Address()+" "+p.String(), res, err, c.want.rest())
			sameMachine(t, d, runID)
			if t.Failed() {
				return
			}
		}
		sameSnapshots(t, d, runID, &store)
		samePast(t, runID, &store, 1+len(points), func() *dispatcher.Dispatcher[cells] {
			return c.newDispatcher(t, &store, dispatcher.Options{})
		})
	})
}

func isRefusal(err error) bool {
	var r *dispatcher.Rest
	return err != nil && !errors.As(err, &r)
}
