package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// Create makes a run durable, with its input, and runs nothing. A service can so acknowledge what
// it was asked for before doing it, and loses nothing if it dies in between. The run is Pending.
// Run, Resume and Continue begin it, in any process that has the store; so do a supervisor's
// Continue and its Recover. Create takes the options Settings, Labels and Correlation.
//
// If ctx is done already nothing is made, and the error wraps that of ctx and its cause. If ctx
// ends meanwhile Create returns within its grace period: nil if the run was made, and never a run
// that is Cancelled.
//
//   - ErrExists: there is such a run. So a caller who doesn't know whether an earlier call made it
//     finds out by calling again.
//   - ErrBusy alone: another call has the id and has made no run yet.
//   - [checkpoint.ErrCommitUnknown] and ErrStuck leave open whether the run was made.
//   - ErrNoStore: the dispatcher has no store.
//
// [Hooks] are called as by any call that opens a run; OnStart is called once more by the first call
// that goes on with it. What goes wrong in OnEnd only the observer is told.
func (d *Dispatcher[S]) Create(ctx context.Context, run string, input func(*S), options ...RunOption) error {
	return d.inside().create(ctx, run, erase(input), options)
}

// drained is the Drain of calls that run nothing.
var drained = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

func (c *core) create(ctx context.Context, id string, input func(any), options []RunOption) error {
	if err := c.calledFor(ctx, id); err != nil {
		return err
	}
	for _, o := range options {
		if o.wish != nil && !slices.Contains([]string{"Settings", "Labels", "Correlation"}, o.name) {
			return c.refuse(id, &OptionError{o.name, "is not for Create, which takes Settings, Labels and Correlation"})
		}
	}
	if ctx.Err() != nil {
		return c.refuse(id, fmt.Errorf("not created: %w", endOf(ctx)))
	}
	until, end := context.WithCancelCause(context.WithoutCancel(ctx))
	// The end of ctx ends the call, and does not cancel the run. Nobody waits for this: it is one
	// call, which is not made if Create returns first.
	defer context.AfterFunc(ctx, func() { end(fmt.Errorf("%w: %w", ErrDrain, sound(context.Cause(ctx)))) })()
	defer end(nil)
	_, err := c.run(until, id, modeStart, input, append(slices.Clip(options), Drain(drained)))
	return created(err)
}

// created is what Create returns of a drained start: a run that is Pending is what it is for.
func created(err error) error {
	if rest := (*Rest)(nil); errors.As(err, &rest) && rest.Status == checkpoint.StatusPending {
		return nil
	}
	return err
}

// returns is the error of the call that began the run's work as its caller gets it.
func (r *run) returns(err error) error {
	if r.drain == drained {
		return created(err)
	}
	return err
}
