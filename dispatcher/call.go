package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A mode is how a call came about.
type mode uint8

const (
	modeRun mode = iota
	modeStart
	modeResume
	modeContinue
	modeTurn
	modeEnqueue
	modeAct // changes a run and runs nothing
	modeAnswer
	modeNote
	modes // how many there are
)

// old reports whether the call is for runs that exist.
func (m mode) old() bool { return m == modeResume || m == modeContinue || m == modeTurn }

// run is Run, Start, Resume, Continue and Turn.
func (c *core) run(ctx context.Context, id string, how mode, input func(any), options []RunOption) (*report, error) {
	if err := c.called(ctx); err != nil {
		return nil, err
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	w, err := c.wish(how, options)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	switch {
	case c.store != nil || how == modeStart:
	case how == modeRun:
		return nil, c.refuse(id, fmt.Errorf("%w, or begin it with Start, which keeps no log", ErrNoStore))
	default:
		return nil, c.refuse(id, ErrNoStore)
	}
	if err := c.stillRunning(id); err != nil && (how != modeStart || c.store == nil) { // else find says it
		return nil, c.refuse(id, err)
	}
	if w.answers != nil {
		w.giving, w.unsaid = c.answering(ctx, id, w)
	}
	return c.attend(ctx, id, w, input)
}

// attend is at work on the run until that rests.
func (c *core) attend(ctx context.Context, id string, w *wishes, input func(any)) (*report, error) {
	r := c.newRun(ctx, id)
	r.drain, r.graceEnd = w.drain, w.graceEnd
	if w.ears != nil && c.store == nil {
		r.audience = []*listener{w.ears}
	}
	r.setUp = func() early {
		if c.store == nil {
			return early{err: r.open(w, input)}
		}
		return r.find(w, input)
	}
	rested := r.watch()
	if rested && r.apart {
		return r.beginAgain(w, input)
	}
	rep, err := r.conclude(rested)
	abandoned := r.finishing(rep, err, rested)
	keeps := rested && len(abandoned)+len(r.names)+len(r.parked) == 0 && r.goesOn(err) && c.keep(id, r.journal.head, r.m, r.journal.since)
	if kept := r.letGo(); kept != nil && rep != nil {
		rep.Warnings = append(rep.Warnings, leaseKept(kept))
	}
	if r.stuck != errAtHome { // else nothing of r is ours
		abandoned = slices.Concat(r.names, abandoned)
	}
	if len(abandoned) > 0 {
		r.strays.name(abandoned)
	}
	if rep != nil {
		rep.Abandoned = abandoned
	}
	if rested && len(abandoned) == 0 {
		r.clearDesk()
	}
	retains := rep != nil && r.stuck != errAtHome && r.atRest && !underway(rep.Status)
	if err == nil && rested && len(abandoned) == 0 && !r.early.now() && !keeps {
		c.leave(r)
	}
	switch {
	case !retains:
	case w.ears != nil: // who reads along comes first
		w.ears.retains = true
	default:
		c.retain(ctx, id, rep, err)
	}
	return rep, err
}

// beginAgain is attend for a call whose answers could not be said in the append of the resume:
// nothing has happened.
func (r *run) beginAgain(w *wishes, input func(any)) (*report, error) {
	if _ = r.letGo(); len(r.names) > 0 {
		r.strays.name(r.names)
		if err := r.c.stillRunning(r.id); err != nil {
			rep := &report{}
			rep.Run, rep.Status, rep.Cursor, rep.Abandoned = r.id, checkpoint.StatusRunning, checkpoint.Cursor{Run: r.id}, r.names
			return rep, r.c.refuse(r.id, err)
		}
	}
	w.apart, w.since, w.from = true, r.journal.head.Seq, r.from
	if r.parent.Err() != nil { // else the grace period begins with a cancel of the caller's, as if this were the first attempt
		w.graceEnd = r.graceEnd
	}
	return r.c.attend(r.parent, r.id, w, input)
}

// goesOn reports whether the next call is likely to want the machine of a run whose call returns
// err: it waits, or it has had several turns, and this call has run one or found nothing to do.
func (r *run) goesOn(err error) bool {
	switch {
	case r.m == nil || r.err != nil: // it may have heard what was never appended
		return false
	case r.early.now():
		return err == nil && r.m.turn > 1 || refused(err)
	}
	return r.atRest && (err != nil || r.m.turn > 1)
}

// find takes the run's lease and reads its log, or opens it.
func (r *run) find(w *wishes, input func(any)) early {
	c, ctx := r.c, r.stored // not the caller's: a run whose context is done is opened and rests
	r.wishes = w
	old := w.how.old() && !w.orStart || w.giving != nil
	if old {
		if _, err := c.store.Stat(ctx, r.id); err != nil {
			return early{err: w.missing(err)}
		}
	}
	if w.unsaid != nil {
		return early{err: w.unsaid}
	}
	if w.how == modeStart {
		if err := c.stillRunning(r.id); err != nil {
			return early{err: c.taken(ctx, r.id, err)}
		}
	}
	lease, asked, err := c.acquire(ctx, r.id, c.owner)
	if err != nil {
		if w.how == modeStart && errors.Is(err, checkpoint.ErrBusy) {
			err = c.taken(ctx, r.id, err)
		}
		return early{err: err}
	}
	r.journal.lease = lease
	if !lease.Until.IsZero() {
		r.journal.hold = c.hold(ctx, lease, asked, r.cancel)
	}
	m, head, err := c.machine(ctx, r.id)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && !old:
		return early{err: r.open(w, input)}
	case err != nil:
		return early{err: err}
	case w.how == modeStart:
		rep, _ := c.report(m, r.id, head.Seq) // whatever its state is, the run exists
		return early{rep, c.refuse(r.id, fmt.Errorf("%w: Run goes on with it", ErrExists))}
	}
	posts, err := c.store.Posts(ctx, r.id)
	if err != nil {
		return early{err: err}
	}
	r.journal.posts = len(posts) > 0
	r.stand(m, head)
	if w.apart {
		posts = r.hearPosted(w, posts)
	} else if w.giving != nil {
		w.knew = cancelIDs(posts)
	}
	if posts, err = r.drainBefore(posts); err != nil {
		return early{err: err}
	}
	if w.apart { // who has cancelled the run since has cancelled this call
		if err := r.hearSince(w.since); err != nil {
			return early{err: err}
		}
	}
	if w.unlessCancelled && r.m.status == checkpoint.StatusCancelled {
		return r.leaveCancelled()
	}
	if w.giving != nil {
		var e early
		if posts, e = r.answerFirst(posts); e.now() {
			return e
		}
		m = r.m
	}
	r.found = posts
	waits := false
	for _, p := range posts {
		switch {
		case p.Kind == checkpoint.PostCancel && (m.status.Resting() || m.status == checkpoint.StatusCompleted):
			r.moot = append(r.moot, p.ID) // too late for the last call, and no wish for this one
		case p.Kind == checkpoint.PostTurn: // posted again, it begins nothing
			waits = waits || !m.seen[p.ID]
		}
	}
	r.introduce()
	r.journal.tip = r.journal.head
	r.durable.Store(r.journal.head.Seq)
	if m.status == checkpoint.StatusCompleted && (waits || w.how == modeTurn) {
		return r.furtherTurn(w, input)
	}
	e := r.resumable(w)
	r.apart = e.now() && r.giving != nil
	return e
}

// taken is the error of a Start or a Create that could not have the run: if that is there it says
// so as well, for who asks no more.
func (c *core) taken(ctx context.Context, id string, err error) error {
	if _, none := c.store.Stat(ctx, id); none != nil {
		return err
	}
	return &takenError{err}
}

// A takenError is [ErrExists] of a run that the call could not have.
type takenError struct{ why error }

// Error gives no advice of BusyError's, which is for who wants to go on with the run: that exists,
// and this call had nothing else to do.
func (e *takenError) Error() string {
	held := (*checkpoint.BusyError)(nil)
	switch {
	case !errors.Is(e.why, checkpoint.ErrBusy):
		return fmt.Sprintf("%v, and %s", ErrExists, plain(e.why))
	case errors.As(e.why, &held) && checkpoint.Amends(held.Owner):
		return fmt.Sprintf("%v: Run goes on with it", ErrExists)
	}
	return fmt.Sprintf("%v, and is at work: State tells how it stands, and Events what comes of it", ErrExists)
}

func (e *takenError) Unwrap() []error { return []error{ErrExists, e.why} }

// aMoment is how long a lease is waited for that somebody has for a moment.
const aMoment = 127 * time.Millisecond

// acquire takes the lease of a run as owner, and waits for it if it is somebody's for a moment. It
// tells when the store was asked that has given it.
func (c *core) acquire(ctx context.Context, id, owner string) (lease checkpoint.Lease, asked time.Time, err error) {
	var refused time.Time // for the first time
	waited := time.Duration(0)
	for wait := time.Millisecond; ; wait = min(2*wait, 64*time.Millisecond) {
		if lease, asked, err = c.acquireNow(ctx, id, owner); err == nil {
			return lease, asked, nil
		}
		if refused.IsZero() {
			refused = time.Now()
		}
		patience := c.patience(ctx, id, owner, err)
		if waited >= patience || patience > aMoment && time.Since(refused) >= patience { // Grace is going by while the store refuses, too
			return lease, asked, err
		}
		select {
		case <-ctx.Done():
			return lease, asked, err
		case <-time.After(wait):
			waited += wait
		}
	}
}

// acquireNow is acquire for who does not wait.
func (c *core) acquireNow(ctx context.Context, id, owner string) (checkpoint.Lease, time.Time, error) {
	asked := time.Now()
	lease, err := c.store.Acquire(ctx, id, owner)
	return lease, asked, err
}

// patience is how long a lease may be waited for that could not be had. An amendment ends soon,
// whatever the status of the run is; but it may read a long log, or have a slow disk. Who posts
// what it can't append needs no more than a moment, and who is to go on with the run would leave it
// where it is. Of a run at rest an owner may be about to give the lease back, and of a completed
// one to leave what else was posted.
func (c *core) patience(ctx context.Context, id, owner string, err error) time.Duration {
	if !errors.Is(err, checkpoint.ErrBusy) {
		return 0
	}
	if held := (*checkpoint.BusyError)(nil); errors.As(err, &held) && checkpoint.Amends(held.Owner) {
		if owner == c.owner {
			return min(max(aMoment, c.opts.Grace/2), c.opts.Grace) // and returns within Grace, even if its context is done
		}
		return aMoment
	}
	if len(c.strays.of(id)) > 0 {
		return 0
	}
	if info, err := c.store.Stat(ctx, id); err != nil || !info.Status.Resting() && (info.Status != checkpoint.StatusCompleted || owner != c.owner) {
		return 0
	}
	return aMoment
}

func (c *core) newRun(ctx context.Context, id string) *run {
	r := c.blankRun()
	r.c, r.id, r.parent = c, id, ctx
	if r.started = time.Now(); r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	r.begins = about{c: c, run: id, graph: c.plan.Name, turn: 1}
	r.about.Store(&r.begins)
	r.strays.r = r
	r.strays.count.Store(1)
	if c.late() {
		r.late.Context, r.ctx = ctx, &r.late
	} else {
		r.ctx, r.cancelled = context.WithCancelCause(ctx)
	}
	if c.store != nil {
		r.journal.mutex = make(chan struct{}, 1)
		if c.opts.Lag > 0 {
			r.journal.grown = make(chan struct{}, 1)
		}
		r.late.Context = context.WithoutCancel(ctx)
		r.stored = &r.late
	}
	return r
}

// blankRun is the memory of a run.
func (c *core) blankRun() *run {
	if c.store == nil {
		l := c.leftover()
		r := l.run
		if l.run = nil; r == nil {
			r = new(run)
		}
		if l.own == nil {
			l.own = new(unlogged)
		}
		r.host, r.logged, r.legacy, r.m, r.facts = new(host), &noLog, l, &l.own.m, l.own.few[:0]
		return r
	}
	r := new(loggedRun)
	r.host, r.logged = &r.home, &r.logs
	r.log = r
	r.desk = newDesk()
	r.run.facts = r.desk.facts[:0]
	return &r.run
}

// release gives back the lease of an amendment.
func (c *core) release(l checkpoint.Lease) {
	ctx := &graceContext{until: time.Now().Add(c.toLetGo())}
	defer ctx.end()
	_ = c.giveBack(ctx, l, true)
}

// toLetGo is how long it may take to let go of a run. However short the grace period is it is a
// moment: a lease that is not given back keeps the run from everybody.
func (c *core) toLetGo() time.Duration { return max(c.opts.Grace, aMoment) }

// giveBack gives a lease back, and tries it again for a moment if the store fails to that was well
// before: a lease without an end that is kept keeps the run from everybody, for as long as the
// process has the store.
func (c *core) giveBack(ctx context.Context, l checkpoint.Lease, well bool) (err error) {
	for wait := time.Millisecond; wait < 64*time.Millisecond; wait *= 2 {
		err = c.store.Release(ctx, l)
		if err == nil || errors.Is(err, checkpoint.ErrFenced) || errors.Is(err, checkpoint.ErrClosed) || errors.Is(err, checkpoint.ErrNotFound) {
			return nil
		}
		if !well {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
	return err
}
