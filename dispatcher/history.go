package dispatcher

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// history is History.
func (c *core) history(ctx context.Context, id string, frames []string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		if err := c.exists(ctx, id); err != nil {
			yield(Checkpoint{}, err)
			return
		}
		some := make([]bool, len(frames))
		told, of := uint64(0), checkpoint.Info{}
		err := c.steadily(ctx, id, func(info *checkpoint.Info) error {
			if told > 0 && !info.Created.Equal(of.Created) {
				return another()
			}
			of = *info
			h, err := c.hindsight(ctx, id)
			if err != nil {
				return err
			}
			r := reading{c: c, of: h, after: told}
			for p, err := range r.past(ctx) {
				if err != nil {
					return err
				}
				told = p.Seq
				if p.Cause == CauseSuperstep && selected(p.Path, frames, some) && !yield(p.Checkpoint, nil) {
					return errLeft
				}
			}
			return nil
		})
		if err == errLeft {
			return
		}
		if err != nil {
			yield(Checkpoint{}, c.refuse(id, err))
			return
		}
		for i, f := range frames {
			if !some[i] && !couldHold(c.plan, f) {
				yield(Checkpoint{}, c.refuse(id, noSuchFrame(f)))
				return
			}
		}
	}
}

func noSuchFrame(path string) error {
	return fmt.Errorf("%w: no frame of the run is called %q", checkpoint.ErrCursor, path)
}

// selected reports whether the frame of a path is one of those asked for, and notes which.
// None asked for means all.
func selected(path string, frames []string, some []bool) bool {
	is := len(frames) == 0
	for i, f := range frames {
		if path == f || nodePath(path) == f || isIterationOf(path, f) {
			some[i], is = true, true
		}
	}
	return is
}

// isIterationOf reports whether a frame is one of the iterations or items of a visit.
func isIterationOf(path, visit string) bool {
	number, inside := strings.CutPrefix(path, visit+"/")
	return inside && isIteration(number)
}

// at is At.
func (c *core) at(ctx context.Context, id, address string) (*report, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	point, m, _, err := c.loadAt(ctx, id, address)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	if address == "" {
		point.Path = "" // the frame in which it is may be of another type, and nobody has named it
	}
	rep, err := c.report(m, id, point.Seq)
	if err == nil && point.Path != "" {
		err = c.nested(m, rep, point)
	}
	if err != nil {
		var carried any
		if carried, err = c.carriedState(id, m, point.Path, err); err == nil {
			rep.state = carried
			if point.Path != "" {
				rep.Superstep, rep.Frame = point.Superstep, point.Path
			}
		}
	}
	return rep, c.refuse(id, err)
}

// nested makes a report tell of a frame inside the run, while its superstep is the last.
func (c *core) nested(m *machine, rep *report, point Checkpoint) error {
	f := m.frameAt(point.Path)
	if f == nil {
		return c.refuse(rep.Run, fmt.Errorf("%w: frame %q is not open at %s", checkpoint.ErrCursor, point.Path, point))
	}
	if f.plan.Schema != m.plan.Schema && !sameType(f.view, m.root.view) {
		return c.refuse(rep.Run, fmt.Errorf("%w: that of %s: read it with StateOf", ErrNested, point))
	}
	rep.Superstep, rep.Frame = point.Superstep, point.Path
	var err error
	rep.state, err = c.typed(m, f.view, rep.Run, point.Seq)
	return c.refuse(rep.Run, err)
}

// sameType reports whether two states are of one type. Of states that no program has a type
// for, their cells tell.
func sameType(a, b state.Image) bool {
	x, y := reflect.TypeOf(a.Value()), reflect.TypeOf(b.Value())
	return x == y && (x != nil || reflect.DeepEqual(a.Schema().Cells(), b.Schema().Cells()))
}
