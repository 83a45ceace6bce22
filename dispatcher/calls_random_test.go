package dispatcher_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// Promises P2, P3 and P8 over turns of random graphs: three inputs, each given when the run
// is completed, end in the same state and at the same superstep however often processes die
// in between.
func TestRandomGraphsInTurns(t *testing.T) {
	t.Parallel()
	turns := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if c.seed%10 != 0 {
			return
		}
		want, last := c.inTurns(t, func(int) (int, bool) { return 0, false })
		turns += last
		r := rand.New(rand.NewPCG(c.seed, 3))
		got, _ := c.inTurns(t, func(call int) (int, bool) { return 2 + r.IntN(4) + call/8, r.IntN(2) == 0 })
		if got != want {
			t.Errorf("with crashes: %s\nwithout: %s", got, want)
		}
	})
	if cases, _ := randomCases(); turns < len(cases)/8 {
		t.Errorf("%d turns of %d graphs", turns, len(cases)/10)
	}
}

// inTurns gives a run three inputs, in processes that die as next says, and tells where it
// stands then, and in which turn.
func (c *randomCase) inTurns(t *testing.T, next func(call int) (life int, written bool)) (string, int) {
	t.Helper()
	store := new(mortal)
	ctx := (&bench{run: runID}).context(t.Context())
	for call := 0; ; call++ {
		if call > 1000 {
			t.Fatal("the run does not come to its end")
		}
		life, written := next(call)
		if err := store.revive(ctx, life, written); err != nil {
			t.Fatal(err)
		}
		d := c.newDispatcher(t, store, dispatcher.Options{Paranoid: call%2 == 0})
		res, err := d.Run(ctx, runID, inputs)
		for err == nil && res.Turn < 3 {
			res, err = d.Turn(ctx, runID, inputs)
		}
		if store.died() {
			if !errors.Is(err, errDead) {
				t.Fatalf("call %d: the store died, and the call returns %v", call, err)
			}
			continue
		}
		if res.Status != checkpoint.StatusCompleted && res.Status != checkpoint.StatusFailed {
			t.Fatalf("call %d: the run is %s: %v", call, res.Status, err)
		}
		return fmt.Sprintf("turn %d, superstep %d: %v", res.Turn, res.Superstep, restOf(res)), res.Turn
	}
}
