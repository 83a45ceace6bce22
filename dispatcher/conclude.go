package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// conclude makes the result of a call whose run has come to rest, or is stuck.
func (r *run) conclude(rested bool) (*report, error) {
	if (rested || r.resting()) && r.early.now() {
		rep, err := r.early.rep, r.early.err
		if rep == nil {
			return nil, r.c.refuse(r.id, err)
		}
		rep.Warnings = r.warnings
		if r.told || r.hooked.Load() == hooksBegun && underway(rep.Status) {
			r.tellLeft(err) // it was drained in a turn that came before the caller's own
		}
		rep.Abandoned = r.names
		return rep, err
	}
	if !rested && !r.resting() || r.err != nil {
		rep := &report{}
		rep.Run, rep.Status = r.id, checkpoint.StatusRunning
		rep.Cursor = checkpoint.Cursor{Run: r.id}
		if !rested && r.stuck == errAtHome {
			return rep, r.c.refuse(r.id, r.stuck) // the owner is not away: nothing of r is ours
		}
		err := r.err
		if !rested {
			err = r.stuck
		}
		if !r.telling {
			r.tellLeft(err)
		}
		rep.Abandoned = r.names
		if rested { // else its owner may be about to warn
			rep.Warnings = r.warnings
		}
		return rep, r.c.refuse(r.id, err)
	}
	var rep *report
	if r.c.store == nil {
		rep = r.m.lastReport(r.id, 0)
	} else {
		rep = r.beyond(r.crossing).report(r.id, r.journal.head.Seq)
	}
	rep.Warnings = r.warnings
	var err error
	if rep.Status != checkpoint.StatusCompleted {
		err = r.rested(rep)
		if r.told || underway(rep.Status) {
			r.tellLeft(err) // it was drained, or nothing has told that it rests
		}
	}
	rep.Abandoned = r.names
	return rep, err
}

// underway reports whether a run is neither at rest nor completed.
func underway(s checkpoint.Status) bool {
	return s == checkpoint.StatusRunning || s == checkpoint.StatusPending
}

// rested makes the error of a run at rest.
func (r *run) rested(rep *report) error {
	e := &Rest{Run: r.id, Status: rep.Status, Cursor: rep.Cursor, Interrupts: rep.Interrupts, Failures: rep.Failures}
	switch {
	case rep.Status == checkpoint.StatusFailed && len(r.parked) > 0:
		e.Cause = r.parked[0].err
	case rep.Fault != nil:
		e.Cause = rep.Fault
	case rep.Status == checkpoint.StatusFailed && len(rep.Failures) > 0:
		e.Cause = r.nodeError(&rep.Failures[0])
	case rep.Status == checkpoint.StatusCancelled, rep.Status == checkpoint.StatusTimedOut,
		rep.Status == checkpoint.StatusRunning, rep.Status == checkpoint.StatusPending:
		if e.Cause = r.caused; e.Cause == nil {
			e.Cause = r.cause()
		}
		var byPost *postedCancel
		if rep.Status == checkpoint.StatusCancelled && errors.As(e.Cause, &byPost) {
			e.By = byPost.by
			if byPost.error == context.Canceled { // Cancel was given none
				e.Cause = nil
			}
		}
	}
	return e
}

// letGo lets go of everything that the call holds, but for what strays still need. It is the last
// thing that a call waits for, and ends with the grace period. It returns why the store has kept
// the lease, if it has.
func (r *run) letGo() (kept error) {
	r.cancel(context.Canceled)
	if r.stored != nil {
		r.late.end(context.Canceled)
	}
	r.await(r.reading, doingPosts)
	if !r.strays.last() {
		r.c.strayed(r.id, &r.strays)
		return nil
	}
	if r.holdsLease() {
		given := make(chan error, 1)
		ended := make(chan struct{})
		go func() { // await waits for it, or abandons it
			defer close(ended)
			given <- r.strays.release()
		}()
		if !r.inTime(ended) {
			doing := doingRelease
			if code := r.strays.code.Load(); code != nil {
				doing = *code
			}
			if r.stuck != errAtHome {
				r.abandon(doing)
			}
			r.c.strayed(r.id, &r.strays)
		}
		select {
		case kept = <-given:
		default:
		}
	}
	r.await(r.journal.hold.stop(), doingRenew)
	return kept
}

// leaseKept is the warning that the store has not taken the lease back.
func leaseKept(why error) string {
	return "the lease of the run could not be given back, and is held still: " + plain(why)
}

// await waits for a goroutine of the call until the grace period is over, and abandons it
// then. Nil is none. It reports whether that has ended.
func (r *run) await(ended <-chan struct{}, doing string) bool {
	if r.inTime(ended) {
		return true
	}
	if r.stuck != errAtHome {
		r.abandon(doing)
	}
	return false
}

// inTime is await for who abandons it himself.
func (r *run) inTime(ended <-chan struct{}) bool {
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		return true
	default:
	}
	until := r.graceEnd
	if until.IsZero() {
		until = time.Now().Add(r.c.opts.Grace)
	}
	return r.within(ended, until)
}

// within waits for a goroutine of the call until an instant, and reports whether it has ended. If
// the caller's context is done meanwhile, the grace period begins: there is one for all that the
// call waits for.
func (r *run) within(ended <-chan struct{}, until time.Time) bool {
	var done <-chan struct{}
	if r.graceEnd.IsZero() {
		done = r.parent.Done()
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return true
		case <-timer.C:
			return hasEnded(ended) // of two that are ready select takes any
		case <-done:
			done, r.graceEnd = nil, time.Now().Add(r.c.opts.Grace)
		}
	}
}

// hasEnded reports whether a goroutine has ended.
func hasEnded(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}
