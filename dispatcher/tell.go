package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// calledFor is called, for a run in the store.
func (c *core) calledFor(ctx context.Context, id string) error {
	if err := c.called(ctx); err != nil {
		return err
	}
	if err := checkID(id); err != nil {
		return err
	}
	if c.store == nil {
		return c.refuse(id, ErrNoStore)
	}
	return nil
}

// exists is calledFor, and says what to do if the run is not there.
func (c *core) exists(ctx context.Context, id string) error {
	if err := c.calledFor(ctx, id); err != nil {
		return err
	}
	if _, err := c.store.Stat(ctx, id); err != nil {
		return c.refuse(id, missing(err))
	}
	return nil
}

// missing adds to an error of Stat what to do if there is no such run.
func missing(err error) error {
	if errors.Is(err, checkpoint.ErrNotFound) {
		return fmt.Errorf("%w: check its id and the store, or begin it with Run", err)
	}
	return err
}

// missing is missing, of a call that may have been meant to begin the run.
func (w *wishes) missing(err error) error {
	if err = missing(err); w.how == modeTurn && errors.Is(err, checkpoint.ErrNotFound) {
		return fmt.Errorf("%w, or with this Turn and OrStart", err)
	}
	if w.how == modeRun && errors.Is(err, checkpoint.ErrNotFound) { // it answers
		return fmt.Errorf("%w, without Answering", err)
	}
	return err
}

// enqueue is Enqueue. Who has the lease when the run is completed takes the post.
func (c *core) enqueue(ctx context.Context, id string, input func(any), options []RunOption) error {
	if err := c.called(ctx); err != nil {
		return err
	}
	w, err := c.wish(modeEnqueue, options)
	if err != nil {
		return c.refuse(id, err)
	}
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	info, err := c.store.Stat(ctx, id)
	if err == nil {
		err = c.sameName(id, info.Graph, info.Digest)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	if input == nil {
		return c.refuse(id, &OptionError{"input", "is nil: give a function that writes, or one that does nothing for a turn without input"})
	}
	written := c.plan.Schema.New()
	var d state.Delta
	failed := protect(func() {
		input(written.Value())
		_, err = c.delta(written, state.Image{}, &d)
	})
	switch {
	case failed != nil:
		return c.refuse(id, &FaultError{Kind: "input", Message: failed.tells(), Stack: failed.stack, Err: failed.err})
	case err != nil:
		return c.refuse(id, &FaultError{Kind: "input", Message: fmt.Sprint(err), Err: err})
	}
	message := cmp.Or(w.message, NewRunID())
	var t postedTurn
	if !d.IsZero() {
		t.Delta = d.AppendJSON(nil)
		t.Cells = cellsOf(t.Delta, c.plan.Schema)
		if err := blind(&t); err != nil {
			return c.refuse(id, &FaultError{Kind: "input", Message: fmt.Sprint(err), Err: err})
		}
	}
	post := checkpoint.Post{ID: turnPrefix + message, Kind: checkpoint.PostTurn, Data: encode(t)}
	err = c.store.Post(ctx, id, post)
	if errors.Is(err, checkpoint.ErrConflict) {
		err = &OptionError{"Message", fmt.Sprintf("%q names another input", message)}
	}
	return c.refuse(id, err)
}

// blind refuses input that appends to a list and changes it by place. It was written to an empty
// list, so these may be places in what it appends itself, and of the list that the run has nothing
// would be left.
func blind(t *postedTurn) error {
	var does map[string]struct{ Truncate, Append json.RawMessage }
	if err := json.Unmarshal(t.Delta, &does); err != nil {
		return err
	}
	for _, c := range t.Cells {
		if w := does[c.Name]; c.Kind == state.KindList && w.Truncate != nil && w.Append != nil {
			return fmt.Errorf("cell %q: it appends to a list that it does not see, and changes it by SetAt or Truncate: Append what is right, or Replace the list", c.Name)
		}
	}
	return nil
}
