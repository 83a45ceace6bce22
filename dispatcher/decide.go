package dispatcher

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// decide answers every decision that the machine has come to. User code is asked here,
// before the append that its verdict rides in, and never again. It reports whether the
// caller still owns the run.
func (r *run) decide(h *tenure) bool {
	for d, ok := r.m.next(); ok; d, ok = r.m.next() {
		h.decide = d
		ok, err := r.settle(h, d)
		if !ok {
			return false
		}
		if err != nil {
			r.undecided(d, err)
		}
	}
	h.decide = decision{}
	return true
}

func (r *run) settle(h *tenure, d decision) (bool, *userError) {
	switch d.kind {
	case vet:
		return r.vet(h, d.t)
	case enter:
		return r.enter(h, d.t)
	case merge:
		return r.merge(h, d.f)
	case end:
		return r.end(h, d.f)
	default:
		return r.bury(h, d.f)
	}
}

// ask runs user code that decides something. It reports whether the caller still owns
// the run, and how the code failed.
func (r *run) ask(h *tenure, what string, f func()) (ok bool, err *userError) {
	if !h.leave(inCall, what) {
		return false, nil
	}
	err = protect(f)
	return h.back(inCall), err
}

func protect(f func()) (err *userError) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	f()
	return nil
}

// vet asks whether a visit is interrupted before it begins, and whether it may.
func (r *run) vet(h *tenure, t *task) (bool, *userError) {
	if !t.begun() {
		stop, ok, err := r.boundary(h, t, false)
		if !ok || err != nil {
			return ok, err
		}
		if stop {
			r.interrupt(t, checkpoint.Interrupt{Kind: kindBefore})
			return true, nil
		}
	}
	if r.m.gates && !t.cleared {
		return r.gate(h, t)
	}
	r.m.pass(t)
	return true, nil
}

// boundary asks whether the run pauses before or after a visit.
func (r *run) boundary(h *tenure, t *task, after bool) (stop, ok bool, err *userError) {
	names := r.c.before
	if after {
		names = r.c.after
	}
	b := Boundary{Run: r.id, Path: t.path(), Node: t.nodePath(), After: after}
	if names.match(b, t.isItem()) {
		return true, true, nil
	}
	hook := r.c.opts.InterruptIf
	if hook == nil {
		return false, true, nil
	}
	ok, err = r.ask(h, "InterruptIf for "+b.Path, func() { stop = hook(b) })
	return stop, ok, err
}

// interrupt makes t wait, and returns the id of the interrupt.
func (r *run) interrupt(t *task, i checkpoint.Interrupt) string {
	id := uuid.NewString()
	r.add(said(checkpoint.Entry{
		Kind: checkpoint.Interrupted, Path: t.path(), Step: t.frame.step, ID: id, Data: encode(i),
	}, t))
	return id
}

// enter opens the frame of a visit that holds one. What an Embed's in wrote is its input.
func (r *run) enter(h *tenure, t *task) (bool, *userError) {
	x := said(checkpoint.Entry{Kind: checkpoint.Entered, Path: t.path()}, t)
	switch t.node.Kind {
	case dag.KindLoop:
		x.Path += "/1"
		r.add(x)
		return true, nil
	case dag.KindEach:
		return r.enterItems(h, &x)
	}
	from, to := t.frame.view.Draft(), t.node.Body.Schema.New()
	var err error
	ok, failed := r.ask(h, "the input of "+t.path(), func() {
		if t.isItem() {
			t.node.InItem(from.Value(), t.frame.items.list, int(t.at), to.Value())
		} else {
			t.node.In(from.Value(), to.Value())
		}
		err = r.input(&x, to)
	})
	if !ok || failed != nil {
		return ok, failed
	}
	if err != nil {
		return true, &userError{kind: dag.FailedState, err: err}
	}
	r.add(x)
	return true, nil
}

// input makes what was written to an empty state the input of a frame.
func (r *run) input(x *fact, written state.Image) (err error) {
	if x.delta, err = r.delta(written); err != nil {
		return err
	}
	schema := written.Schema()
	m, err := state.Merge(schema.New(), state.Image{}, []state.Write{{Delta: x.delta}})
	if !m.State.IsZero() {
		x.more().outer = m.State
	}
	return errors.Join(err, written.Check())
}

// merge ends the superstep of a frame. If it can't be merged, that is told when nothing
// runs any more.
func (r *run) merge(h *tenure, f *frame) (bool, *userError) {
	if r.mergeOne(f) {
		return true, nil
	}
	m, made, ok := r.merged(h, f)
	if !ok || !made {
		return ok, nil
	}
	held, ok, err := r.behind(h, f)
	if !ok {
		return false, nil
	}
	if err != nil {
		r.park("hook", err, nil)
		return true, nil
	}
	for _, t := range held {
		r.interrupt(t, checkpoint.Interrupt{Kind: kindAfter})
	}
	r.superstep(f, m, "")
	return true, nil
}

// behind asks which visits of a superstep the run pauses after. All verdicts are known
// before any of them becomes a fact.
func (r *run) behind(h *tenure, f *frame) (held []*task, ok bool, err *userError) {
	if !r.m.vets {
		return nil, true, nil
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.phase != finished {
			continue
		}
		stop, ok, err := r.boundary(h, t, true)
		if !ok || err != nil {
			return nil, ok, err
		}
		if stop {
			held = append(held, t)
		}
	}
	return held, true, nil
}

// mergeOne is merge for what most supersteps are: one visit, no user code that merges or
// checks, nobody to ask. It reports whether it was that simple.
func (r *run) mergeOne(f *frame) bool {
	if len(f.open) != 1 || f.calls || r.m.vets {
		return false
	}
	if f.try(state.Delta{}) != nil || f.oversize(r.c.opts.Limits.StateBytes, state.Delta{}) {
		return false
	}
	f.tried = true
	x := r.blank()
	x.Kind, x.Path, x.Step, x.f = checkpoint.Superstep, f.path, f.step, f
	r.apply()
	r.keepState(x)
	return true
}

func (r *run) superstep(f *frame, m state.Merged, outcome string) {
	x := r.blank()
	x.Kind, x.Path, x.Step, x.Outcome = checkpoint.Superstep, f.path, f.step, outcome
	x.f, x.delta = f, m.State
	if !m.Outer.IsZero() {
		x.more().outer = m.Outer
	}
	r.apply()
	r.keepState(x)
}

// keepState keeps the state at the end of a superstep for who reads along without a log.
func (r *run) keepState(x *fact) {
	for _, l := range r.audience {
		if l.listen.States && ofTheRun(x.Kind, x.Path, x.Outcome) {
			x.more().state = r.m.root.view.Draft().Value()
		}
	}
}

// merged computes the state at the end of a superstep, in the frame's spare image. If
// there is none, it is not made, and parked.
func (r *run) merged(h *tenure, f *frame) (m state.Merged, made, ok bool) {
	r.writes = f.writes(r.writes[:0])
	writes := r.writes
	defer clear(writes)
	if len(writes) > 1 {
		if err := state.Conflicts(f.plan.Schema, writes); err != nil {
			var c *state.ConflictError
			errors.As(err, &c)
			r.park("conflict", err, c.Visits[:])
			return m, false, true
		}
	}
	var err, checkErr error
	if !f.calls {
		m, err = f.merge(writes)
	} else {
		ok, failed := r.ask(h, "the merge of "+f.name(), func() {
			if m, err = f.merge(writes); err == nil {
				r.checking = true
				checkErr = f.spare.Check()
				r.checking = false
			}
		})
		switch {
		case !ok:
			return m, false, false
		case failed != nil && r.checking:
			r.checking, checkErr = false, failed
		case failed != nil:
			err = failed
		}
	}
	limit := r.c.opts.Limits.StateBytes
	switch {
	case err != nil:
		r.park("merge", err, f.finishedHere())
	case checkErr != nil:
		r.park("check", checkErr, f.finishedHere())
	case f.oversize(limit, m.State):
		r.park("limit", &LimitError{"state bytes", limit, f.name()}, f.finishedHere())
	default:
		f.tried = true
		return m, true, true
	}
	return m, false, true
}

// merge computes the merged Folds of a superstep, and its state in the spare image.
func (f *frame) merge(writes []state.Write) (state.Merged, error) {
	m, err := state.Merge(f.view, f.outer, writes)
	if err != nil {
		return m, err
	}
	return m, f.try(m.State)
}

// park keeps a superstep that can't be merged until nothing runs any more.
func (r *run) park(kind string, err error, voids []string) {
	p := parked{voids: voids, fault: fault{kind: kind, message: clip(fmt.Sprint(err))}, err: err}
	var u *userError
	if kind == "merge" || kind == "check" || kind == "hook" {
		e := &FaultError{Kind: kind, Message: p.fault.message, Err: err}
		if errors.As(err, &u) {
			e.Err, e.Stack, p.stack = u.err, u.stack, u.stack
		}
		p.err = e
	}
	p.fault.stack = p.stack
	r.parked = append(r.parked, p)
}

// end says what comes of a frame that has nothing left to run.
func (r *run) end(h *tenure, f *frame) (bool, *userError) {
	t := f.holder
	if t == nil {
		r.add(said(checkpoint.Entry{Kind: checkpoint.Completed}, nil))
		return true, nil
	}
	x := said(checkpoint.Entry{Kind: checkpoint.Done, Path: t.path(), Step: t.frame.step}, t)
	if t.node.Kind == dag.KindEmbed {
		from, to := f.view.Draft(), t.frame.view.Draft()
		ok, failed := r.ask(h, "the output of "+t.path(), func() {
			if t.isItem() {
				t.node.OutItem(from.Value(), t.frame.items.list, int(t.at), to.Value())
				return
			}
			t.node.Out(from.Value(), to.Value())
		})
		if !ok || failed != nil {
			return ok, failed
		}
		var err error
		if x.delta, err = r.delta(to); err != nil {
			return true, &userError{kind: dag.FailedState, err: err}
		}
		r.add(x)
		return true, nil
	}
	if t.node.Kind == dag.KindEach {
		x.Outcome = dag.Done
		if len(f.tasks) == 0 {
			x.Outcome = string(dag.Empty)
		}
		r.add(x)
		return true, nil
	}
	until := false
	ok, failed := r.ask(h, "until of "+t.path(), func() { until = t.node.Until(f.view.Draft().Value()) })
	if !ok || failed != nil {
		return ok, failed
	}
	switch {
	case until:
		x.Outcome = dag.Done
	case f.iteration >= t.node.Most:
		x.Outcome = string(dag.Exhausted)
	default:
		x.Kind, x.Path, x.Step = checkpoint.Entered, x.Path+"/"+strconv.Itoa(f.iteration+1), 0
	}
	r.add(x)
	return true, nil
}

// bury makes the visit that holds a failed frame fail. What a Loop or Each has finished is
// kept if the failure is followed.
func (r *run) bury(h *tenure, f *frame) (bool, *userError) {
	t := f.holder
	if records(t.node) && t.node.FailureFollowed {
		if made, ok := r.salvage(h, f); !ok || !made {
			return ok, nil
		}
	}
	failure := f.failure()
	r.fails(t, 0, checkpoint.FailedAttempt{
		Kind: string(failure.Kind), Message: failure.Message, Final: true,
		Origin: failure.Path, Attempts: failure.Attempts,
	}, r.nodeError(failure), 0)
	return true, nil
}

// salvage keeps what visits of a failed frame of a Loop or Each have finished, and before
// that what Loops and Eaches that failed inside it have. An Embed that failed gives nothing out.
func (r *run) salvage(h *tenure, f *frame) (made, ok bool) {
	if len(f.open) == 0 {
		return true, true
	}
	for _, i := range f.open {
		if t := &f.tasks[i]; t.wrecked() {
			if made, ok := r.salvage(h, t.inner); !ok || !made {
				return made, ok
			}
		}
	}
	m, made, ok := r.merged(h, f)
	if ok && made {
		r.superstep(f, m, outcomeFailed)
	}
	return made, ok
}

// undecided states what comes of user code that could not decide: the visit fails for
// which it was asked; a merge that failed is the run's fault.
func (r *run) undecided(d decision, u *userError) {
	t := d.t
	if d.kind == takeInput {
		r.refuseInput(&FaultError{Kind: "input", Message: u.tells(), Stack: u.stack, Err: u.err})
		return
	}
	if d.kind == merge && d.f.tried { // the hook behind the superstep ended the goroutine
		r.park("hook", u, nil)
		return
	}
	if d.kind == merge || d.kind == bury {
		kind := "merge"
		if r.checking {
			r.checking, kind = false, "check"
		}
		r.park(kind, u, d.f.finishedHere())
		return
	}
	if t == nil {
		t = d.f.holder
	}
	e := &NodeError{Run: r.id, Path: t.path(), Kind: u.kind, Stack: u.stack, Err: u.err}
	r.blame(e)
	r.fails(t, 0, checkpoint.FailedAttempt{
		Kind: string(u.kind), Message: clip(u.Error()), Stack: clip(string(u.stack)), Final: true,
	}, e, 0)
}

// name is how errors speak of a frame.
func (f *frame) name() string {
	if f.path == "" {
		return fmt.Sprintf("superstep %d", f.step)
	}
	return fmt.Sprintf("superstep %s@%d", f.path, f.step)
}

// finishedHere lists the visits of the open superstep of f, and of it alone, that are done
// and count.
func (f *frame) finishedHere() []string {
	var visits []string
	for _, i := range f.open {
		if t := &f.tasks[i]; t.phase == finished && t.keeps() {
			visits = append(visits, t.path())
		}
	}
	return visits
}
