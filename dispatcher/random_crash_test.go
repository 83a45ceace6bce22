package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
)

// A drive brings a run to its end over any number of calls, as programs that are killed
// and started again do. It fails the test if a visit begins whose entry is durable, or if
// the attempts of a visit are not counted on.
type drive struct {
	c     *randomCase
	store *mortal
	opts  dispatcher.Options
	next  func(call int) (life int, written bool) // of the process that makes the call
	calls int
	also  func(ctx context.Context, path string) error // what bodies do as well; nil is nothing
}

func (d *drive) end(t *testing.T) (*dispatcher.Result[cells], error) {
	t.Helper()
	b := &bench{run: runID, body: func(ctx context.Context, path string) error {
		if d.store.isDone(path) {
			t.Errorf("call %d: visit %s runs again, and its entry is durable", d.calls, path)
		}
		if d.also != nil {
			return d.also(ctx, path)
		}
		return nil
	}}
	ctx := b.context(t.Context())
	interrupted := false
	for {
		life, written := d.next(d.calls)
		d.calls++
		if d.calls > 1000 {
			t.Fatalf("the run does not come to its end in %d calls", d.calls)
		}
		if err := d.store.revive(ctx, life, written); err != nil {
			t.Fatal(err)
		}
		p := d.c.newDispatcher(t, d.store, d.opts)
		var res *dispatcher.Result[cells]
		var err error
		if interrupted {
			res, err = p.Resume(ctx, runID)
		} else {
			res, err = p.Run(ctx, runID, inputs)
		}
		if d.store.died() {
			if interrupted = false; !errors.Is(err, errDead) {
				t.Fatalf("call %d: the store died, and the call returns %v", d.calls, err)
			}
			continue
		}
		if interrupted = d.c.paused(restOf(res), interrupts(res)); !interrupted {
			for _, wrong := range d.store.wrong {
				t.Error(wrong)
			}
			return res, err
		}
	}
}

// Promises P2, P3, P4 and P8: a run that is killed at any append, whether that became durable
// or not, ends as if it had not been, and does nothing again that was durable.
func TestRandomGraphsSurviveCrashes(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		for _, written := range []bool{false, true} {
			for k := 1; ; k++ {
				d := drive{c: c, store: new(mortal), next: func(call int) (int, bool) {
					if call == 0 {
						return k, written
					}
					return 0, false
				}}
				res, err := d.end(t)
				what := fmt.Sprintf("crash at append %d, written=%t", k, written)
				sameRest(t, what, res, err, c.want.rest())
				if d.calls == 1 || t.Failed() {
					diedOften(t, k-1, 1)
					break
				}
			}
		}
	})
}

// diedOften fails a test in which processes die at one append after the other, if too few did: then
// it has tried nothing.
func diedOften(t *testing.T, died, least int) {
	t.Helper()
	if died < least {
		t.Errorf("processes have died at %d appends, want %d or more", died, least)
	}
}

// A run whose processes all die after a few appends gets on all the same. The first append
// of a process may only say that it goes on, so each has at least two.
func TestRandomGraphsSurviveManyCrashes(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		r := rand.New(rand.NewPCG(c.seed, 2))
		d := drive{c: c, store: new(mortal), opts: dispatcher.Options{Paranoid: true, Lag: int(c.seed % 4)}}
		d.next = func(call int) (int, bool) { return 2 + r.IntN(3) + call/8, r.IntN(2) == 0 }
		res, err := d.end(t)
		sameRest(t, fmt.Sprintf("%d calls", d.calls), res, err, c.want.rest())
	})
}
