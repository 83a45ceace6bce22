package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A Task is a run that was submitted. The nil Task, which a refused submission returns, and the
// zero Task are of no run: they are done, and Wait says so.
type Task[S any] struct {
	s      *Supervisor
	ticket *ticket
	read   func(context.Context) (*dispatcher.Result[S], error)
}

// Submit has d run a run when it is its turn, as d.Run does: it starts the run if there is none,
// goes on with one that is at rest or was left running, and ends no interrupt. key says whose turn
// it is; "" means the name of the graph. The run gets the values of ctx and not its end.
//
// The run is in memory alone until it begins: if the process dies before, the run is lost, with its
// input. Whoever has to keep it makes it durable first. The package doc says how, and how runs wait
// while the store has no room.
//
// If the run waits or is at work already, the task joins it. Its input and options are not looked
// at, and all who have joined the run share one result, which nobody may change. A run that is
// cancelled while it waits for its turn is gone on with; Continue leaves it.
//
// Who joins a run at work may have answered it, or enqueued input, too late for its call. So the
// run is gone on with once more for those who have joined it at work in these cases:
//
//   - It came to be interrupted: it may be answered by now.
//   - It is completed, and input waits for it behind its call.
//   - It is completed, and they joined it when its call had returned.
//   - It was deleted, and its call did not find it: Submit begins it.
//
// That call has the input and options of the first of them, but for a From of before the call that
// they joined. It is not made, and all get the one result, if something that was abandoned holds
// the run, or if the supervisor drains.
//
// So input that was enqueued (dispatcher.Dispatcher.Enqueue) before its run is submitted, or
// continued, is taken before the task is done with a completed run. That holds however late the
// call is: also in its OnEnd, and while the run is trimmed (dispatcher.Options.Retention).
//
// With an error nothing has happened:
//
//   - ErrDraining if the supervisor drains;
//   - a [*QueueError] if too many runs wait;
//   - a [*RunError] that wraps ErrOtherStore if d has not the supervisor's store;
//   - a [*RunError] that wraps dispatcher.ErrBusy if the run waits or is at work as one of another
//     graph;
//   - a [*RunError] that wraps what d refuses the options with whatever the run is, as of Labels
//     that can't be;
//   - an [*OptionError] if ctx, s or d is nil;
//   - an [*OptionError] for Answering, which a task that joins would not look at (Answer before, or
//     use [Go]), and for options of other calls and a Drain;
//   - checkpoint.ErrRunID if run can't be an id;
//   - an error that wraps ctx's cause if ctx is done already. A ctx that ends later changes
//     nothing.
func Submit[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string, input func(*S),
	options ...dispatcher.RunOption,
) (*Task[S], error) {
	if err := passable(options, notForSubmit); err != nil {
		return nil, err
	}
	own := slices.Clone(options) // it may wait, and they are the caller's
	return enter(ctx, s, d, key, run, revives, own,
		func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error) {
			return d.Run(ctx, run, input, append(own[:len(own):len(own)], drain)...)
		})
}

// Go is [Submit] for any other call of d that works on the run: Start, Resume or Turn, say. call
// has to pass on its context and the option drain, and to return when d has.
//
// Go joins nothing, because what call would have done is not what is done there. If the run waits
// or is at work already, Go is refused with a [*RunError] that wraps dispatcher.ErrBusy. A run that
// is gone on with for those who have joined it is at work, even if whoever submitted it has its
// result.
//
// If the store had no room to open the run, and so has nothing of it, call is made again: the
// package doc says when. If it had none for a run that exists, as for a Turn, the task ends with
// checkpoint.ErrFull.
//
// A nil call is an [*OptionError]. The task ends with an [*OptionError] if call returned a nil
// result and a nil error. It ends with a [*RunError] if call worked on another run than this one,
// whose turn it was not. That error names both runs and wraps nothing: what became of the other run
// is in the store.
func Go[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string,
	call func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error),
) (*Task[S], error) {
	if call == nil {
		return nil, &OptionError{"call", "is nil: give the function that calls the dispatcher"}
	}
	return enter(ctx, s, d, key, run, alone, nil, call)
}

func enter[S any](
	ctx context.Context, s *Supervisor, d *dispatcher.Dispatcher[S], key, run string, how joining, options []dispatcher.RunOption,
	call func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[S], error),
) (*Task[S], error) {
	if err := present(ctx, s); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, &OptionError{"dispatcher", "is nil: make it with dispatcher.New"}
	}
	if elsewhere(d, s.store) {
		return nil, &RunError{Run: run, Graph: d.Graph(), Err: ErrOtherStore}
	}
	if err := judged(d, d.Graph(), run, options); err != nil {
		return nil, err
	}
	drain := dispatcher.Drain(s.drain)
	read := func(ctx context.Context) (*dispatcher.Result[S], error) { return d.State(ctx, run) }
	w := work{run: run, runner: d}
	w.call = func(ctx context.Context) outcome {
		res, err := call(ctx, drain)
		switch {
		case res == nil && err == nil:
			err = &OptionError{"call", "returned neither a result nor an error: return what the dispatcher does"}
		case res != nil && res.Run != "" && res.Run != run:
			return outcome{err: notOurs(run, d.Graph(), res.Run, err), plain: dispatcher.Result[struct{}]{Abandoned: res.Abandoned}}
		}
		return outcomeOf(res, err)
	}
	w.goesOn = func(ctx context.Context) outcome {
		out := outcomeOf(d.Continue(ctx, run, append(options[:len(options):len(options)], drain)...))
		if errors.Is(out.err, checkpoint.ErrNotFound) && !out.rested() {
			return outcome{err: &passedOn{out.err}}
		}
		if now, err := read(ctx); err == nil && !out.abandoned() { // else Wait reads it
			out.result = withState(&out.plain, now.State)
		}
		return out
	}
	t, err := s.submit(ctx, w, key, how)
	if err != nil {
		return nil, err
	}
	return &Task[S]{s, t, read}, nil
}

// Continue goes on with a run that exists when it is its turn, whatever its graph is: after its
// interrupt was answered, say. It is like [Submit], but takes From and Expire, and its result has
// no state.
//
// A run that is cancelled between this call and its turn stays so. The task ends with that: its
// [*dispatcher.Rest] says who has cancelled the run, and why, if the runner is a dispatcher. A run
// that was cancelled before this call is gone on with.
//
// Besides the errors of Submit there are:
//
//   - a [*RunError] that wraps ErrUnknownGraph if no runner is of the run's graph, or takes it;
//   - checkpoint.ErrNotFound if there is no such run;
//   - an error of the store if that can't tell.
func (s *Supervisor) Continue(
	ctx context.Context, key, run string, options ...dispatcher.RunOption,
) (*Task[struct{}], error) {
	if err := present(ctx, s); err != nil {
		return nil, err
	}
	if err := passable(options, nil); err != nil {
		return nil, err
	}
	if err := checkpoint.CheckRunID(run); err != nil {
		return nil, &passedOn{err}
	}
	if err := late(ctx, run); err != nil {
		return nil, err
	}
	info, err := s.store.Stat(ctx, run)
	if err != nil {
		return nil, err
	}
	how := joins
	if info.Status == checkpoint.StatusCancelled {
		how = revives
	}
	t, err := s.resume(ctx, key, info, how, options)
	if err != nil {
		return nil, err
	}
	return &Task[struct{}]{s: s, ticket: t}, nil
}

// resume has the runner of its graph go on with a run when it is its turn, unless it was cancelled
// since; with one that is to be recovered unless it has come to rest by then.
func (s *Supervisor) resume(
	ctx context.Context, key string, info checkpoint.Info, how joining, options []dispatcher.RunOption,
) (*ticket, error) {
	r := s.runner(&info)
	if r == nil {
		return nil, &RunError{Run: info.Run, Graph: info.Graph, Err: ErrUnknownGraph}
	}
	if err := judged(r, info.Graph, info.Run, options); err != nil {
		return nil, err
	}
	all := append(options[:len(options):len(options)], dispatcher.Drain(s.drain))
	does := func(ctx context.Context) outcome {
		return s.unlessRested(ctx, r, info.Run, how, s.fitting(info.Run, info.Head.Seq, all))
	}
	return s.submit(ctx, work{run: info.Run, runner: r, call: does}, cmp.Or(key, info.Graph), how)
}

// Task returns the task of a run that waits or is at work, to wait for its end or to withdraw it.
// It does not matter who has submitted the run; it may have been [Supervisor.Recover]. Task submits
// nothing and joins nothing. Its result has no state.
//
// It returns false if the work on the run is over, or if the run was never submitted here. Of such
// a run the store tells, by dispatcher.Dispatcher.State.
//
// A run that is gone on with for those who have joined it (see [Submit]) has a task for each time.
// Task returns the one that is to end next.
func (s *Supervisor) Task(run string) (*Task[struct{}], bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tickets[run]
	if t == nil {
		return nil, false
	}
	return &Task[struct{}]{s: s, ticket: t}, true
}

// Run returns the run's id.
func (t *Task[S]) Run() string {
	if t.none() {
		return ""
	}
	return t.ticket.run
}

// Done is closed when the work on the run is over, or will not begin.
func (t *Task[S]) Done() <-chan struct{} {
	if t.none() {
		done := make(chan struct{})
		close(done)
		return done
	}
	return t.ticket.done
}

// none reports whether nothing was submitted.
func (t *Task[S]) none() bool { return t == nil || t.ticket == nil }

// Wait waits until the work on the run is over, and returns what the call of the dispatcher has. It
// returns ErrDraining or ErrWithdrawn if the run did not begin. If ctx ends first Wait returns its
// cause, and the run goes on, or goes on waiting: it is the supervisor's. The Result is never nil.
//
// A task may have joined work of another state type, as that of a Continue. Then it has all of its
// result but State, which is read anew: that is a later one if somebody has gone on with the run
// meanwhile.
//
// A task may have joined a Recover which found the run at rest when its turn came: cancelled, say.
// Then it has the run's status and its state, and a [*dispatcher.Rest].
func (t *Task[S]) Wait(ctx context.Context) (*dispatcher.Result[S], error) {
	none := &dispatcher.Result[S]{Run: t.Run(), State: new(S)}
	if t.none() {
		return none, &OptionError{"Task", "is of no run: look at the error that Submit, Go or Continue returned"}
	}
	if ctx == nil {
		return none, present(ctx, t.s)
	}
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
	if out.result == nil && !out.idle {
		return none, out.err
	}
	res := withState(&out.plain, none.State) // of who had no state, or another; or there was no work
	res.Run = none.Run                       // which a Runner without a result has not said
	if t.read == nil {
		return res, out.err
	}
	now, err := t.read(ctx)
	if now != nil && now.State != nil {
		res.State = now.State
	}
	return res, errors.Join(out.err, err)
}

// withState is a result with another state.
func withState[S, T any](r *dispatcher.Result[T], s *S) *dispatcher.Result[S] {
	return &dispatcher.Result[S]{
		Run: r.Run, Status: r.Status, State: s, Frame: r.Frame, Cursor: r.Cursor, Superstep: r.Superstep,
		Turn: r.Turn, Interrupts: r.Interrupts, Finished: r.Finished, Failures: r.Failures, Fault: r.Fault,
		Abandoned: r.Abandoned, Settings: r.Settings, Labels: r.Labels, Correlation: r.Correlation,
		Warnings: r.Warnings,
	}
}
