package dispatcher

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// merge ends the superstep of a frame. If it can't be merged, that is told when nothing
// runs any more.
func (r *run) merge(h *tenure, f *frame) (bool, *userError) {
	if r.mergePlain(f) {
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

// apart reports whether all visits of the open superstep have finished, and clearly don't conflict:
// what merges has no need to know who wrote what.
func (f *frame) apart() bool {
	for _, i := range f.open {
		if f.tasks[i].phase != finished {
			return false
		}
	}
	return state.Apart(f.plan.Schema, f.deltas)
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

// mergePlain is merge for what most supersteps are: one visit, or several that have finished and
// didn't write to the same cells but by merging; no user code that merges or checks, nobody to ask.
// It reports whether it was that simple.
func (r *run) mergePlain(f *frame) bool {
	if f.calls || r.m.vets || len(f.open) != 1 && (f.items != nil || !f.apart()) {
		return false
	}
	if f.recordable(state.Delta{}) != nil || f.try(state.Delta{}) != nil || f.oversize(r.c.opts.Limits.StateBytes, state.Delta{}) {
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
	var writes []state.Write
	if f.calls || !f.apart() {
		r.writes = f.writes(slices.Grow(r.writes[:0], len(f.open)))
		writes = r.writes
		defer clear(writes)
	}
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
				checkErr = sound(f.spare.Check())
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
	case m.State.Size()+m.Outer.Size() > mergedBytes:
		r.park("limit", &LimitError{"merged bytes", mergedBytes, f.name()}, f.finishedHere())
	default:
		f.tried = true
		return m, true, true
	}
	return m, false, true
}

// mergedBytes is what the merged Folds of a superstep may come to, with what its frame records of
// them: they are one entry, which has to fit into an append of any store.
const mergedBytes = 48 << 20

// merge computes the merged Folds of a superstep, and its state in the spare image.
func (f *frame) merge(writes []state.Write) (state.Merged, error) {
	m, err := state.Merge(f.view, f.outer, writes)
	if err != nil {
		return m, sound(err)
	}
	if err := f.recordable(m.Outer); err != nil {
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

// name is how errors speak of a frame.
func (f *frame) name() string {
	if f.path == "" {
		return fmt.Sprintf("superstep %d", f.step)
	}
	return fmt.Sprintf("superstep %s@%d", f.path, f.step)
}

// finishedHere lists the visits of the open superstep of f, and of it alone, that are done and
// count, and the Loops and Eaches that failed: what they have finished counts as well. What is
// salvaged is not among them: it is merged.
func (f *frame) finishedHere() []string {
	var visits []string
	for _, i := range f.open {
		if t := &f.tasks[i]; t.keeps() && !t.salvaged() && (t.phase == finished || records(t.node)) {
			visits = append(visits, t.path())
		}
	}
	return visits
}

// parked is a superstep that can't be merged. It is told when nothing runs any more,
// since what it voids and the failure are one append.
type parked struct {
	voids []string
	fault fault
	err   error
	stack []byte
}
