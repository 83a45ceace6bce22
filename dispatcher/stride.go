package dispatcher

import (
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// Most supersteps of most runs are one visit of a plain function, which writes to its draft and
// does nothing else that anybody would have to be asked or told. Loop would make two facts and two
// decisions of each; stride comes to the same log and the same machine in one go. Whatever is not
// as plain as that ends it, and loop goes on from where it stands: nothing here is done that loop
// could not have done.

// strides reports whether t, which is alone, may be run by stride.
func (r *run) strides(t *task) bool {
	m := r.m
	return t.plain() && len(t.frame.open) == 1 && !t.frame.calls && t.frame.outer.IsZero() && !m.vets && !m.gates &&
		m.shelf == nil && len(r.facts) == 0 && len(r.c.interceptors) == 0 && r.c.slots == nil && !r.overheard()
}

// plain reports whether nothing is to be known of t but its function.
func (t *task) plain() bool {
	return t.node.Run != nil && t.odd == nil && t.frame.items == nil && t.node.Policy.Timeout == 0
}

// overheard reports whether somebody listens to more than the log.
func (r *run) overheard() bool { return r.c.opts.Observe != nil || len(r.listeners()) > 0 }

// silent reports whether nobody hears of facts that change nothing but the machine.
func (r *run) silent() bool { return r.c.store == nil && !r.overheard() }

// stride runs t, and the supersteps that follow it for as long as they are as plain. It reports
// whether the owner's goroutine still owns the run.
func (r *run) stride(h *tenure, t *task) bool {
	for {
		v := r.newVisit(t)
		h.visit = v
		if !h.leave(inNode, "") {
			return false
		}
		v.call()
		if !h.back(inNode) {
			return false
		}
		h.visit = nil
		next, ok := r.step(v)
		if !ok {
			r.land(v)
			return true
		}
		if next == nil {
			return true // what loop decides next shares the append
		}
		if len(r.facts) > 0 && !r.commit(h, false) {
			return false
		}
		if r.halted() || r.limited() || len(r.posted) > 0 || len(r.facts) > 0 || r.overheard() {
			r.m.ready = append(r.m.ready, next)
			return true
		}
		t = next
	}
}

// step ends the superstep of a visit that has returned. It reports whether that was as plain as its
// beginning, and the visit to go on with, if the next superstep has begun and is plain as well.
func (r *run) step(v *visit) (next *task, ok bool) {
	if v.failed != nil || v.did.Load() != nil {
		return nil, false
	}
	var d state.Delta
	if r.written(v, &d) != nil {
		return nil, false // land finds the same
	}
	t, f, m := v.t, v.t.frame, r.m
	if !f.fits(d.Size(), r.c.opts.Limits.StateBytes) || !f.view.TryApply(&d) {
		return nil, false // merge finds why, or that it does
	}
	if r.c.store != nil {
		x := r.blank()
		x.Kind, x.Path, x.Step, x.Outcome, x.t, x.delta = checkpoint.Done, v.path(), f.step, v.outcome(), t, d
		x = r.blank()
		x.Kind, x.Path, x.Step, x.f = checkpoint.Superstep, f.path, f.step, f
	}
	return m.stepped(t, v.outcome()), true
}

// stepped is what done and superstep come to for a visit that is alone in its superstep, and whose
// delta is part of the frame's state. It returns the next visit if that is as plain.
func (m *machine) stepped(t *task, outcome string) (next *task) {
	f := t.frame
	m.steps++
	if f.holder == nil && m.effects != nil { // what is as it should be is not written again: the collector would look
		m.effects = nil
	}
	if t.phase = done; t.outcome != outcome {
		t.outcome = outcome
	}
	f.left = 0
	f.settle(int(f.open[0]))
	f.open = f.open[:0]
	if len(f.next) != 1 || !f.tasks[f.next[0]].plain() {
		slices.Sort(f.next)
		m.proceed(f)
		return nil
	}
	f.step++
	f.open = append(f.open, f.next[0])
	f.next = f.next[:0]
	f.left = 1
	next = &f.tasks[f.open[0]]
	next.at, next.phase = 0, ready
	return next
}

// fits reports whether the state is surely no larger than limit with a delta of so many bytes
// applied.
func (f *frame) fits(size, limit int) bool {
	if f.bound == 0 || f.bound+size > limit {
		f.bound = f.view.Size()
	}
	if f.bound+size > limit {
		return false
	}
	f.bound += size
	return true
}
