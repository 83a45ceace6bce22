package dispatcher

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
)

// decide answers every decision that the machine has come to. User code is asked here, before the
// append that its verdict rides in, and once that is durable never again. It reports whether the
// caller still owns the run.
func (r *run) decide(h *tenure) bool {
	seen, waits := 0, 0 // of the facts that wait for the append: those that were looked at, and their bytes
	at := r.journal.head.Seq
	for {
		if at != r.journal.head.Seq { // what was decided last has made them durable
			seen, waits, at = 0, 0, r.journal.head.Seq
		}
		for ; r.c.store != nil && seen < len(r.facts); seen++ {
			waits += r.facts[seen].size()
		}
		if waits > decidedBytes {
			if seen, waits = 0, 0; !r.flush(h) {
				return false
			}
		}
		d, ok := r.m.next()
		if !ok {
			return true
		}
		h.decide = d
		ok, err := r.settle(h, d)
		if !ok {
			return false
		}
		if err != nil {
			r.undecided(d, err)
		}
		h.decide = decision{}
	}
}

// decidedBytes is how much may wait for an append before what is decided next has to wait for the
// one behind it. A hundred inputs of frames, or questions of interceptors, may be more than a store
// takes in one. What is decided then has at most mergedBytes, and with them an append is still one
// that any store takes, of 64 MiB.
const decidedBytes = 10 << 20

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

// A whose says whose code is asked that is not the graph's own. The zero whose is nobody.
type whose struct{ option, interceptor string }

// blames says in an error whose code it is of.
func (w whose) blames(err error) error {
	switch {
	case w.interceptor != "":
		return fmt.Errorf("interceptor %q: %w", w.interceptor, err)
	case w.option != "":
		return fmt.Errorf("%s: %w", w.option, err)
	}
	return err
}

// askOption is ask for the function of an option, of which a failure says so.
func (r *run) askOption(h *tenure, option, path string, f func()) (ok bool, err *userError) {
	h.whose.option = option
	if ok, err = r.ask(h, option+" for "+path, f); !ok {
		return false, nil
	}
	if err != nil {
		err.err = h.whose.blames(err.err)
	}
	h.whose = whose{}
	return true, err
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
	ok, err = r.askOption(h, "InterruptIf", b.Path, func() { stop = hook(b) })
	return stop, ok, err
}

// interrupt makes t wait, and returns the id of the interrupt.
func (r *run) interrupt(t *task, i checkpoint.Interrupt) string {
	return r.interrupted(t, &i, nil)
}

// interrupted is interrupt for who may know the interrupt as the machine will have it.
func (r *run) interrupted(t *task, i *checkpoint.Interrupt, p *pending) string {
	id := uuid.NewString()
	x := r.said(&checkpoint.Entry{
		Kind: checkpoint.Interrupted, Path: t.path(), Step: t.frame.step, ID: id, Data: encodeInterrupt(i),
	}, t)
	x.pending = p
	r.landing += len(x.Data)
	r.add(x)
	return id
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
		Unfollowed: r.m.leavesInDoubt(t),
	}, e, 0)
}
