package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// EditOptions say what an Edit changes, and why. The zero EditOptions edit the state of the
// run's own frame.
type EditOptions struct {
	// Frame is the path of the frame whose state is edited: "hunt", "review/17", "compose-loop/2".
	// The path of a Loop alone means its iteration at work. Zero means the run's own frame.
	Frame string
	// Reason is kept in the log and told by HistoryOf: up to 1024 bytes of UTF-8 without control
	// characters. Zero means that nobody says why.
	Reason string
	// Void names visits of the open superstep, of this frame or inside it, that began with what the
	// edit changes and are to run again. What they wrote is dropped, and so is the frame that a
	// Loop, Each or Embed is at work on. Effects stay what they are. If a Loop or Each failed in a
	// superstep that could not be merged, name the Loop or Each itself: what it keeps can then be
	// voided only as a whole. Nil means none.
	Void []string
}

// Edit changes the state of a run that nobody is at work on: what edit writes is what the next
// visit sees. The change is an entry in the log, durable when Edit returns nil, with what was
// written, by whom ([Author]) and why. An edit that writes nothing and voids nothing is no entry.
//
// Edit changes the state with which the open superstep began, and that of the Loops and Eaches at
// work inside it. What has finished there stays finished and is not run again. If a visit that has
// finished, or a Loop so far, wrote exclusively to a cell that the edit writes to, it would hide
// the edit: that is a [*state.ConflictError] naming it, unless Void names it too. If an Each under
// way has other items after the edit, that is an [*ItemsChangedError], unless Void names the Each.
//
// The state's Check and the limits hold. A panic in edit is a [*FaultError]. A runtime.Goexit in it
// ends the caller's goroutine, as it would anywhere, and changes nothing. ErrBusy if the run is
// live: cancel it first. ErrCompleted if it is completed: [Dispatcher.Turn] gives it new input.
// After an error nothing has changed, unless it is ErrCommitUnknown. For a frame whose state is of
// another type there is [EditOf].
func (d *Dispatcher[S]) Edit(ctx context.Context, run string, edit func(*S), o EditOptions, options ...RunOption) error {
	return d.inside().edit(ctx, run, erase(edit), reflect.TypeFor[*S](), o, options)
}

// EditOf is Edit for a frame whose state is of type T; [ErrNested] if it is not.
func EditOf[T, S any](ctx context.Context, d *Dispatcher[S], run string, edit func(*T), o EditOptions, options ...RunOption) error {
	return d.inside().edit(ctx, run, erase(edit), reflect.TypeFor[*T](), o, options)
}

// An editing is an edit on its way into the log.
type editing struct {
	c     *core
	id    string
	o     EditOptions
	write func(any)
	want  reflect.Type // of the state
	void  map[*task]bool
	said  checkpoint.Edit
}

func (c *core) edit(ctx context.Context, id string, write func(any), want reflect.Type, o EditOptions, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	by, err := c.author(options)
	if err == nil {
		err = o.check(write)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	w := &editing{c: c, id: id, o: o, write: write, want: want}
	w.said = checkpoint.Edit{Author: by, Reason: o.Reason, Voids: o.Void}
	return c.refuse(id, c.amending(ctx, id, func(a *amendment) error { return w.amend(ctx, a) }))
}

func (o *EditOptions) check(write func(any)) error {
	if write == nil {
		return &OptionError{"edit", "is nil: give a function that writes, or one that does nothing if visits are only to be voided"}
	}
	if err := checkReason(o.Reason); err != nil {
		return err
	}
	for i, path := range o.Void {
		for k, other := range o.Void {
			if i != k && isOrIn(path, other) {
				return &OptionError{"Void", fmt.Sprintf("names %q, which %q holds already", path, other)}
			}
		}
	}
	return nil
}

// amend says the edit, if it can be.
func (w *editing) amend(ctx context.Context, a *amendment) error {
	if a.m.status == checkpoint.StatusCompleted {
		return fmt.Errorf("%w: give it new input with Turn", ErrCompleted)
	}
	if a.m.plan != w.c.plan {
		e, err := w.c.adoption(ctx, w.id, a.m)
		if err == nil {
			err = a.say(ctx, w.id, e)
		}
		if err != nil {
			return err
		}
	}
	f, err := w.frame(a.m)
	if err != nil {
		return err
	}
	written, err := w.written(f)
	if err != nil {
		return err
	}
	if written.IsZero() && len(w.o.Void) == 0 {
		a.lines = nil
		return nil
	}
	if err := f.hidden(state.Write{Visit: "the edit", Delta: written}, w.void); err != nil {
		var hides *state.ConflictError
		errors.As(err, &hides)
		return &hiddenEdit{hides}
	}
	e := checkpoint.Entry{Kind: checkpoint.Edited, Path: f.path, Step: f.step}
	if !written.IsZero() {
		e.Delta = written.AppendJSON(nil)
	}
	if e.Outer, err = w.merged(f, written); err != nil {
		return err
	}
	e.Data = encode(w.said)
	if err := a.say(ctx, w.id, e); err != nil {
		return err
	}
	return w.c.recompute(f)
}

// frame finds the frame that is edited, and what is voided in it.
func (w *editing) frame(m *machine) (*frame, error) {
	f := m.frameCalled(w.o.Frame)
	switch {
	case f == nil:
		return nil, fmt.Errorf("%w: frame %q is not open", checkpoint.ErrCursor, w.o.Frame)
	case f.items != nil:
		return nil, &OptionError{"Frame", fmt.Sprintf("%q is that of an Each, whose items have the state of the frame around it: edit that", w.o.Frame)}
	}
	if is := reflect.TypeOf(f.view.Value()); is != w.want {
		return nil, ofAnotherType(f.path, is.Elem(), w.want.Elem())
	}
	w.void = map[*task]bool{}
	for _, path := range w.o.Void {
		t := m.find(path)
		if t == nil || !t.voidable() || !t.frame.isIn(f) {
			return nil, &OptionError{"Void", fmt.Sprintf("names %q, which is no visit of the open superstep of the frame, or inside it, that has anything to void: %s",
				path, f.toVoid())}
		}
		w.void[t] = true
	}
	return f, nil
}

// isIn reports whether f is the frame g, or inside it.
func (f *frame) isIn(g *frame) bool {
	for ; f != nil; f = f.around() {
		if f == g {
			return true
		}
	}
	return false
}

// around is the frame in which the visit is that holds f, nil if f is the run's own.
func (f *frame) around() *frame {
	if f.holder == nil {
		return nil
	}
	return f.holder.frame
}

// written calls the user's function.
func (w *editing) written(f *frame) (d state.Delta, err error) {
	draft := f.view.Draft()
	failed := protect(func() {
		w.write(draft.Value())
		_, err = w.c.delta(draft, f.view, &d)
	})
	switch {
	case failed != nil:
		return d, &FaultError{Kind: "edit", Message: failed.tells(), Stack: failed.stack, Err: failed.err}
	case err != nil:
		return d, &FaultError{Kind: "edit", Message: fmt.Sprint(err), Err: err}
	}
	return d, nil
}

// A hiddenEdit says which visit would hide an edit.
type hiddenEdit struct{ *state.ConflictError }

func (e *hiddenEdit) Error() string {
	what := fmt.Sprintf("cell %q", e.Cell)
	if e.Key != "" {
		what = fmt.Sprintf("key %q of cell %q", e.Key, e.Cell)
	}
	return fmt.Sprintf("dispatcher: %q has written to %s, which would hide the edit: "+
		"name %q in EditOptions.Void, and it runs again behind the edit", e.Visits[1], what, e.Visits[1])
}

func (e *hiddenEdit) Unwrap() error { return e.ConflictError }

// merged calls the user's code that merges Folds and checks states, in the frame and in those
// inside it that share its state. It returns what the Folds of the frame come to, and keeps in
// said what those of the others do.
func (w *editing) merged(f *frame, written state.Delta) (folds json.RawMessage, err error) {
	failed := protect(func() { folds, err = w.merge(f, written) })
	if failed != nil {
		return nil, &FaultError{Kind: "edit", Message: failed.tells(), Stack: failed.stack, Err: failed.err}
	}
	return folds, err
}

func (w *editing) merge(f *frame, written state.Delta) (folds json.RawMessage, err error) {
	m, err := state.Merge(f.view, f.outer, []state.Write{{Delta: written}})
	if err != nil {
		return nil, sound(err)
	}
	if !m.State.IsZero() {
		folds = m.State.AppendJSON(nil)
	}
	if !m.Outer.IsZero() {
		w.said.Recorded = m.Outer.AppendJSON(nil)
	}
	view := f.view.Draft()
	if err = view.Apply(written); err == nil {
		err = view.Apply(m.State)
	}
	if err == nil && !f.outer.IsZero() {
		both := [...]*state.Delta{&written, &m.Outer}
		err = f.outer.Recordable(len(both), func(i int) *state.Delta { return both[i] })
	}
	if err == nil {
		err = w.allows(f, view)
	}
	if err != nil {
		return nil, err
	}
	return folds, f.rebase(view, w.void, func(g *frame, base state.Image, own state.Delta) (state.Delta, error) {
		m, err := state.Merge(base, state.Image{}, []state.Write{{Delta: own}})
		if err != nil || m.State.IsZero() {
			return state.Delta{}, sound(err)
		}
		if w.said.Inside == nil {
			w.said.Inside = map[string]json.RawMessage{}
		}
		w.said.Inside[g.path] = m.State.AppendJSON(nil)
		return m.State, nil
	}, func(g *frame, view, _ state.Image) error { return w.allows(g, view) })
}

// allows reports whether a frame may have this state.
func (w *editing) allows(f *frame, view state.Image) error {
	if limit := w.c.opts.Limits.StateBytes; view.Size() > limit {
		return &LimitError{"state bytes", limit, fmt.Sprintf("the edit of frame %q", f.path)}
	}
	if err := sound(view.Check()); err != nil {
		return &FaultError{Kind: "check", Message: fmt.Sprint(err), Err: err}
	}
	return nil
}
