package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that is drained again and again, at the beginning of some body in every call, runs
// each body as often as the reference does, and ends as it.
func TestRandomGraphsDrain(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		r := rand.New(rand.NewPCG(c.seed, 11))
		store := new(mortal)
		var mu sync.Mutex
		attempts, left, now := 0, 0, make(chan struct{})
		b := &bench{run: runID, body: func(_ context.Context, path string) error {
			mu.Lock()
			defer mu.Unlock()
			if store.isDone(path) {
				t.Errorf("visit %s runs again, and its entry is durable", path)
			}
			attempts++
			if left--; left == 0 {
				close(now)
			}
			return nil
		}}
		ctx := b.context(t.Context())
		interrupted := false
		for call := 1; ; call++ {
			d := c.newDispatcher(t, store, dispatcher.Options{Paranoid: call%2 == 0, Parallel: r.IntN(3)})
			left, now = 1+r.IntN(4), make(chan struct{})
			var res *dispatcher.Result[cells]
			var err error
			if interrupted {
				res, err = d.Resume(ctx, runID, dispatcher.Drain(now))
			} else {
				res, err = d.Run(ctx, runID, inputs, dispatcher.Drain(now))
			}
			if call > 1000 {
				t.Fatalf("the run does not come to its end in %d calls: %v", call, err)
			}
			if interrupted = false; errors.Is(err, dispatcher.ErrDrain) {
				if res.Status != checkpoint.StatusRunning {
					t.Fatalf("call %d: a run that was drained is %s", call, res.Status)
				}
				continue
			}
			if interrupted = c.paused(restOf(res), interrupts(res)); interrupted {
				continue
			}
			sameRest(t, fmt.Sprintf("%d calls", call), res, err, c.want.rest())
			if attempts != len(c.want.attempts) && len(c.want.timing) == 0 {
				t.Errorf("%d bodies ran, the reference has %d", attempts, len(c.want.attempts))
			}
			return
		}
	})
}
