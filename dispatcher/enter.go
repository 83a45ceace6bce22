package dispatcher

import (
	"errors"
	"strconv"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// enter opens the frame of a visit that holds one. What an Embed's in wrote is its input.
func (r *run) enter(h *tenure, t *task) (bool, *userError) {
	x := r.said(&checkpoint.Entry{Kind: checkpoint.Entered, Path: t.path()}, t)
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
		if err = r.input(&x, to); err == nil {
			err = oneEntry(&x)
		}
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
	if err = r.delta(written, state.Image{}, &x.delta); err != nil {
		return err
	}
	schema := written.Schema()
	var folds state.Delta
	if schema.CallsUser() {
		m, err := state.Merge(schema.New(), state.Image{}, []state.Write{{Delta: x.delta}})
		if folds = m.State; !folds.IsZero() {
			x.more().outer = folds
		}
		if err = errors.Join(sound(err), sound(written.Check())); err != nil {
			return err
		}
	}
	limit := r.c.opts.Limits.StateBytes
	if x.delta.Size()+folds.Size() <= limit { // what is written is never longer in the state
		return nil
	}
	begins := schema.New()
	if err := errors.Join(begins.Apply(x.delta), begins.Apply(folds)); err != nil {
		return err
	}
	if begins.Size() > limit {
		return &LimitError{"state bytes", limit, "the input"}
	}
	return nil
}

// end says what comes of a frame that has nothing left to run.
func (r *run) end(h *tenure, f *frame) (bool, *userError) {
	if f.holder == nil {
		r.addPlain(checkpoint.Completed)
		return true, nil
	}
	return r.leaveFrame(h, f, f.holder)
}

// leaveFrame ends the visit t, in which f stands.
func (r *run) leaveFrame(h *tenure, f *frame, t *task) (bool, *userError) {
	x := r.said(&checkpoint.Entry{Kind: checkpoint.Done, Path: t.path(), Step: t.frame.step}, t)
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
		if err = r.delta(to, t.frame.view, &x.delta); err != nil {
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
// kept if the failure is followed. An Each may have failed already: every item that is rejected
// when nothing but spared items is left asks for it.
func (r *run) bury(h *tenure, f *frame) (bool, *userError) {
	t := f.holder
	if t.phase != inside || t.inner != f {
		return true, nil
	}
	left := r.m.leavesInDoubt(t)
	if records(t.node) && t.caught() && !left {
		if made, ok := r.salvage(h, f); !ok || !made {
			return ok, nil
		}
	}
	failure := f.failure()
	r.fails(t, 0, checkpoint.FailedAttempt{
		Kind: string(failure.Kind), Message: failure.Message, Final: true,
		Origin: failure.Path, Attempts: failure.Attempts, Unfollowed: left || f.doubtful(),
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
	if r.c.store != nil && r.portion().bytes > decidedBytes { // what the frames inside came to
		d := h.decide
		h.decide = decision{} // an observer that ends its goroutine meanwhile is not what is decided
		if !r.flush(h) {
			return false, false
		}
		h.decide = d
	}
	m, made, ok := r.merged(h, f)
	if ok && made {
		r.superstep(f, m, outcomeFailed)
	}
	return made, ok
}
