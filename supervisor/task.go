package supervisor

import (
	"context"
	"errors"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A Task is a run that was submitted.
type Task[S any] struct {
	ticket *ticket
	read   func(context.Context) (*dispatcher.Result[S], error)
}

// Submit has d run a run when it is its turn, as d.Run does: it starts the run if there is
// none, goes on with one that is at rest or was left running, and ends no interrupt. key says
// whose turn it is; "" means the name of the graph. The run gets the values of ctx and not
// its end.
//
// If the run waits or is at work already, the task is the one that is there: input and
// options are not looked at, and both callers get one result, which neither may change; if
// it is there as a run of another graph, a [*RunError] wraps dispatcher.ErrBusy.
// ErrDraining if the supervisor drains, a [*QueueError] if too many runs wait; then nothing
// has happened.
func Submit[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string, input func(*S),
	options ...dispatcher.RunOption,
) (*Task[S], error) {
	return enter(ctx, s, d, key, run, joins,
		func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error) {
			return d.Run(ctx, run, input, append(options[:len(options):len(options)], drain)...)
		})
}

// Go is [Submit] for any call of d that works on the run: Start, Resume or Turn, say. call
// has to pass on its context and the option drain, and to return when d has. If the run
// waits or is at work already Go is refused, because what call would have done is not what
// is done there: a [*RunError] that wraps dispatcher.ErrBusy.
func Go[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string,
	call func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error),
) (*Task[S], error) {
	return enter(ctx, s, d, key, run, alone, call)
}

func enter[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string, how joining,
	call func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error),
) (*Task[S], error) {
	drain := dispatcher.Drain(s.drain)
	t, err := s.submit(ctx, run, d.Graph(), key, how, func(ctx context.Context) outcome {
		return outcomeOf(call(ctx, drain))
	})
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*dispatcher.Result[S], error) { return d.State(ctx, run) }
	return &Task[S]{t, read}, nil
}

// Continue goes on with a run that exists when it is its turn, whatever its graph is: after
// its interrupt was answered, say. It is like [Submit], but the result has no state.
// ErrUnknownGraph if no runner is of the run's graph, checkpoint.ErrNotFound if there is no
// such run.
func (s *Supervisor) Continue(
	ctx context.Context, key, run string, options ...dispatcher.RunOption,
) (*Task[struct{}], error) {
	info, err := s.store.Stat(ctx, run)
	if err != nil {
		return nil, err
	}
	t, err := s.resume(ctx, key, info, options, func(checkpoint.Status) bool { return false })
	if err != nil {
		return nil, err
	}
	return &Task[struct{}]{ticket: t}, nil
}

// resume has the runner of its graph go on with a run, unless its status is another one when
// it is its turn.
func (s *Supervisor) resume(
	ctx context.Context, key string, info checkpoint.Info, options []dispatcher.RunOption,
	unless func(checkpoint.Status) bool,
) (*ticket, error) {
	r := s.runners[info.Graph]
	if r == nil {
		return nil, &RunError{Run: info.Run, Graph: info.Graph, Err: ErrUnknownGraph}
	}
	all := append(options[:len(options):len(options)], dispatcher.Drain(s.drain))
	return s.submit(ctx, info.Run, info.Graph, key, joins, func(ctx context.Context) outcome {
		if now, err := s.store.Stat(ctx, info.Run); err == nil && unless(now.Status) {
			return outcome{status: now.Status}
		}
		return outcomeOf(r.Continue(ctx, info.Run, all...))
	})
}

// Run returns the run's id.
func (t *Task[S]) Run() string { return t.ticket.run }

// Done is closed when the work on the run is over, or will not begin.
func (t *Task[S]) Done() <-chan struct{} { return t.ticket.done }

// Wait waits until the work on the run is over, and returns what the call of the dispatcher
// has; ErrDraining if the run did not begin. If ctx ends first Wait returns its cause, and
// the run goes on, or goes on waiting: it is the supervisor's. The Result is never nil.
func (t *Task[S]) Wait(ctx context.Context) (*dispatcher.Result[S], error) {
	none := &dispatcher.Result[S]{Run: t.ticket.run, State: new(S)}
	select {
	case <-t.ticket.done:
	default:
		select {
		case <-t.ticket.done:
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
	out := t.ticket.out
	if res, ok := out.result.(*dispatcher.Result[S]); ok {
		return res, out.err
	}
	if out.result == nil || t.read == nil {
		none.Status = out.status
		return none, out.err
	}
	// The work was submitted by somebody who had no state, or another.
	res, err := t.read(ctx)
	if res == nil {
		res = none
	}
	return res, errors.Join(out.err, err)
}
