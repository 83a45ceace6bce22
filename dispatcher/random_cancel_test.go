package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A cut cancels the context of a run at its event, or at the beginning of its body, number
// at.
type cut struct {
	at    int
	body  bool
	fails bool // the body returns the error of its context, and else does its work
}

func (k cut) String() string {
	if k.body {
		return fmt.Sprintf("cancelled in body %d, which fails: %t", k.at, k.fails)
	}
	return fmt.Sprintf("cancelled at event %d", k.at)
}

// Rule 10 and promise P8: a run that is cancelled at any moment and resumed ends as if it
// had not been.
func TestRandomGraphsSurviveCancels(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		r := rand.New(rand.NewPCG(c.seed, 4))
		step := 1 + r.IntN(cancelStride)
		for at := 1; c.cancelled(t, cut{at: at}); at += step {
		}
		for at := 1; c.cancelled(t, cut{at: at, body: true, fails: r.IntN(2) == 0}); at += step {
		}
	})
}

// cancelled runs the graph with the cut, resumes it until it ends, and reports whether the
// moment of the cut came.
func (c *randomCase) cancelled(t *testing.T, k cut) bool {
	t.Helper()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var moments atomic.Int32
	reached := func() bool { return int(moments.Add(1)) == k.at }
	var o dispatcher.Options
	b := &bench{run: runID}
	if k.body {
		b.body = func(ctx context.Context, _ string) error {
			if reached() {
				if cancel(cause); k.fails {
					return ctx.Err()
				}
			}
			return nil
		}
	} else {
		o.Observe = func(dispatcher.Event) {
			if reached() {
				cancel(cause)
			}
		}
	}
	var store memory.Store
	res, err := c.newDispatcher(t, &store, o).Run(b.context(ctx), runID, inputs)
	came := int(moments.Load()) >= k.at
	if res.Status == checkpoint.StatusCancelled {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("%v: the call returns %v", k, err)
		}
		c.resting(t, &store, k, res)
		b.body = nil
		res, err = c.newDispatcher(t, &store, dispatcher.Options{Lag: int(c.seed % 3)}).Run(b.context(t.Context()), runID, inputs)
	} else if came && restOf(res).status != c.want.status {
		t.Errorf("%v: the run is %s", k, res.Status)
	}
	sameRest(t, k.String(), res, err, c.want.rest())
	return came && !t.Failed()
}

// resting checks what a cancelled run says of itself: that it has something to go on
// with, and the same when it is read again.
func (c *randomCase) resting(t *testing.T, store checkpoint.Store, k cut, res *dispatcher.Result[cells]) {
	t.Helper()
	if len(res.Cursor.Visits) == 0 && !c.want.fault {
		t.Errorf("%v: nothing is left to do, and the run is not completed", k)
	}
	read, err := c.newDispatcher(t, store, dispatcher.Options{}).State(t.Context(), runID)
	if err != nil || restOf(read) != restOf(res) {
		t.Errorf("%v: the run is %v\nState reads %v (%v)", k, restOf(res), restOf(read), err)
	}
}
