package continuation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// live are the runs in which a wait may have something to come.
func (r *Runtime) live(ctx context.Context) (histories, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	all, err := r.list(ctx, checkpoint.Filter{Status: []checkpoint.Status{
		checkpoint.StatusInterrupted, checkpoint.StatusRunning, checkpoint.StatusFailed,
	}})
	r.see(all, err)
	return all, err
}

// Sweep goes on with every run that has a wait that is due, because it has expired or its timer
// wakes. It also approves, as dag.System, what is safe to approve in nobody's name. It returns the
// ids of those runs. A run that is at work does all that by itself. If a run can't be read or gone
// on with, the others are done all the same, and the errors are joined.
//
// The log says when a wait is due, so nothing is lost with a process: what came to be due meanwhile
// is due at once, and a timer that is later than it may be says that it was missed.
//
// When the clock is set back, no wait gets longer for a Runtime that has swept before, since it has
// counted the time; a Runtime that begins behind the jump counts the whole time anew. A clock that
// jumps forward ends waits early.
//
// Runs are gone on with one after the other. Sweep lists the runs that wait, work or have failed,
// and reads those that have changed since.
func (r *Runtime) Sweep(ctx context.Context) ([]string, error) {
	return r.each(ctx, r.ripe)
}

// ripe says how far a sweep goes on with a run, whatever keeps it from approving something.
func (r *Runtime) ripe(ctx context.Context, h *history) (reach, error) {
	approved, err := r.approve(ctx, h)
	if approved || r.due(h) && !owned(h.info) {
		return ifWanted, err
	}
	return notAtAll, err
}

// Recover goes on with every run that has its trigger and that nobody is at work on, because the
// process that accepted it died or drained, or left it. The node gets that trigger. A run that was
// resumed in vain as often as its wait allows is left, with an [*AttemptsError]. Recover returns
// the ids of the runs, and the errors joined, as [Runtime.Sweep] does. It does not look for what
// was sent to runs that are completed by now: see [Wake].
//
// Where a trim may have dropped what a run has waited for in this turn, the log does not tell
// whether the run has its trigger. Recover then goes on with a run whose process died or drained,
// and leaves it when [DefaultFailures] resumes were in vain.
func (r *Runtime) Recover(ctx context.Context) ([]string, error) {
	return r.each(ctx, r.left)
}

// left says how far a recovery goes on with a run.
func (r *Runtime) left(ctx context.Context, h *history) (reach, error) {
	if owned(h.info) {
		return notAtAll, nil
	}
	if w := h.exhausted(); w != nil && !h.over {
		return notAtAll, &AttemptsError{w.id, h.run, w.last().q.MaxFailures}
	}
	if h.abandoned() && h.lost && len(h.open) == 0 && h.vain >= DefaultFailures {
		return notAtAll, &AttemptsError{"", h.run, DefaultFailures}
	}
	if h.denied() != nil || h.goesOn() {
		return ifPosted, nil
	}
	return r.posted(ctx, h)
}

// posted looks for an answer to a wait, or to what keeps one that has its trigger, that was posted
// by a process that died before it could take it into the log.
func (r *Runtime) posted(ctx context.Context, h *history) (reach, error) {
	waits := func(w *wait) bool { return w.pends() || w.closed == "" && h.end == nil && h.held(w) }
	if !slices.ContainsFunc(h.open, waits) {
		return notAtAll, nil
	}
	posts, err := r.store.Posts(ctx, h.run)
	if err != nil {
		return notAtAll, fmt.Errorf("continuation: run %q: %w", h.run, err)
	}
	if slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.Kind == checkpoint.PostAnswer }) {
		return ifPosted, nil
	}
	return notAtAll, nil
}

// each goes on with runs, as far as is picked.
func (r *Runtime) each(ctx context.Context, pick func(context.Context, *history) (reach, error)) (runs []string, err error) {
	all, err := r.live(ctx)
	errs := []error{err}
	for _, h := range slices.Backward(all) { // the oldest first
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		how, err := pick(ctx, h)
		if errs = append(errs, err); how != notAtAll {
			runs = append(runs, h.run)
			errs = append(errs, r.resume(ctx, h.run, how))
		}
	}
	return runs, errors.Join(errs...)
}

// due reports whether the instant of a wait has come.
func (r *Runtime) due(h *history) bool {
	return slices.ContainsFunc(h.open, func(w *wait) bool { return w.pends() && r.overdue(w.last()) })
}

// approve approves what is safe to approve, and reports whether something was. Nobody has gone on
// with the run behind that.
func (r *Runtime) approve(ctx context.Context, h *history) (approved bool, err error) {
	var errs []error
	for _, w := range h.open {
		if !w.pends() || r.overdue(w.last()) {
			continue
		}
		for _, of := range w.last().q.Of {
			if of.Kind != KindApproval || !of.Safe || of.Authority != Anybody && of.Authority != dag.System {
				continue
			}
			_, err := r.Trigger(ctx, Trigger{
				ID: "safe:" + w.last().id, Wait: w.id, Run: h.run, Kind: KindApproval, Key: w.key(of),
				Actor: Actor{ID: "continuation", Authority: dag.System}, Decision: Approved, Reason: "safe to execute", LeaveIt: true,
			})
			if errors.Is(err, dag.ErrExpired) { // it is over, and what it is a part of may go on
				continue
			}
			approved = approved || err == nil
			if err != nil && !errors.Is(err, ErrTaken) && !errors.Is(err, ErrTerminal) {
				errs = append(errs, err)
			}
			break
		}
	}
	return approved, errors.Join(errs...)
}

// Serve sweeps, recovers and delivers until ctx ends, and returns its cause. It looks at once, and
// then at each instant that a log names. It also looks after a trigger of this Runtime, after
// [Runtime.Look], and, to find what other processes ask, at the latest after Options.Recheck. All
// of that runs on the caller's goroutine; nothing outlives it.
//
// What goes wrong is tried again and told to failed, which may be nil; each delivery that fails is
// told as a [*DeliveryError]. Serve tells that, and notes what came of a delivery, before it
// returns. If the store does not answer, or somebody keeps the run, that takes up to ten seconds
// behind the end of ctx.
//
// Runs are gone on with, and follow-ups delivered, one after the other: while one takes its time
// everything else that is due waits. If the nodes behind waits take long, call Serve in several
// goroutines; several of them may then call a Deliverer for one follow-up at once.
//
// Serve is for waits. A question that a node asks by itself, with dag.Within and perhaps
// dag.OrDefault, ends when somebody goes on with the run, and neither Serve nor Sweep does so for
// that.
//
// Each look lists the runs that wait, work or have failed, twice, and does what [Runtime.Deliver]
// does if there is a Deliverer.
func (r *Runtime) Serve(ctx context.Context, failed func(error)) error {
	if err := r.made(); err != nil {
		return err
	}
	for {
		began := r.moment()
		_, brought := r.each(ctx, r.ripeOrLeft)
		told, delivered := r.deliver(ctx)
		next, err := r.next(ctx, began, told.again)
		if failed == nil {
			failed = func(error) {}
		}
		for _, err := range told.failures {
			failed(err)
		}
		if err := unended(ctx, errors.Join(brought, delivered, err)); err != nil {
			failed(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-r.stirred:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// unended is what an error that was joined tells beside the end of ctx.
func unended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, err := range many.Unwrap() {
			rest = append(rest, unended(ctx, err))
		}
		return errors.Join(rest...)
	}
	if ended(ctx, err) {
		return nil
	}
	return err
}

// ended reports whether an error says that ctx has ended, when it has.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// ripeOrLeft is a sweep and a recovery at once.
func (r *Runtime) ripeOrLeft(ctx context.Context, h *history) (reach, error) {
	how, err := r.ripe(ctx, h)
	if how != notAtAll {
		return how, err
	}
	how, lost := r.left(ctx, h)
	return how, errors.Join(err, lost)
}

// Look has [Runtime.Serve] look again soon: a run has begun to wait.
func (r *Runtime) Look() { r.stir() }

// next is how long nothing is due: no wait, and no delivery again. What was due when a round began
// has had its turn: if it could not be gone on with it waits for Options.Recheck.
func (r *Runtime) next(ctx context.Context, began moment, again time.Time) (time.Duration, error) {
	wait := r.options.Recheck
	due := func(at, began, now time.Time) {
		if at.After(began) {
			wait = min(wait, max(at.Sub(now), 0))
		}
	}
	all, err := r.live(ctx)
	now := r.moment()
	for _, h := range all {
		for _, w := range h.open {
			if a := w.last(); w.pends() {
				due(a.until, r.on(a, began), r.on(a, now))
			}
		}
	}
	due(again, began.wall, now.wall)
	return wait, err
}

// number is a sequence number as text.
func number(n uint64) string { return strconv.FormatUint(n, 10) }
