package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A behindItsDeadline is a context that is done a moment behind its deadline, as any may be on a
// busy machine.
type behindItsDeadline struct {
	context.Context
	at time.Time
}

func (c behindItsDeadline) Deadline() (time.Time, bool) { return c.at, true }

// What a connection returns at the deadline that it has from the context is an error behind the
// end, also if the context comes to know of it later: no attempt, and no failure.
func TestErrorAtTheDeadlineItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, cancel := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
		defer cancel()
		var attempts []int
		b := dag.New[Tale]("reads")
		dag.Step(b, "a", func(ctx context.Context, _ *Tale) error {
			if attempts = append(attempts, dag.Attempt(ctx)); len(attempts) > 1 {
				return nil
			}
			at, _ := ctx.Deadline()
			lasts(time.Until(at))
			return errors.New("i/o timeout")
		})
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(behindItsDeadline{done, time.Now().Add(time.Second)}, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "a")
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if len(attempts) != 2 || attempts[1] != 1 {
			t.Errorf("the attempts are %v, want the first one twice", attempts)
		}
	})
}
