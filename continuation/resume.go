package continuation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// goOn goes on with a run that has something to go on with.
func (r *Runtime) goOn(ctx context.Context, run string) error { return r.resume(ctx, run, ifWanted) }

// How far resume goes.
type reach uint8

const (
	notAtAll   reach = iota
	ifWanted         // if the log says that there is something to go on with
	ifPosted         // also if it does not: there are messages that were not taken into the log
	onlyDenial       // the run is left alone, but for a denial that cancels it
)

// resume goes on with a run whose wait has its trigger, or has expired, or is to be asked again;
// and cancels one in which a denial says so. It never goes on with a run that has come to its end
// meanwhile: the cursor has to be the one that it has read.
//
// It returns nil as well if somebody else is at work on the run.
func (r *Runtime) resume(ctx context.Context, run string, how reach) error {
	var before checkpoint.Head
	for {
		h, err := r.history(ctx, run)
		if err != nil {
			return err
		}
		if w := h.denied(); w != nil {
			return r.cancel(ctx, run, Stopping{ApprovalDenied, w.why, w.by})
		}
		posted := how == ifPosted && (!h.over || h.end.kind == checkpoint.Completed)
		if how == onlyDenial || h.info.Head == before || !posted && !r.wants(h) {
			return nil
		}
		err = r.bring(ctx, h)
		var rest *dispatcher.Rest
		switch {
		case err == nil, errors.As(err, &rest) && ctx.Err() == nil:
			before, how = h.info.Head, ifWanted
		case ctx.Err() != nil:
			return fmt.Errorf("continuation: run %q was left for Recover: %w", run, context.Cause(ctx))
		case elsewhere(err):
			return err
		case dispatcher.Moved(err): // then it is read again
		case errors.Is(err, dispatcher.ErrBusy):
			if r.atWork(ctx, run) {
				return nil
			}
			if err := r.await(ctx, h.info, writing); err != nil {
				return fmt.Errorf("continuation: run %q was left for Recover: %w", run, err)
			}
		case errors.Is(err, dispatcher.ErrStillRunning):
			return nil
		default:
			return err
		}
	}
}

// elsewhere reports whether an error is what a hook or dispatcher.Options.Revalidate returned. It
// says nothing of where the run is, or who is at work on it, whatever it wraps.
func elsewhere(err error) bool {
	var fault *dispatcher.FaultError
	var stale *dispatcher.StaleError
	return errors.As(err, &fault) || errors.As(err, &stale)
}

// writing is how long to wait before one looks again whether somebody has written an entry. Who
// died meanwhile has the lease until it lapses.
const writing = 5 * time.Millisecond

// atWork reports whether somebody brings the run on, and does not just write an entry.
func (r *Runtime) atWork(ctx context.Context, run string) bool {
	info, err := r.store.Stat(ctx, run)
	return err != nil || owned(info) && info.Status == checkpoint.StatusRunning
}

// bring calls the dispatcher. What is overdue ends, whatever the dispatcher's clock says. When ctx
// ends the run is left running, and not cancelled.
func (r *Runtime) bring(ctx context.Context, h *history) error {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(dispatcher.ErrDrain) })() // does not wait, and is stopped here at the latest
	var over []string
	for _, w := range h.open {
		if w.pends() && r.overdue(w.last()) {
			over = append(over, w.last().id)
		}
	}
	from := dispatcher.From(checkpoint.Cursor{Run: h.run, Seq: h.info.Head.Seq})
	_, err := r.d.Continue(inner, h.run, from, dispatcher.Expire(over...))
	return err
}

// denied is the wait whose denial is to cancel the run, and has not.
func (h *history) denied() *wait {
	if h.end != nil && h.end.kind != checkpoint.Failed {
		return nil
	}
	if k := slices.IndexFunc(h.open, (*wait).denies); k >= 0 {
		return h.open[k]
	}
	return nil
}

// wants reports whether there is something to go on with.
func (r *Runtime) wants(h *history) bool { return r.due(h) || h.goesOn() }

// goesOn reports whether there is something to go on with, whatever the clock says.
func (h *history) goesOn() bool {
	for _, w := range h.open {
		if status, _, _, _ := w.stands(); status.Terminal() {
			continue
		}
		switch a := w.last(); {
		case h.held(w):
		case a.ended && w.vain() < a.q.MaxFailures, w.again():
			return true
		}
	}
	return h.between()
}

// between reports whether the process died between two visits, behind a wait that has ended; or
// behind one that the log may have lost.
func (h *history) between() bool {
	return h.abandoned() && (len(h.open) > 0 || h.lost && h.vain < DefaultFailures) && h.exhausted() == nil
}

// abandoned reports whether whoever was at work on the run has left it there.
func (h *history) abandoned() bool {
	return h.end == nil && h.info.Status == checkpoint.StatusRunning && !owned(h.info)
}

// owned reports whether somebody is at work on a run. Who only says something of it has it for a
// moment, which calls that go on with it wait for.
func owned(info checkpoint.Info) bool { return info.Owner != "" && !checkpoint.Amends(info.Owner) }

// exhausted is a wait that keeps the run from being gone on with, nil if none does.
func (h *history) exhausted() *wait {
	for _, w := range h.open {
		if w.taken() && w.vain() >= w.last().q.MaxFailures {
			return w
		}
	}
	return nil
}
