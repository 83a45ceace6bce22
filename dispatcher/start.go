package dispatcher

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// vets reports whether anybody can interrupt a visit before or after it.
func (c *core) vets() bool {
	return len(c.before) > 0 || len(c.after) > 0 || c.opts.InterruptIf != nil
}

// asksBefore reports whether anybody is asked whether a visit may begin.
func (c *core) asksBefore() bool { return len(c.interceptors) > 0 || c.gates.vetting() }

// open makes the facts of a new run. The user's input function is called here.
func (r *run) open(w *wishes, input func(any)) error {
	if r.opens = true; r.m == nil {
		home := &kept{run: r.id} // a run with a log may come to wait
		r.m, home.m.home = &home.m, home
	}
	r.m.plan = r.c.plan
	r.inherit()
	r.m.vets, r.m.gates = r.c.vets(), r.c.asksBefore()
	if err := r.addOpening(w, input); err != nil {
		return err
	}
	r.introduce()
	if !r.halted() {
		r.enterRoot()
	}
	return nil
}

// addOpening adds the first fact of the run.
func (r *run) addOpening(w *wishes, input func(any)) error {
	schema := r.c.plan.Schema
	x := fact{Kind: checkpoint.Opened, live: true, extra: &plainFact}
	if input != nil || schema.CallsUser() { // else nothing is written, and nobody looks at it
		if err := r.calling(&doingInput, func() error { return r.firstInput(&x, input) }); err != nil {
			return err
		}
	}
	if r.c.store != nil {
		if err := r.c.putGraph(r.stored); err != nil {
			return err
		}
	}
	if o := w.opening(r.c); o != nil {
		r.more(&x).opening = o
		x.Data = encode(o)
	}
	*r.blank() = x
	r.apply()
	return nil
}

// putGraph has the store keep the dispatcher's graph. It does so once: a store never lets go of a
// graph.
func (c *core) putGraph(ctx context.Context) error {
	if c.graphIsPut.Load() {
		return nil
	}
	if err := c.store.PutGraph(ctx, c.plan.Digest, c.plan.JSON); err != nil {
		return err
	}
	c.graphIsPut.Store(true)
	return nil
}

// firstInput has the user's input function write the first state, and makes that part of x.
func (r *run) firstInput(x *fact, input func(any)) error {
	first := r.c.plan.Schema.New()
	var err error
	failed := protect(func() {
		if input != nil {
			input(first.Value())
		}
		err = r.input(x, first)
	})
	if failed != nil {
		return &FaultError{Kind: "input", Message: failed.tells(), Stack: failed.stack, Err: failed.err}
	}
	if err != nil {
		return &FaultError{Kind: "input", Message: fmt.Sprint(err), Err: err}
	}
	return nil
}

func (r *run) enterRoot() {
	r.addPlain(checkpoint.Entered)
}
