package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A mode is how a call came about.
type mode uint8

const (
	modeRun mode = iota
	modeStart
	modeResume
)

// run is Run, Start and Resume.
func (c *core) run(ctx context.Context, id string, how mode, input func(any), options []ResumeOption) (*report, error) {
	if err := checkpoint.CheckRunID(id); err != nil {
		return nil, fmt.Errorf("dispatcher: %w", err)
	}
	if c.store == nil && how != modeStart {
		return nil, c.refuse(id, ErrNoStore)
	}
	if _, ok := c.strays.Load(id); ok {
		return nil, c.refuse(id, ErrStillRunning)
	}
	r := c.newRun(ctx, id)
	defer r.letGo()
	r.setUp = func() early {
		if c.store == nil {
			return early{err: r.open(input)}
		}
		return r.find(how, input, options)
	}
	return r.conclude(r.watch())
}

// find takes the run's lease and reads its log, or opens it.
func (r *run) find(how mode, input func(any), options []ResumeOption) early {
	c, ctx := r.c, r.stored // not the caller's: a run whose context is done is opened and rests
	if how == modeResume {
		if _, err := c.store.Stat(ctx, r.id); err != nil {
			return early{err: err}
		}
	}
	lease, err := c.store.Acquire(ctx, r.id, c.owner)
	if err != nil {
		return early{err: err}
	}
	r.journal.lease = lease
	m, head, err := c.load(ctx, r.id, 0)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && how != modeResume:
		return early{err: r.open(input)}
	case err != nil:
		return early{err: err}
	case how == modeStart:
		return early{m.report(r.id, head.Seq), c.refuse(r.id, ErrExists)}
	}
	r.m, r.journal.head, r.journal.since, r.journal.posts = m, head, m.read, true
	return r.resumable(how, options)
}

func (c *core) newRun(ctx context.Context, id string) *run {
	r := &run{
		c: c, id: id, parent: ctx,
		results: make(chan *visit, 1), posted: make(chan struct{}, 1),
		soft: make(chan struct{}), done: make(chan struct{}),
		due: map[*task]time.Time{}, errs: map[string]error{}, started: time.Now(),
	}
	r.strays.r = r
	r.strays.count.Store(1)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.stored, r.unhold = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// vets reports whether anybody can interrupt a visit before or after it.
func (c *core) vets() bool {
	return len(c.before) > 0 || len(c.after) > 0 || c.opts.InterruptIf != nil
}

// open makes the facts of a new run. The user's input function is called here.
func (r *run) open(input func(any)) error {
	r.m = newMachine(r.c.plan)
	r.m.vets = r.c.vets()
	schema := r.c.plan.Schema
	x := fact{Entry: checkpoint.Entry{Kind: checkpoint.Opened}, live: true}
	if input != nil {
		first := schema.New()
		if err := protect(func() { input(first.Value()) }); err != nil {
			return fmt.Errorf("input: %w", err.err)
		}
		var err error
		if x.delta, err = r.delta(first); err != nil {
			return fmt.Errorf("input: %w", err)
		}
	}
	if r.c.store != nil {
		if err := r.c.store.PutGraph(r.stored, r.c.plan.Digest, r.c.plan.JSON); err != nil {
			return err
		}
		x.Data = encode(checkpoint.Opening{Graph: r.c.plan.Name, Digest: r.c.plan.Digest})
	}
	r.add(x)
	if !r.halted() {
		r.enterRoot()
	}
	return nil
}

func (r *run) enterRoot() {
	r.add(fact{Entry: checkpoint.Entry{Kind: checkpoint.Entered}, live: true})
}

// resumable prepares a loaded run to go on, or says what the call returns because there
// is nothing to do.
func (r *run) resumable(how mode, options []ResumeOption) early {
	m := r.m
	rep := m.report(r.id, r.journal.head.Seq)
	for _, o := range options {
		if err := r.standsAt(o.from); err != nil {
			return early{rep, r.c.refuse(r.id, err)}
		}
	}
	was := m.status
	switch {
	case was == checkpoint.StatusCompleted && how == modeRun:
		return early{rep: rep}
	case was == checkpoint.StatusCompleted:
		return early{rep, r.c.refuse(r.id, ErrCompleted)}
	case was == checkpoint.StatusFailed && m.deadEnd():
		return early{rep, r.rested(rep)}
	}
	m.vets = r.c.vets()
	m.rescan()
	r.add(fact{
		Entry: checkpoint.Entry{Kind: checkpoint.Resumed, Data: encode(checkpoint.Resumption{Owner: r.c.owner, Ends: how == modeResume})},
		live:  true,
	})
	if was == checkpoint.StatusInterrupted && len(m.ready) == 0 && !m.undecided() && len(m.delays()) == 0 {
		return early{rep, r.rested(rep)} // everything that waits still does
	}
	if m.root.step == 0 && !r.halted() {
		r.enterRoot()
	}
	r.armDelays()
	return early{}
}

// armDelays lets visits go on waiting between attempts: until the instant that was
// stored, and never longer than the wait was, whatever the wall clock did meanwhile.
func (r *run) armDelays() {
	for _, t := range r.m.delays() {
		left := time.UnixMilli(t.odd.notBefore).Sub(r.c.opts.now())
		r.due[t] = time.Now().Add(max(0, min(left, t.odd.wait)))
	}
	r.wakeDue()
}

// standsAt checks the cursor that a Resume demands.
func (r *run) standsAt(from checkpoint.Cursor) error {
	head := r.journal.head.Seq
	switch {
	case from.Run != r.id:
		return fmt.Errorf("%w: %s is of another run", checkpoint.ErrCursor, from)
	case from.Seq == 0 || from.Seq > head:
		return fmt.Errorf("%w: %s is behind the end of the log, which has %d entries", checkpoint.ErrCursor, from, head)
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
		}
		return r.early.rep, r.early.err
	}
	if !rested || r.err != nil {
		rep := &report{}
		rep.Run, rep.Status = r.id, checkpoint.StatusRunning
		rep.Cursor = checkpoint.Cursor{Run: r.id}
		rep.Abandoned = r.names
		return rep, r.c.refuse(r.id, r.err)
	}
	rep := r.m.report(r.id, r.journal.head.Seq)
	rep.Abandoned = r.names
	if rep.Status == checkpoint.StatusCompleted {
		return rep, nil
	}
	return rep, r.rested(rep)
}

// rested makes the error of a run at rest.
func (r *run) rested(rep *report) error {
	e := &Rest{Run: r.id, Status: rep.Status, Cursor: rep.Cursor, Interrupts: rep.Interrupts}
	switch {
	case rep.Status == checkpoint.StatusFailed && len(r.parked) > 0:
		e.Cause = r.parked[0].err
	case rep.Status == checkpoint.StatusFailed && r.m.fault != nil:
		e.Cause = &FaultError{r.m.fault.kind, r.m.fault.message}
	case rep.Status == checkpoint.StatusFailed && len(rep.Failures) > 0:
		e.Cause = r.nodeError(&rep.Failures[0])
	case rep.Status == checkpoint.StatusCancelled, rep.Status == checkpoint.StatusTimedOut, rep.Status == checkpoint.StatusRunning:
		if e.Cause = context.Cause(r.ctx); e.Cause == nil {
			e.Cause = context.Cause(r.parent)
		}
	}
	return e
}

// letGo lets go of everything that the call holds, but for what strays still need.
func (r *run) letGo() {
	r.cancel(context.Canceled)
	r.unhold()
	if r.reading != nil && r.err == nil {
		<-r.reading
	}
	if r.strays.count.Load() > 1 {
		r.c.strays.Store(r.id, &r.strays)
	}
	r.strays.returned()
}

// release gives a lease back. A store that can't has its own way to end leases.
func (c *core) release(l checkpoint.Lease) {
	if c.store != nil && l.Run != "" {
		_ = c.store.Release(context.Background(), l)
	}
}

// cancelRun is Cancel.
func (c *core) cancelRun(ctx context.Context, id string, cause error) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	text := ""
	if cause != nil {
		text = cause.Error()
	}
	return c.tellRun(ctx, id, checkpoint.Post{ID: "cancel:" + NewRunID(), Kind: postCancel, Data: encode(text)},
		func(m *machine) (checkpoint.Entry, error) {
			return checkpoint.Entry{Kind: checkpoint.Cancelled, Data: encode(checkpoint.Resting{Cause: text})}, nil
		})
}

// answerInterrupt is Answer.
func (c *core) answerInterrupt(ctx context.Context, id, interrupt string, value any) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	answer, err := marshal(value)
	if err != nil {
		return &AnswerError{id, interrupt, err.Error(), ErrAnswerType}
	}
	post := checkpoint.Post{ID: "answer:" + interrupt, Kind: postAnswer, Data: encode(postedAnswer{interrupt, answer})}
	return c.tellRun(ctx, id, post, func(m *machine) (checkpoint.Entry, error) {
		p := m.waits[interrupt]
		if p == nil {
			return checkpoint.Entry{}, &AnswerError{id, interrupt, "no such interrupt waits", ErrNotAwaited}
		}
		if err := p.accepts(answer); err != nil {
			return checkpoint.Entry{}, &AnswerError{id, interrupt, plain(err), ErrAnswerType}
		}
		return checkpoint.Entry{Kind: checkpoint.Answered, ID: interrupt, Data: answer}, nil
	})
}

func (c *core) exists(ctx context.Context, id string) error {
	if err := checkpoint.CheckRunID(id); err != nil {
		return fmt.Errorf("dispatcher: %w", err)
	}
	if c.store == nil {
		return c.refuse(id, ErrNoStore)
	}
	if _, err := c.store.Stat(ctx, id); err != nil {
		return c.refuse(id, err)
	}
	return nil
}

// tellRun adds an entry to a run that is at rest, or posts the message to a live one.
// What makes the entry also says why the message can't be accepted.
func (c *core) tellRun(ctx context.Context, id string, post checkpoint.Post, entry func(*machine) (checkpoint.Entry, error)) error {
	lease, err := c.store.Acquire(ctx, id, c.owner)
	live := errors.Is(err, checkpoint.ErrBusy)
	if err != nil && !live {
		return c.refuse(id, err)
	}
	if !live {
		defer c.release(lease)
	}
	m, head, err := c.load(ctx, id, 0)
	if err != nil {
		return c.refuse(id, err)
	}
	if m.status == checkpoint.StatusCompleted {
		return c.refuse(id, ErrCompleted)
	}
	e, err := entry(m)
	if err != nil {
		return err
	}
	if live {
		err = c.store.Post(ctx, id, post)
		if errors.Is(err, checkpoint.ErrConflict) {
			return &AnswerError{id, e.ID, "another answer was given", ErrNotAwaited}
		}
	} else if m.status != checkpoint.StatusCancelled || e.Kind != checkpoint.Cancelled {
		_, err = c.store.Append(ctx, lease, head, []checkpoint.Entry{e})
	}
	if err != nil {
		return c.refuse(id, err)
	}
	return nil
}

var _ dag.Visit = (*visit)(nil)
