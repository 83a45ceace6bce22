package dispatcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// resumable prepares a loaded run to go on, or says what the call returns because there
// is nothing to do.
func (r *run) resumable(w *wishes) early {
	m, was := r.m, r.m.status
	if r.c.opts.Hooks.OnStart != nil {
		r.stood = r.stands(was)
	}
	if err := r.admits(w); err != nil {
		return early{r.stands(was), r.c.refuse(r.id, err)}
	}
	switch {
	case w.how == modeTurn:
		return early{r.stands(was), r.c.refuse(r.id, fmt.Errorf("%w: it is %s: %s, or leave the input with Enqueue", ErrNotCompleted, was, m.unfinished()))}
	case was == checkpoint.StatusCompleted && w.how != modeResume:
		rep, unfit := r.untouched()
		return early{rep, r.c.refuse(r.id, unfit)}
	case was == checkpoint.StatusCompleted:
		return early{r.stands(was), r.c.refuse(r.id, fmt.Errorf("%w: Turn gives it new input, Fork tries another way", ErrCompleted))}
	}
	told := r.giving != nil || r.foundWork() // and may say what came of what is in doubt
	if w.manual && !told {
		if err := m.doubts(r.id); err != nil {
			return early{r.stands(was), err}
		}
	}
	var stood *report // if the run comes to another graph
	if m.plan != r.c.plan {
		stood = r.stands(was)
		if err := r.adopt(); err != nil {
			return early{r.stands(was), r.c.refuse(r.id, err)}
		}
	}
	if was == checkpoint.StatusFailed && m.fault == nil && m.deadEnd() { // of a fault, what it has stopped goes on
		rep := r.stands(was)
		return early{rep, r.rested(rep)}
	}
	if err := r.asking("check", m.checkStates); err != nil {
		return early{r.stands(was), r.c.refuse(r.id, err)}
	}
	voids, err := r.freshen()
	if err == nil {
		err = r.asking("items", func() error { return r.c.recompute(m.root, voids...) })
	}
	if err != nil {
		return early{r.stands(was), r.c.refuse(r.id, err)}
	}
	m.vets, m.gates = r.c.vets(), r.c.asksBefore()
	if e := r.sayTold(w.manual && told, was); e.now() {
		return e
	}
	renews, err := r.hadFailed(was)
	if err != nil {
		return early{r.stands(was), r.c.refuse(r.id, err)}
	}
	resumed, data := &r.c.resumes, r.c.resumed
	if w.how == modeResume || renews {
		resumed = &checkpoint.Resumption{Owner: r.c.owner, Ends: w.how == modeResume, Renews: renews}
		data = encode(resumed)
	}
	x := r.said(&checkpoint.Entry{Kind: checkpoint.Resumed, Data: data}, nil)
	x.more().resumed = resumed
	r.add(x)
	if len(voids) > 0 {
		r.add(r.said(&checkpoint.Entry{Kind: checkpoint.Voided, Data: encode(voids)}, nil))
	}
	m.rescan() // behind the resume, as a replay would: the first items get the places
	changes := w.changes(&m.told)
	if changes {
		r.add(r.said(w.change(), nil))
	}
	r.armExpiries(w.expire)
	if was == checkpoint.StatusInterrupted && !r.halting && !changes && !r.foundWork() && m.waitsOnly() && len(r.overdue()) == 0 {
		if rep := r.stands(was); stood == nil || slices.Equal(rep.Cursor.Visits, stood.Cursor.Visits) {
			return early{rep, r.rested(rep)} // everything that waits still does
		}
	}
	if !m.root.begun() && !r.halted() {
		r.enterRoot()
	}
	r.armDelays()
	return early{}
}

// hadFailed reports whether a run that is Cancelled had rested as Failed when somebody cancelled
// it. One that was cancelled beside a failure had not, and rests by that before anything runs
// again.
func (r *run) hadFailed(was checkpoint.Status) (failed bool, err error) {
	m := r.m
	if was != checkpoint.StatusCancelled || len(m.failures()) == 0 || m.deadEnd() {
		return false, nil
	}
	info, err := r.c.store.Stat(r.stored, r.id)
	if err != nil {
		return false, err
	}
	looking := true
	err = r.c.backward(r.stored, &info, r.journal.head.Seq, func(e *checkpoint.Entry) (bool, error) {
		if was.After(e.Kind) != was {
			looking, failed = false, e.Kind == checkpoint.Failed
		}
		return looking, nil
	})
	return failed, err
}

// sayTold says what was posted, and what the call itself answers, before a resume ends what
// somebody has rejected. A call that is manual goes no further if an effect is in doubt all the
// same: nothing of this is durable then.
func (r *run) sayTold(manual bool, was checkpoint.Status) early {
	var stood *report
	if manual {
		stood = r.stands(was)
	}
	r.sayAll(r.m.queued(r.unsaid(r.found), nil).line)
	r.sayAll(r.giving)
	if !manual {
		return early{}
	}
	for _, p := range r.found {
		if p.Kind == checkpoint.PostResolution {
			r.sayAll([]checkpoint.Entry{r.m.drained(p)})
		}
	}
	if err := r.m.doubts(r.id); err != nil {
		return early{stood, err}
	}
	return early{}
}

// foundWork reports whether something was posted that is not input: that waits until the run is
// completed.
func (r *run) foundWork() bool {
	return slices.ContainsFunc(r.found, func(p checkpoint.Post) bool { return p.Kind != checkpoint.PostTurn })
}

// repeated is what drains input that was posted again when it had been taken: nothing else is to be
// done about it. A call that is about to be refused, for where the run stands or for its status,
// leaves it. Else From means where that leads.
func (r *run) repeated(m *machine, head checkpoint.Head, posts []checkpoint.Post) (lines []checkpoint.Entry) {
	w, refuses := r.wishes, modeTurn
	if m.status == checkpoint.StatusCompleted {
		refuses = modeResume
	}
	if w.how == refuses || m.standsAt(r.id, head.Seq, w.from) != nil {
		return nil
	}
	for _, p := range posts {
		if p.Kind == checkpoint.PostTurn && m.seen[p.ID] {
			lines = append(lines, m.drained(p))
		}
	}
	if w.from != nil && len(lines) > 0 {
		from := *w.from
		from.Seq += uint64(len(lines))
		w.from = &from
	}
	return lines
}

// stands is what the run was before the call, which has changed nothing in it but the status, and
// perhaps its graph.
func (r *run) stands(was checkpoint.Status) *report {
	rep, _ := r.c.report(r.m, r.id, r.journal.head.Seq)
	rep.Status = was
	return rep
}

// untouched is what a run is with which the call does not go on: its state is as a Migration makes
// it, if that of its graph can't be read. The error says why there is none.
func (r *run) untouched() (*report, error) {
	rep, unfit := r.c.report(r.m, r.id, r.journal.head.Seq)
	if unfit != nil {
		unfit = r.asking("migration", func() (err error) {
			rep.state, err = r.c.carriedState(r.id, r.m, "", unfit)
			return err
		})
	}
	return rep, unfit
}

// checkStates calls the Check of the state of every open frame.
func (m *machine) checkStates() error {
	return m.root.checkStates()
}

func (f *frame) checkStates() error {
	if err := f.checkState(); err != nil {
		return err
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

func (f *frame) checkState() (err error) {
	if !f.view.Schema().CallsUser() {
		return nil
	}
	if u := protect(func() { err = sound(f.view.Draft().Check()) }); u != nil {
		return &FaultError{Kind: "check", Message: u.Error(), Stack: u.stack, Err: u.err}
	}
	if err != nil {
		return &FaultError{Kind: "check", Message: fmt.Sprint(err), Err: err}
	}
	return nil
}

// armDelays lets visits go on waiting between attempts: until the instant that was
// stored, and never longer than the wait was, whatever the wall clock did meanwhile.
func (r *run) armDelays() {
	for _, t := range r.m.delays() {
		left := time.Unix(0, t.odd.notBefore).Sub(r.c.opts.Now())
		r.due = r.due.set(t, time.Now().Add(max(0, min(left, t.odd.wait))))
	}
	r.wakeDue()
}

// admits reports why a call with these wishes can't go on with the run.
func (r *run) admits(w *wishes) error {
	if err := r.standsAt(w.from); err != nil {
		return err
	}
	for _, id := range w.expire {
		switch p := r.m.waits[id]; {
		case p == nil:
			return fmt.Errorf("%w: Expire of %q: no such question waits: Open tells which do", ErrNotAwaited, id)
		case p.ask.Until.IsZero():
			return fmt.Errorf("%w: Expire of %q: it never expires: Answer it, or Skip it", ErrNotAwaited, id)
		}
	}
	return w.fits(&r.m.told)
}

// standsAt checks the cursor that a Resume demands.
func (r *run) standsAt(from *checkpoint.Cursor) error {
	return r.m.standsAt(r.id, r.journal.head.Seq, from)
}

// standsAt reports why a cursor, which may be nil, is not where a run stands that ends at head.
func (m *machine) standsAt(id string, head uint64, from *checkpoint.Cursor) error {
	switch {
	case from == nil:
		return nil
	case from.Run != id:
		return fmt.Errorf("%w: %s is of another run", checkpoint.ErrCursor, from)
	case from.Seq == 0 || from.Seq > head:
		return fmt.Errorf("%w: %s is not in the log, which ends at %d", checkpoint.ErrCursor, from, head)
	case from.Seq < head:
		return fmt.Errorf("%w: %s, the head is %d", ErrStaleCursor, from, head)
	}
	at := checkpoint.Cursor{Run: id, Seq: head, Visits: m.cursor()}
	if len(from.Visits) > 0 && from.String() != at.String() {
		return fmt.Errorf("%w: %s, the run stands at %s", checkpoint.ErrCursor, from, at)
	}
	return nil
}
