package dispatcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// An input is what a turn is to begin with: the caller's own, or one that was posted.
type input struct {
	write func(any)       // the caller's own; else nil
	post  string          // id of the post
	delta json.RawMessage // what was posted
	cells []state.CellInfo
	err   error // what was posted can't be read
}

// turnPrefix is what stands, in the ids of posts of kind turn, before that of the message.
const turnPrefix = "turn:"

// A postedTurn is the Data of a post of kind turn.
type postedTurn struct {
	Delta json.RawMessage `json:"delta,omitempty"`
	// Cells are those of Delta as they were in the graph of who posted it: the graph of who
	// takes it may have others.
	Cells []state.CellInfo `json:"cells,omitempty"`
}

// furtherTurn prepares a completed run for the turns that wait. The loop begins them.
func (r *run) furtherTurn(w *wishes, own func(any)) early {
	m := r.m
	rep, _ := r.c.report(m, r.id, r.journal.head.Seq)
	r.stood = rep
	err := r.admits(w)
	if err == nil && m.plan != r.c.plan {
		err = r.asking("migration", func() (err error) {
			r.crossing, err = r.cross()
			return err
		})
		if err == nil {
			err = r.c.putGraph(r.stored)
		}
	}
	if err != nil {
		return early{rep, r.c.refuse(r.id, err)}
	}
	if w.how == modeTurn {
		r.fresh = own
		if own == nil {
			r.fresh = func(any) {}
		}
	}
	m.vets, m.gates = r.c.vets(), r.c.asksBefore()
	m.rescan()
	return early{}
}

// A crossing is how a completed run comes to the dispatcher's graph. The log says so with the turn
// that begins there, and not before: as long as no input is taken the run is what it was.
type crossing struct {
	at       checkpoint.Head // where the run stood when it was looked at
	migrated fact
	to       *machine // the run behind that, to be read
}

// cross finds how the run comes to the dispatcher's graph, or says why that can't be. A Migration
// is called here.
func (r *run) cross() (*crossing, error) {
	d, err := r.c.carry(r.id, r.m)
	if err != nil {
		return nil, err
	}
	x := said(checkpoint.Entry{Kind: checkpoint.Migrated, Data: encode(d)}, nil)
	x.more().plan = r.c.plan
	to := newMachine(r.m.plan)
	to.replaying = true
	return &crossing{r.journal.head, x, to}, to.migrate(&x)
}

// crossed is the crossing of the run as it stands now: what was drained behind the last one is part
// of it. Nil is none.
func (r *run) crossed() (*crossing, error) {
	if r.crossing == nil || r.crossing.at == r.journal.head {
		return r.crossing, nil
	}
	return r.cross()
}

// beyond is the run in the dispatcher's graph, to be read: behind the crossing, if there is one.
func (r *run) beyond(x *crossing) *machine {
	if x != nil {
		return x.to
	}
	return r.m
}

// nextTurn begins the next turn of a run that is completed, durably, and for which input
// waits: in the order in which it was posted, and the caller's own behind it. It reports
// whether a turn has begun, and whether the caller still owns the run.
func (r *run) nextTurn(h *tenure) (begun, owner bool) {
	if r.c.store == nil {
		return false, true
	}
	if r.m.status != checkpoint.StatusCompleted {
		if r.fresh != nil { // what was posted before it has come to rest
			rep := r.m.report(r.id, r.journal.head.Seq)
			r.early = early{rep, r.c.refuse(r.id, &notTaken{r.rested(rep)})}
		}
		return false, true
	}
	posted, err, owner := r.postedInputs(h)
	if !owner || len(r.facts) > 0 && !r.flush(h) { // tags came with them
		return false, false
	}
	for _, in := range posted {
		if r.halted() {
			break
		}
		if begun, owner := r.beginTurn(h, in); begun || !owner {
			return begun, owner
		}
		if !r.flush(h) { // it was refused, and says so
			return false, false
		}
		posted = posted[1:]
	}
	switch {
	case r.fresh == nil && (err == nil || r.ctx.Err() != nil): // a call that is to end does not wait for input
		return false, true
	case err == nil && len(posted) > 0:
		err = &notTaken{r.cause()}
	}
	if err != nil {
		r.noTurn(err)
		return false, true
	}
	return r.beginTurn(h, input{write: r.fresh})
}

// noTurn has the call return why no turn begins any more. The run stays completed.
func (r *run) noTurn(err error) {
	r.fresh, r.atRest = nil, true
	r.early = early{r.beyond(r.crossing).report(r.id, r.journal.head.Seq), r.c.refuse(r.id, err)}
}

// notTaken is the error of a Turn whose input was not taken, since a turn that was to come
// before it has come to rest, or was not begun.
type notTaken struct{ why error }

func (e *notTaken) Error() string { return plain(ErrNotCompleted) + ": " + plain(e.why) }

func (e *notTaken) Unwrap() []error { return []error{ErrNotCompleted, e.why} }

// postedInputs reads which inputs wait, oldest first. If the run is to be cancelled none of
// them does.
func (r *run) postedInputs(h *tenure) (inputs []input, err error, owner bool) {
	if !h.leave(inCall, doingPosts) {
		return nil, nil, false
	}
	posts, err := r.c.store.Posts(r.stored, r.id)
	if !h.back(inCall) {
		return nil, nil, false
	}
	if err != nil {
		return nil, err, true // they stay where they are
	}
	oldestFirst(posts)
	shared := r.portion()
	for _, p := range posts {
		switch {
		case p.Kind == checkpoint.PostCancel && !slices.Contains(r.moot, p.ID):
			r.cancel(postedCause(p))
			r.halting = true
		case p.Kind == checkpoint.PostTag, p.Kind == checkpoint.PostNote:
			if !r.takePost(h, &shared, p) {
				return nil, nil, false
			}
		case p.Kind == checkpoint.PostTurn && !r.m.seen[p.ID]:
			var t postedTurn
			err := json.Unmarshal(p.Data, &t)
			inputs = append(inputs, input{post: p.ID, delta: t.Delta, cells: t.Cells, err: err})
		}
	}
	return inputs, nil, true
}

// beginTurn begins a turn, unless its input has to be refused. The user's code is called
// here: the input function, the merge of Folds, and the Check of the state.
func (r *run) beginTurn(h *tenure, in input) (begun, owner bool) {
	x := r.said(&checkpoint.Entry{
		Kind: checkpoint.TurnBegun, Post: in.post,
		Data: encode(checkpoint.Turn{Number: r.m.turn + 1, Owner: r.c.owner}),
	}, nil)
	var err, stays error
	var crossing *crossing
	r.taking, h.decide = &in, decision{kind: takeInput}
	ok, failed := r.ask(h, "the input of a turn", func() {
		if crossing, stays = r.crossed(); stays == nil {
			err = r.take(&x, in, r.beyond(crossing).root.view)
		}
	})
	if !ok {
		return false, false
	}
	h.decide = decision{}
	switch {
	case failed != nil:
		r.undecided(decision{kind: takeInput}, failed)
		return false, true
	case stays != nil:
		r.taking = nil
		r.noTurn(stays)
		return false, true
	case err != nil:
		r.refuseInput(&FaultError{Kind: "input", Message: clip(fmt.Sprint(err)), Err: err})
		return false, true
	}
	r.taking = nil
	r.atRest, r.polled, r.errs = false, false, nil
	if r.crossing = nil; crossing != nil {
		r.add(crossing.migrated)
	}
	r.add(x)
	if in.write != nil {
		r.fresh = nil
	}
	if w := r.wishes; w.changes(&r.m.told) && (w.how != modeTurn || in.write != nil) {
		r.add(r.said(w.change(), nil))
	}
	if !r.halted() {
		r.enterRoot()
	}
	return true, true
}

// take makes an input the delta of a fact, if the state, which view is, can be what it becomes by
// it.
func (r *run) take(x *fact, in input, view state.Image) (err error) {
	if in.err != nil {
		return in.err
	}
	if in.write != nil {
		draft := view.Draft()
		in.write(draft.Value())
		err = r.delta(draft, view, &x.delta)
	} else if len(in.delta) > 0 {
		for _, cell := range in.cells {
			if reason := cellChanged(cell.Name, in.cells, view.Schema().Cells()); reason != "" {
				return errors.New(reason)
			}
		}
		x.delta, err = view.Schema().ParseDelta(in.delta)
	}
	if err != nil {
		return err
	}
	m, err := state.Merge(view, state.Image{}, []state.Write{{Delta: x.delta}})
	if err != nil {
		return sound(err)
	}
	if !m.State.IsZero() {
		x.more().outer = m.State
	}
	if err := oneEntry(x); err != nil {
		return err
	}
	next := view.Draft()
	if err := errors.Join(next.Apply(x.delta), next.Apply(m.State)); err != nil {
		return err
	}
	if limit := r.c.opts.Limits.StateBytes; next.Size() > limit {
		return &LimitError{"state bytes", limit, "the input"}
	}
	return sound(next.Check())
}

// oneEntry returns a [*LimitError] for an input that is, with what its Folds come to, larger than
// an entry that always fits into an append.
func oneEntry(x *fact) error {
	if x.delta.Size()+x.outer.Size() > mergedBytes {
		return &LimitError{"merged bytes", mergedBytes, "the input"}
	}
	return nil
}

// refuseInput keeps the run completed. Of the caller's own input nothing is left, and the
// call returns why; a posted one is drained by an entry that says so.
func (r *run) refuseInput(err error) {
	in := r.taking
	r.taking = nil
	if in.write != nil {
		r.noTurn(err)
		return
	}
	why := clip(plain(err))
	r.warnings = append(r.warnings, fmt.Sprintf("queued input %q was refused: %s", in.post, why))
	r.add(r.said(&checkpoint.Entry{
		Kind: checkpoint.Noted, Post: in.post,
		Data: encode(checkpoint.RefusedInput{Refused: why, Input: in.delta}),
	}, nil))
}
