package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// forkEffects are what the visits of a random graph do outside, as effectBank.body, but so that
// forks can compare what they return: it says nothing of the run.
func forkEffects(done *atomic.Int32) func(context.Context, string) error {
	return func(ctx context.Context, visit string) error {
		for i := range len(visit) % 3 {
			got, err := dag.Effect(ctx, fmt.Sprint("thing ", i), visit, func(_ context.Context, visit string) (string, error) {
				done.Add(1)
				return strings.ToUpper(visit), nil
			})
			if err != nil {
				return err
			}
			if got != strings.ToUpper(visit) {
				return fmt.Errorf("the effect of %s returned %q", visit, got)
			}
		}
		return nil
	}
}

// A fork of a run at any of its checkpoints comes to where the run came, and nothing happens
// outside: every effect that it needs is one that the run has done. It is killed at any of its
// appends, and its log is read by way of snapshots and without.
func TestRandomGraphsForked(t *testing.T) {
	t.Parallel()
	n := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%80 != 1 { // a graph has many checkpoints
			return
		}
		var done atomic.Int32
		store := new(mortal)
		d := c.newDispatcher(t, store, dispatcher.Options{})
		b := &bench{run: runID, body: forkEffects(&done)}
		if _, err := c.rewindToEnd(t, b.context(t.Context()), d, runID); isRefusal(err) {
			t.Fatal(err)
		}
		points := []string{"0", ""}
		for p, err := range d.History(t.Context(), runID) {
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, p.Address())
		}
		before := kept(t, store, runID)
		did := done.Load()
		for i, at := range points {
			c.forksAlike(t, d, store, at, 1+i%5, &done)
			if t.Failed() {
				return
			}
		}
		if !slices.Equal(before, kept(t, store, runID)) || did != done.Load() {
			t.Errorf("the forks changed the run, or did %d effects", done.Load()-did)
		}
	})
}

// forksAlike forks a run at a checkpoint, and has the fork killed after some appends.
func (c *randomCase) forksAlike(t *testing.T, d *dispatcher.Dispatcher[cells], store *mortal, at string, life int, done *atomic.Int32) {
	t.Helper()
	ids, err := d.Fork(t.Context(), runID, at, dispatcher.ForkOptions[cells]{})
	if err != nil || len(ids) != 1 {
		t.Fatalf("the fork at %q is %q, %v", at, ids, err)
	}
	id := ids[0]
	then, err := d.State(t.Context(), id)
	if err != nil || then.Status != checkpoint.StatusPending || len(then.Interrupts) > 0 || then.Cursor.Seq != 1 {
		t.Fatalf("the fork at %q is %s at %s and waits for %v, %v", at, then.Status, then.Cursor, then.Interrupts, err)
	}
	works := forkEffects(done)
	b := &bench{run: id, body: func(ctx context.Context, path string) error {
		if slices.Contains(then.Finished, path) && !c.want.voided {
			t.Errorf("fork at %q: visit %s runs again, and had finished", at, path)
		}
		return works(ctx, path)
	}}
	ctx := b.context(t.Context())
	if err := store.revive(ctx, life, life%2 == 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.rewindToEnd(t, ctx, d, id); !store.died() && isRefusal(err) {
		t.Fatal(err)
	}
	if err := store.revive(ctx, 0, false); err != nil {
		t.Fatal(err)
	}
	d = c.newDispatcher(t, store, dispatcher.Eager(dispatcher.Options{Paranoid: true}))
	res, err := c.rewindToEnd(t, ctx, d, id)
	sameRest(t, fmt.Sprintf("fork at %q, killed at append %d", at, life), res, err, c.want.rest())
	sameMachine(t, d, id)
	samePast(t, id, store, 13, func() *dispatcher.Dispatcher[cells] {
		return c.newDispatcher(t, store, dispatcher.Options{})
	})
}
