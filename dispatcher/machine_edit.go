package dispatcher

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// An edit changes the state that the open superstep of a frame began with. What was done since
// stays done, on the state as it is now:
//
//  1. Visits of the superstep that have finished keep what they wrote, which is merged later
//     as if nothing had happened.
//  2. The Loops and Eaches that the frame holds share its state. What they have done so far,
//     which outer has recorded, now happened on the edited state; and so on inside them.
//  3. A Loop's own frame records the edit as if a visit in it had written it, so that it is
//     not lost when the Loop ends.
//
// Where that would hide what was edited, nobody could see the edit, so it is refused before
// there is an entry: see hidden. A visit that the entry voids runs again.

// edit makes an edit part of the state of a frame.
func (m *machine) edit(x *fact) error {
	var e checkpoint.Edit
	if err := json.Unmarshal(x.Data, &e); err != nil {
		return err
	}
	if m.status == checkpoint.StatusCompleted {
		return fmt.Errorf("the run is completed and can't be edited")
	}
	for _, path := range e.Voids {
		t := m.find(path)
		if t == nil || !t.ended() && t.phase != inside { // earlier versions have voided what is salvaged
			return fmt.Errorf("visit %q has nothing that could be voided", path)
		}
		m.takeBack(t)
	}
	f := x.f
	if f.items != nil || m.frameAt(f.path) != f {
		return fmt.Errorf("frame %q has no state of its own", f.path)
	}
	if err := f.given(x); err != nil {
		return err
	}
	f.bound = 0
	if err := f.recordEdit(x.delta, e.Recorded); err != nil {
		return err
	}
	return f.rebase(f.view, nil, func(g *frame, _ state.Image, _ state.Delta) (state.Delta, error) {
		if e.Inside[g.path] == nil {
			return state.Delta{}, nil
		}
		return g.plan.Schema.ParseDelta(e.Inside[g.path])
	}, func(g *frame, view, outer state.Image) error {
		g.view, g.outer, g.bound = view, outer, 0
		return nil
	})
}

// recordEdit adds an edit to what a Loop did as a whole, if f is its frame. folds are the
// merged Folds of that.
func (f *frame) recordEdit(written state.Delta, folds json.RawMessage) error {
	if f.outer.IsZero() {
		return nil
	}
	if err := f.outer.Record(written); err != nil || folds == nil {
		return err
	}
	d, err := f.plan.Schema.ParseDelta(folds)
	if err != nil {
		return err
	}
	return f.outer.Record(d)
}

// rebase computes the states of the frames inside f that share its state, which is base now:
// what they have done so far happens on it. folds says what the Folds of a frame come to, and
// set is told the results. void are visits that don't count any more.
func (f *frame) rebase(
	base state.Image, void map[*task]bool, folds func(*frame, state.Image, state.Delta) (state.Delta, error),
	set func(g *frame, view, outer state.Image) error,
) error {
	for _, i := range f.open {
		t := &f.tasks[i]
		if !t.shares() || void[t] {
			continue
		}
		g := t.inner
		own, err := g.outer.Delta()
		if err != nil {
			return err
		}
		view, outer := base.Draft(), base.Draft()
		if err := view.Apply(own); err != nil {
			return err
		}
		merged, err := folds(g, base, own)
		if err != nil {
			return err
		}
		if err := view.Apply(merged); err != nil {
			return err
		}
		if err := outer.Record(own.Recorded()); err != nil {
			return err
		}
		if err := set(g, view, outer); err != nil {
			return err
		}
		if err := g.rebase(view, void, folds, set); err != nil {
			return err
		}
	}
	return nil
}

// shares reports whether the visit holds a frame that shares the state of the frame that the
// visit is in.
func (t *task) shares() bool { return t.inner != nil && records(t.node) }

// voidable reports whether an edit may void what the visit did: it has finished, or is at work
// on a frame that it holds. What is salvaged can be taken back only with the frame.
func (t *task) voidable() bool { return (t.phase == inside || t.ended()) && !t.salvaged() }

// toVoid says what an edit of f may void.
func (f *frame) toVoid() string {
	const most = 10
	switch paths := f.voidables(nil, most+1); {
	case len(paths) == 0:
		return "nothing has"
	case len(paths) > most:
		return "these have, and others: " + strings.Join(paths[:most], ", ")
	default:
		return "these have: " + strings.Join(paths, ", ")
	}
}

// voidables adds the visits of f, and inside it, that can be voided, until there are most.
func (f *frame) voidables(paths []string, most int) []string {
	for _, i := range f.open {
		t := &f.tasks[i]
		if len(paths) < most && t.voidable() {
			paths = append(paths, t.path())
		}
		if t.inner != nil {
			paths = t.inner.voidables(paths, most)
		}
	}
	return paths
}

// hidden reports what would hide an edit of f, as a *state.ConflictError: a visit that has
// finished and is not merged yet, or a Loop or Each so far, if it wrote exclusively to what the
// edit writes to. void are visits that don't count any more.
func (f *frame) hidden(edit state.Write, void map[*task]bool) error {
	schema := f.plan.Schema
	for _, i := range f.open {
		t := &f.tasks[i]
		if void[t] {
			continue
		}
		if t.keeps() {
			if err := state.Hides(schema, edit, state.Write{Visit: t.path(), Delta: *t.wrote()}); err != nil {
				return err
			}
		}
		if !t.shares() {
			continue
		}
		own, err := t.inner.outer.Delta()
		if err != nil {
			return err
		}
		if err := state.Hides(schema, edit, state.Write{Visit: t.path(), Delta: own}); err != nil {
			return err
		}
		if err := t.inner.hidden(edit, void); err != nil {
			return err
		}
	}
	return nil
}
