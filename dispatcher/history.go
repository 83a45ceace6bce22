package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
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
		for p, err := range c.past(ctx, id) {
			if err != nil {
				yield(Checkpoint{}, c.refuse(id, err))
				return
			}
			if p.Cause == CauseSuperstep && selected(p.Path, frames, some) && !yield(p.Checkpoint, nil) {
				return
			}
		}
		for i, f := range frames {
			if !some[i] && !c.couldBe(f) {
				err := fmt.Errorf("%w: no frame of the run is called %q", checkpoint.ErrCursor, f)
				yield(Checkpoint{}, c.refuse(id, err))
				return
			}
		}
	}
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

// couldBe reports whether the graph has a node that may hold a frame of this path.
func (c *core) couldBe(frame string) bool {
	plan := c.plan
	for name := range strings.SplitSeq(nodePath(frame), "/") {
		if frame == "" {
			return true
		}
		n := (*dag.PlanNode)(nil)
		if plan != nil {
			n = nodeOf(plan, name)
		}
		if n == nil || !holds(n) {
			return false
		}
		plan = n.Body
	}
	return true
}

// at is At.
func (c *core) at(ctx context.Context, id, address string) (*report, error) {
	point, err := c.locate(ctx, id, address)
	if err != nil {
		return nil, err
	}
	if address == "" {
		point.Path = "" // the frame in which it is may be of another type, and nobody has named it
	}
	m, _, err := c.load(ctx, id, point.Seq)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	rep, err := c.report(m, id, point.Seq)
	if err == nil && point.Path != "" {
		err = c.nested(m, rep, point)
	}
	var changed *GraphChangedError
	if errors.As(err, &changed) {
		if s := c.carriedState(m, point.Path); s != nil { // as State reads it
			rep.state, err = s, nil
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

// locate finds the checkpoint of an address, "" for the last one that was not abandoned. What stands before the @ is the id of the run,
// or the path of a frame, behind the number of its turn; without a turn it is of the first.
// If both are meant, and are two checkpoints, nobody can tell which, and it is refused: with
// the turn before it, or as a number alone, each of them has an address of its own.
func (c *core) locate(ctx context.Context, id, address string) (Checkpoint, error) {
	if err := c.exists(ctx, id); err != nil {
		return Checkpoint{}, err
	}
	if address == "" {
		return c.last(ctx, id)
	}
	before, number := "", address
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		before, number = address[:i], address[i+1:]
	} else if name, ok := strings.CutPrefix(address, tagAddress); ok {
		tags, err := c.tags(ctx, id)
		if err != nil {
			return Checkpoint{}, c.refuse(id, err)
		}
		if tags[name] == 0 {
			return Checkpoint{}, c.refuse(id, fmt.Errorf("%w: the run has no tag %q", checkpoint.ErrCursor, name))
		}
		before, number = id, strconv.FormatUint(tags[name], 10)
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n == 0 && before != "" {
		return Checkpoint{}, notThere(id, address)
	}
	path, turn := before, 1
	if first, rest, more := strings.Cut(before, "/"); more && isIteration(first) {
		path = rest
		if turn, err = strconv.Atoi(first); err != nil || rest == "" {
			turn = 0 // of no frame
		}
	}
	var bySeq, byPath Checkpoint
	for p, err := range c.past(ctx, id) {
		if err != nil {
			return Checkpoint{}, c.refuse(id, err)
		}
		if before == id && p.Seq == n {
			bySeq = p.Checkpoint
		}
		if n == 0 && p.Cause == CauseOpened && path == "" { // of a fork the superstep is another one
			byPath = p.Checkpoint
		}
		if p.Path != path || p.Superstep != int(n) || turn == 0 || p.Turn != turn && before != "" {
			continue
		}
		if p.Cause == CauseSuperstep && !p.Abandoned {
			byPath = p.Checkpoint // a loop that was voided and entered again counts the last time
		}
	}
	switch {
	case bySeq.Seq == 0 && byPath.Seq == 0:
		return Checkpoint{}, notThere(id, address)
	case bySeq.Seq == 0:
		return byPath, nil
	case byPath.Seq != 0 && byPath != bySeq:
		return Checkpoint{}, c.refuse(id, fmt.Errorf("%w: %q is entry %d of the run, and superstep %d of frame %q",
			checkpoint.ErrCursor, address, n, n, path))
	}
	return bySeq, nil
}

func notThere(id, address string) error {
	return &refusal{id, fmt.Errorf("%w: %q is no checkpoint of the run: History lists them", checkpoint.ErrCursor, address)}
}
