package dispatcher

import (
	"context"
	"fmt"
	"reflect"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A StateDiff is how the state of a run differs between two checkpoints.
type StateDiff[S any] struct {
	// From and To are what is compared. For "" it is the end of the log, which need not be a
	// checkpoint that At finds: its Cause is empty and its At is zero.
	From, To Checkpoint
	// Before and After are the two states. The caller may change them.
	Before, After *S
	// Difference says by cell what has changed. Its String says so as text.
	state.Difference
}

// Diff compares the states of a run at two checkpoints, which are addresses as [Dispatcher.At]
// takes them. "" is the state of the run's own frame as it stands now, with any edit since the last
// checkpoint. The two may be of different frames, such as two iterations of a Loop. If one of the
// states is not of type S the error is [ErrNested].
func (d *Dispatcher[S]) Diff(ctx context.Context, run, from, to string) (*StateDiff[S], error) {
	c, want := d.inside(), reflect.TypeFor[*S]()
	a, before, err := c.viewAt(ctx, run, from, want)
	if err != nil {
		return nil, err
	}
	b, after, err := c.viewAt(ctx, run, to, want)
	if err != nil {
		return nil, err
	}
	diff := &StateDiff[S]{From: a, To: b}
	if diff.Difference, err = state.Diff(before, after); err != nil {
		return nil, c.refuse(run, err)
	}
	diff.Before, diff.After = before.Value().(*S), after.Value().(*S)
	return diff, nil
}

// viewAt is the state at an address, or as it stands now, if it is of the type.
func (c *core) viewAt(ctx context.Context, id, address string, want reflect.Type) (Checkpoint, state.Image, error) {
	if err := c.exists(ctx, id); err != nil {
		return Checkpoint{}, state.Image{}, err
	}
	point, m, err := c.positioned(ctx, id, address)
	if err != nil {
		return point, state.Image{}, c.refuse(id, err)
	}
	f := m.frameAt(point.Path)
	if f == nil {
		return point, state.Image{}, c.refuse(id, fmt.Errorf("%w: frame %q is not open at %s", checkpoint.ErrCursor, point.Path, point))
	}
	view, err := c.viewOf(ctx, m, f, point, want)
	if err != nil {
		return point, view, c.refuse(id, err)
	}
	if is := reflect.TypeOf(view.Value()); is != want {
		return point, view, c.refuse(id, ofAnotherType(point.Path, is.Elem(), want.Elem()))
	}
	return point, view, nil
}

// positioned replays a run up to an address, "" for the head.
func (c *core) positioned(ctx context.Context, id, address string) (Checkpoint, *machine, error) {
	if address != "" {
		point, m, _, err := c.loadAt(ctx, id, address)
		return point, m, err
	}
	m, head, err := c.load(ctx, id, 0)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	rep := m.report(id, head.Seq)
	return Checkpoint{Run: id, Seq: head.Seq, Turn: rep.Turn, Superstep: rep.Superstep}, m, nil
}

// viewOf is a copy of the state of a frame, in the type that the dispatcher's graph has for it; of
// one that has the state of the run, if that is wanted, as At reads it.
func (c *core) viewOf(ctx context.Context, m *machine, f *frame, point Checkpoint, want reflect.Type) (state.Image, error) {
	if m.plan == c.plan {
		return f.view.Draft(), nil
	}
	if err := c.sameName(point.Run, m.plan.Name, m.plan.Digest); err != nil {
		return state.Image{}, err
	}
	var schema *state.Schema
	if want == reflect.TypeOf(c.plan.Schema.New().Value()) && sameType(f.view, m.root.view) {
		schema = c.plan.Schema
	} else if path, there, err := c.pathNow(ctx, m, point); err != nil {
		return state.Image{}, err
	} else if there {
		schema = schemaAt(c.plan, path)
	}
	reasons := []string{fmt.Sprintf("frame %q is not in the graph", point.Path)}
	if schema != nil {
		next, unfit, err := refit(f.view, schema)
		switch {
		case err != nil:
			return next, &checkpoint.CorruptError{Run: point.Run, Seq: point.Seq, Reason: err.Error()}
		case unfit == nil:
			return next, nil
		}
		reasons = unfit
	}
	changed := c.changed(point.Run, m.plan.Digest, reasons)
	if how := c.migration(m.plan); how != nil {
		f, _, err := c.carriedFrame(point.Run, m, point.Path, how)
		switch {
		case err != nil:
			return state.Image{}, err
		case f != nil:
			return f.view.Draft(), nil // as At reads it
		}
		changed.Migration = how.Name
	}
	return state.Image{}, changed
}

// pathNow is the path that the frame of a checkpoint has where the run stands, which migrations may
// have led to since.
func (c *core) pathNow(ctx context.Context, m *machine, point Checkpoint) (path string, there bool, err error) {
	h, err := c.hindsight(ctx, point.Run)
	if err != nil {
		return "", false, err
	}
	path, there = h.renames.called(point.Path, m.renames)
	return path, there, nil
}
