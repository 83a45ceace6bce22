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
)

// old reports whether the call is for runs that exist.
func (m mode) old() bool { return m == modeResume || m == modeContinue || m == modeTurn }

// run is Run, Start, Resume, Continue and Turn.
func (c *core) run(ctx context.Context, id string, how mode, input func(any), options []RunOption) (*report, error) {
	if err := c.called(ctx); err != nil {
		return nil, err
	}
	if err := checkpoint.CheckRunID(id); err != nil {
		return nil, fmt.Errorf("dispatcher: %w", err)
	}
	w, err := c.wish(how, options)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	if c.store == nil && how != modeStart {
		return nil, c.refuse(id, ErrNoStore)
	}
	if _, ok := c.strays.Load(id); ok {
		return nil, c.refuse(id, ErrStillRunning)
	}
	r := c.newRun(ctx, id)
	r.drain = w.drain
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
	rep, err := r.conclude(rested)
	abandoned := r.finishing(rep, err, rested)
	r.letGo()
	if rep != nil && r.atRest {
		if warning := c.retain(ctx, id); warning != "" {
			rep.Warnings = append(rep.Warnings, warning)
		}
	}
	if rep != nil {
		rep.Abandoned = abandoned
		if r.stuck != errAtHome { // else nothing of r is ours
			rep.Abandoned = slices.Concat(r.names, abandoned)
		}
	}
	return rep, err
}

// find takes the run's lease and reads its log, or opens it.
func (r *run) find(w *wishes, input func(any)) early {
	c, ctx := r.c, r.stored // not the caller's: a run whose context is done is opened and rests
	r.wishes = w
	if w.how.old() {
		if _, err := c.store.Stat(ctx, r.id); err != nil {
			return early{err: missing(err)}
		}
	}
	lease, err := c.acquire(ctx, r.id)
	if err != nil {
		return early{err: err}
	}
	r.journal.lease = lease
	m, head, err := c.load(ctx, r.id, 0)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && !w.how.old():
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
	r.found = posts
	waits := false
	for _, p := range posts {
		switch {
		case p.Kind == postCancel && (m.status.Resting() || m.status == checkpoint.StatusCompleted):
			r.moot = append(r.moot, p.ID) // too late for the last call, and no wish for this one
		case p.Kind == postTurn: // posted again, it is only drained
			waits = waits || !m.seen[p.ID] || w.how != modeResume
		}
	}
	r.m, r.journal.head, r.journal.since, r.journal.posts = m, head, m.read, len(posts) > 0
	m.about(r.about.Load())
	r.journal.tip = head
	r.durable.Store(head.Seq)
	if m.status == checkpoint.StatusCompleted && (waits || w.how == modeTurn) {
		return r.furtherTurn(w, input)
	}
	return r.resumable(w)
}

// acquire takes the lease of a run. Of one at rest an Answer or a Cancel may have it for a
// moment, which is waited for.
func (c *core) acquire(ctx context.Context, id string) (checkpoint.Lease, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		lease, err := c.store.Acquire(ctx, id, c.owner)
		if !errors.Is(err, checkpoint.ErrBusy) || wait > 64*time.Millisecond {
			return lease, err
		}
		info, serr := c.store.Stat(ctx, id)
		if serr != nil || !info.Status.Resting() {
			return lease, err
		}
		if _, ok := c.strays.Load(id); ok {
			return lease, err
		}
		select {
		case <-ctx.Done():
			return lease, err
		case <-time.After(wait):
		}
	}
}

func (c *core) newRun(ctx context.Context, id string) *run {
	r := &run{
		c: c, id: id, parent: ctx,
		results: make(chan struct{}, 1), soft: make(chan struct{}), done: make(chan struct{}),
		started: time.Now(),
	}
	r.about.Store(&about{c: c, run: id, graph: c.plan.Name, turn: 1})
	r.strays.r = r
	r.strays.count.Store(1)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if c.store != nil {
		r.posted, r.journal.mutex = make(chan struct{}, 1), make(chan struct{}, 1)
		r.stored, r.unhold = context.WithCancel(context.WithoutCancel(ctx))
	}
	return r
}

// vets reports whether anybody can interrupt a visit before or after it.
func (c *core) vets() bool {
	return len(c.before) > 0 || len(c.after) > 0 || c.opts.InterruptIf != nil
}

// asksBefore reports whether anybody is asked whether a visit may begin.
func (c *core) asksBefore() bool { return len(c.interceptors) > 0 || c.gates.vetting() }

// open makes the facts of a new run. The user's input function is called here.
func (r *run) open(w *wishes, input func(any)) error {
	r.m = newMachine(r.c.plan)
	r.m.vets, r.m.gates = r.c.vets(), r.c.asksBefore()
	schema := r.c.plan.Schema
	x := said(checkpoint.Entry{Kind: checkpoint.Opened}, nil)
	first := schema.New()
	var err error
	failed := protect(func() {
		if input != nil {
			input(first.Value())
		}
		err = r.input(&x, first)
	})
	if failed != nil {
		return &FaultError{Kind: "input", Message: failed.tells(), Stack: failed.stack, Err: failed.err}
	}
	if err != nil {
		return &FaultError{Kind: "input", Message: fmt.Sprint(err), Err: err}
	}
	if r.c.store != nil {
		if err := r.c.store.PutGraph(r.stored, r.c.plan.Digest, r.c.plan.JSON); err != nil {
			return err
		}
	}
	if o := w.opening(r.c); o != nil {
		x.more().opening, x.more().Data = o, encode(o)
	}
	r.add(x)
	r.m.about(r.about.Load())
	if !r.halted() {
		r.enterRoot()
	}
	return nil
}

func (r *run) enterRoot() {
	r.add(said(checkpoint.Entry{Kind: checkpoint.Entered}, nil))
}

// resumable prepares a loaded run to go on, or says what the call returns because there
// is nothing to do.
func (r *run) resumable(w *wishes) early {
	m := r.m
	rep, unfit := r.c.report(m, r.id, r.journal.head.Seq)
	r.stood = rep
	if err := r.admits(w); err != nil {
		return early{rep, r.c.refuse(r.id, err)}
	}
	was := m.status
	switch {
	case w.how == modeTurn:
		return early{rep, r.c.refuse(r.id, fmt.Errorf("%w: it is %s: bring it to its end with Resume, or leave the input with Enqueue", ErrNotCompleted, was))}
	case was == checkpoint.StatusCompleted && w.how != modeResume:
		return early{rep, r.c.refuse(r.id, unfit)}
	case was == checkpoint.StatusCompleted:
		return early{rep, r.c.refuse(r.id, fmt.Errorf("%w: Turn gives it new input, Fork tries another way", ErrCompleted))}
	}
	if w.manual {
		if err := m.doubts(r.id); err != nil {
			return early{rep, err}
		}
	}
	if m.plan != r.c.plan {
		if err := r.adopt(); err != nil {
			return early{rep, r.c.refuse(r.id, err)}
		}
		rep = m.report(r.id, r.journal.head.Seq)
	}
	if was == checkpoint.StatusFailed && m.deadEnd() {
		return early{rep, r.rested(rep)}
	}
	if err := m.checkStates(); err != nil {
		return early{rep, r.c.refuse(r.id, err)}
	}
	if err := r.c.recompute(m.root); err != nil {
		return early{rep, r.c.refuse(r.id, err)}
	}
	voids, err := r.freshen()
	if err != nil {
		return early{rep, r.c.refuse(r.id, err)}
	}
	m.vets, m.gates = r.c.vets(), r.c.asksBefore()
	r.takeAnswers(r.found) // before a resume ends what somebody has rejected
	r.add(said(checkpoint.Entry{
		Kind: checkpoint.Resumed,
		Data: encode(checkpoint.Resumption{Owner: r.c.owner, Ends: w.how == modeResume}),
	}, nil))
	if len(voids) > 0 {
		r.add(said(checkpoint.Entry{Kind: checkpoint.Voided, Data: encode(voids)}, nil))
	}
	m.rescan() // behind the resume, as a replay would: the first items get the places
	changes := w.changes(&m.told)
	if changes {
		r.add(said(w.change(), nil))
	}
	r.armExpiries()
	if was == checkpoint.StatusInterrupted && !changes && !r.journal.posts && m.waitsOnly() && len(r.overdue()) == 0 {
		return early{rep, r.rested(rep)} // everything that waits still does
	}
	if !m.root.begun() && !r.halted() {
		r.enterRoot()
	}
	r.armDelays()
	return early{}
}

// checkStates calls the Check of the state of every open frame.
func (m *machine) checkStates() error {
	return m.root.checkStates()
}

func (f *frame) checkStates() error {
	var err error
	if u := protect(func() { err = f.view.Draft().Check() }); u != nil {
		return &FaultError{Kind: "check", Message: u.Error(), Stack: u.stack, Err: u.err}
	}
	if err != nil {
		return &FaultError{Kind: "check", Message: fmt.Sprint(err), Err: err}
	}
	for _, i := range f.open {
		if inner := f.tasks[i].inner; inner != nil {
			if err := inner.checkStates(); err != nil {
				return err
			}
		}
	}
	return nil
}

// armDelays lets visits go on waiting between attempts: until the instant that was
// stored, and never longer than the wait was, whatever the wall clock did meanwhile.
func (r *run) armDelays() {
	for _, t := range r.m.delays() {
		left := time.Unix(0, t.odd.notBefore).Sub(r.c.opts.now())
		if r.due == nil {
			r.due = map[*task]time.Time{}
		}
		r.due[t] = time.Now().Add(max(0, min(left, t.odd.wait)))
	}
	r.wakeDue()
}

// admits reports why a call with these wishes can't go on with the run.
func (r *run) admits(w *wishes) error {
	if err := r.standsAt(w.from); err != nil {
		return err
	}
	return w.fits(&r.m.told)
}

// standsAt checks the cursor that a Resume demands.
func (r *run) standsAt(from *checkpoint.Cursor) error {
	head := r.journal.head.Seq
	switch {
	case from == nil:
		return nil
	case from.Run != r.id:
		return fmt.Errorf("%w: %s is of another run", checkpoint.ErrCursor, from)
	case from.Seq == 0 || from.Seq > head:
		return fmt.Errorf("%w: %s is not in the log, which ends at %d", checkpoint.ErrCursor, from, head)
	case from.Seq < head:
		return fmt.Errorf("%w: %s, the head is %d", ErrStaleCursor, from, head)
	}
	at := checkpoint.Cursor{Run: r.id, Seq: head, Visits: r.m.cursor()}
	if len(from.Visits) > 0 && from.String() != at.String() {
		return fmt.Errorf("%w: %s, the run stands at %s", checkpoint.ErrCursor, from, at)
	}
	return nil
}

// conclude makes the result of a call whose run has come to rest, or is stuck.
func (r *run) conclude(rested bool) (*report, error) {
	if rested && r.early.now() {
		if r.early.rep == nil {
			r.early.err = r.c.refuse(r.id, r.early.err)
		} else {
			r.early.rep.Warnings = r.warnings
		}
		return r.early.rep, r.early.err
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
		return rep, r.c.refuse(r.id, err)
	}
	rep := r.m.report(r.id, r.journal.head.Seq)
	rep.Warnings = r.warnings
	var err error
	if rep.Status != checkpoint.StatusCompleted {
		err = r.rested(rep)
		r.tellLeft(err) // it was drained, if nothing has told that it rests
	}
	rep.Abandoned = r.names
	return rep, err
}

// rested makes the error of a run at rest.
func (r *run) rested(rep *report) error {
	e := &Rest{Run: r.id, Status: rep.Status, Cursor: rep.Cursor, Interrupts: rep.Interrupts}
	switch {
	case rep.Status == checkpoint.StatusFailed && len(r.parked) > 0:
		e.Cause = r.parked[0].err
	case rep.Status == checkpoint.StatusFailed && r.m.fault != nil:
		e.Cause = &FaultError{Kind: r.m.fault.kind, Message: r.m.fault.message, Stack: r.m.fault.stack}
	case rep.Status == checkpoint.StatusFailed && len(rep.Failures) > 0:
		e.Cause = r.nodeError(&rep.Failures[0])
	case rep.Status == checkpoint.StatusCancelled, rep.Status == checkpoint.StatusTimedOut,
		rep.Status == checkpoint.StatusRunning, rep.Status == checkpoint.StatusPending:
		if e.Cause = r.drained; e.Cause == nil {
			e.Cause = r.cause()
		}
	}
	return e
}

// letGo lets go of everything that the call holds, but for what strays still need. It is
// the last thing that a call waits for, and ends with the grace period.
func (r *run) letGo() {
	r.cancel(context.Canceled)
	if r.unhold != nil {
		r.unhold()
	}
	r.await(r.reading, doingPosts)
	if r.strays.count.Load() > 1 {
		r.c.strays.Store(r.id, &r.strays)
	}
	if r.strays.count.Load() > 1 || r.released || r.journal.lease.Run == "" {
		r.strays.returned()
		return
	}
	given := make(chan struct{})
	go func() { // await waits for it, or abandons it
		defer close(given)
		r.strays.returned()
	}()
	r.await(given, "releasing the lease in the store")
}

// await waits for a goroutine of the call until the grace period is over, and abandons it
// then. Nil is none.
func (r *run) await(ended chan struct{}, doing string) {
	if ended == nil {
		return
	}
	select {
	case <-ended:
		return
	default:
	}
	left := r.c.opts.Grace
	if !r.graceEnd.IsZero() {
		left = time.Until(r.graceEnd)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		if r.stuck != errAtHome {
			r.names = append(r.names, doing)
		}
	}
}

// release gives a lease back. A store that can't has its own way to end leases.
func (c *core) release(l checkpoint.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
	defer cancel()
	_ = c.store.Release(ctx, l)
}
