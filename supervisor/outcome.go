package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// An outcome is how the work on a run has ended.
type outcome struct {
	result  any                         // a *dispatcher.Result[S]; nil if the run did not begin
	plain   dispatcher.Result[struct{}] // result without its state; what is known of it if there is none
	idle    bool                        // the run was not left running any more when its turn came
	stands  standing                    // if it is full
	head    uint64                      // of the run then
	further bool                        // than where it stood when it was held before
	silent  bool                        // it rests, and the call has written nothing; only where that matters (measure)
	err     error
}

func outcomeOf[S any](res *dispatcher.Result[S], err error) outcome {
	if res == nil {
		return outcome{err: err}
	}
	return outcome{result: res, plain: *withState(res, &struct{}{}), err: err}
}

// restsAs is the outcome of a run that was at rest when its turn came: of a cancelled one with who
// has cancelled it, and why, if r is a dispatcher, or checks options as one, and can tell. It
// returns false if the run has moved on meanwhile.
func restsAs(ctx context.Context, r Runner, now checkpoint.Info) (out outcome, stands bool) {
	if j, ok := r.(judge); ok && now.Status == checkpoint.StatusCancelled {
		leaves := []dispatcher.RunOption{
			dispatcher.UnlessCancelled(), dispatcher.From(checkpoint.Cursor{Run: now.Run, Seq: now.Head.Seq}),
		}
		if j.CheckOptions(leaves...) == nil {
			out = outcomeOf(r.Continue(ctx, now.Run, leaves...))
		}
	}
	if dispatcher.Moved(out.err) {
		return outcome{}, false
	}
	if !out.rested() || out.plain.Status != checkpoint.StatusCancelled {
		out = outcome{
			plain: dispatcher.Result[struct{}]{Run: now.Run, Status: now.Status},
			err:   &dispatcher.Rest{Run: now.Run, Status: now.Status},
		}
	}
	out.idle = true
	return out, true
}

// abandoned reports whether a node was, say, which has perhaps not returned.
func (o outcome) abandoned() bool { return len(o.plain.Abandoned) > 0 }

// rested reports whether an outcome is that of a run which rests, completed or not.
func (o outcome) rested() bool {
	var rest *dispatcher.Rest
	return o.err == nil || errors.As(o.err, &rest) && rest.Status.Resting()
}

// is reports whether the store, or the dispatcher, has refused the call with an error. What a node
// of a run that rests returned, or a hook, or Options.Revalidate, is of something else, whatever it
// wraps.
func (o outcome) is(refusal error) bool {
	var rest *dispatcher.Rest
	var fault *dispatcher.FaultError
	var stale *dispatcher.StaleError
	return errors.Is(o.err, refusal) &&
		!errors.As(o.err, &rest) && !errors.As(o.err, &fault) && !errors.As(o.err, &stale)
}

// full reports whether the store had no room for what a call had to write.
func (o outcome) full() bool { return o.is(checkpoint.ErrFull) }

// broken is the error of a call that panicked with p, or, if p is nil, ended its goroutine.
func broken(p any, stack []byte) error {
	e := &dispatcher.FaultError{Kind: "call", Message: "called runtime.Goexit", Stack: stack}
	if p != nil {
		e.Message = fmt.Sprintf("panic: %v", p)
		e.Err, _ = p.(error)
	}
	return e
}
