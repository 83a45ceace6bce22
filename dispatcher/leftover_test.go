package dispatcher_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A completed run leaves memory to the next one of its dispatcher, and nothing else: each is what
// the reference says, as if it was the first.
func TestRunsAfterAnother(t *testing.T) {
	eachCase(t, func(t *testing.T, c *randomCase) {
		var store memory.Store
		d := c.newDispatcher(t, &store, dispatcher.Options{})
		for i := range 4 {
			b := &bench{run: runID, spec: c.spec}
			res, err := d.Run(b.context(t.Context()), runID, inputs)
			sameRest(t, fmt.Sprintf("run %d", i), res, err, c.want.rest())
			if err := store.Delete(t.Context(), runID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What a node leaves behind knows of what visit it was, while later runs use what its run has left.
func TestLeftBehindInEarlierRuns(t *testing.T) {
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored=%t", stored), func(t *testing.T) {
			var behind sync.WaitGroup
			over := make(chan struct{})
			b := dag.New[Tale]("left-behind")
			body := func(ctx context.Context, _ *Tale) error {
				v := ctx.Value(dag.VisitKey{}).(dag.Visit)
				key := v.Key()
				behind.Go(func() { // ends when the runs have
					for {
						if got := v.Key(); got != key {
							t.Errorf("the visit of key %s says %s", key, got)
						}
						// It is done as long as the body has not returned, and refused behind that.
						_, _ = dag.Effect(ctx, "late", 1, func(context.Context, int) (int, error) { return 0, nil })
						_ = v.Emit("late", []byte("1"))
						select {
						case <-over:
							return
						default:
						}
					}
				})
				return nil
			}
			first := dag.Step(b, "first", body)
			dag.Step(b, "last", body, dag.Step(b, "a", body, first), dag.Step(b, "b", body, first))
			d := behindDispatcher(t, b, stored)
			for i := range 5 {
				if _, err := d.Start(t.Context(), fmt.Sprintf("run-%d", i), nil); err != nil {
					t.Error(err)
				}
			}
			close(over)
			behind.Wait()
		})
	}
}

func behindDispatcher(t *testing.T, b *dag.Builder[Tale], stored bool) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	if stored {
		// A gate is asked by whoever begins an effect, and is told what kind of node that is of.
		return callsDispatcher(t, frozen(t, b), new(memory.Store), dispatcher.Options{Gates: dispatcher.Gates{
			If: func(dispatcher.Action) (bool, error) { return false, nil },
		}})
	}
	return callsDispatcher(t, frozen(t, b), nil, dispatcher.Options{})
}
