package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// StateOf reads one frame of a run in the type of the frame's own state. A frame is a graph that an
// Embed, a Loop or an EachGraph runs, or the items of an Each. The address is one of:
//
//   - the path of the frame, as the paths of the visits inside begin with it: "hunt", "review/17",
//     "compose-loop/2", or "" for the run's own frame. The path of a Loop alone means its last
//     iteration. The frame is read as it stands in the turn that the run is in, or as it ended; if
//     it failed, Failures tells why, whoever follows that.
//   - the address of a checkpoint that History lists, as for At.
//
// Superstep, Cursor, Interrupts, Finished and Failures of the Result are those of the frame and of
// what is inside it. The rest tells of the run at that position. [ErrNested] if T is not the type
// of the frame's state, checkpoint.ErrCursor if there is no such frame.
func StateOf[T, S any](ctx context.Context, d *Dispatcher[S], run, address string) (*Result[T], error) {
	r, err := d.inside().stateOf(ctx, run, address, reflect.TypeFor[*T]())
	return typed[T](run, r), err
}

func (c *core) stateOf(ctx context.Context, id, address string, want reflect.Type) (*report, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	var m *machine
	var point Checkpoint
	err := c.steadily(ctx, id, func(*checkpoint.Info) (err error) {
		m, point, err = c.frameFor(ctx, id, address)
		return err
	})
	if err != nil {
		return nil, c.refuse(id, err)
	}
	f := m.frameAt(point.Path)
	if f == nil {
		return nil, c.refuse(id, fmt.Errorf("%w: frame %q is not open at %s", checkpoint.ErrCursor, point.Path, point))
	}
	rep := m.report(id, point.Seq)
	rep.state = nil
	view, err := c.viewOf(ctx, m, f, point, want)
	if err != nil {
		return rep, c.refuse(id, err)
	}
	if is := reflect.TypeOf(view.Value()); is != want {
		return rep, c.refuse(id, ofAnotherType(point.Path, is.Elem(), want.Elem()))
	}
	rep.state = view.Value()
	rep.only(f)
	return rep, nil
}

// only makes a report tell of one frame and of what is inside it.
func (r *report) only(f *frame) {
	r.Frame = f.path
	if f.holder == nil {
		return
	}
	r.Superstep = f.step
	if len(f.open) > 0 {
		r.Superstep--
	}
	r.Cursor.Visits = f.cursor(nil)
	r.Interrupts = interruptsOf(f.pendings(nil))
	r.Finished = f.finishedSiblings(nil)
	r.Failures = nil
	for _, failure := range f.failures(nil) {
		r.Failures = append(r.Failures, *failure)
	}
}

// frameFor replays a run to where a frame is to be read, and says which frame that is.
func (c *core) frameFor(ctx context.Context, id, address string) (*machine, Checkpoint, error) {
	tag := strings.HasPrefix(address, tagAddress) && schemaAt(c.plan, address) == nil // a frame may be called so
	if tag || strings.Contains(address, "@") || isIteration(address) {
		point, m, _, err := c.loadAt(ctx, id, address)
		return m, point, err
	}
	m, head, err := c.load(ctx, id, 0)
	if err != nil {
		return nil, Checkpoint{}, err
	}
	path, turn := frameAddress(address, m.turn)
	if turn == 0 {
		return nil, Checkpoint{}, noFrame(address)
	}
	if turn == m.turn {
		if f := m.frameCalled(path); f != nil {
			return m, Checkpoint{Run: id, Seq: head.Seq, Turn: turn, Path: f.path, Superstep: f.step}, nil
		}
	}
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return nil, Checkpoint{}, err
	}
	last, err := c.inherited(ctx, h, path, turn)
	if err != nil {
		return nil, last, err
	}
	n := nodeAt(h.plan, path)
	itself := n != nil && n.Kind == dag.KindEach // it is a frame, and what is called like its iterations are items in it
	found, err := c.search(ctx, h, func(m *machine) bool { return m.turn < turn }, func(p *Past) bool {
		itself = itself || p.Turn == turn && p.Path == path
		return p.Turn == turn && (p.Path == path || !itself && isIterationOf(p.Path, path))
	})
	if found.Seq > 0 {
		last = found
	}
	switch {
	case err != nil:
	case h.info.First > 1 && last.Seq < h.info.First && turn <= m.turn && (couldHold(c.plan, path) || couldHold(h.plan, path)):
		err = h.isGone(address) // what is pinned of a frame that has ended does not tell how
	case last.Seq == 0:
		err = noFrame(address)
	}
	if err != nil {
		return nil, last, err
	}
	return c.left(ctx, h, last)
}

// inherited is where a fork began, as the beginning of a frame that was open there and was not
// voided since: the log of the fork does not say that it was entered. Its Seq is 0 if there is
// none.
func (c *core) inherited(ctx context.Context, h *hindsight, path string, turn int) (Checkpoint, error) {
	if h.info.Origin == nil || h.info.First > 1 {
		return Checkpoint{}, nil
	}
	m, _, err := c.load(ctx, h.info.Run, 1)
	if err != nil || m.turn != turn {
		return Checkpoint{}, err
	}
	f := m.frameCalled(path)
	if f == nil {
		return Checkpoint{}, nil
	}
	told := newChronicle(h.info.Run)
	told.stand(m)
	p := Past{Checkpoint: Checkpoint{Run: h.info.Run, Seq: 1, Turn: turn, Path: f.path, Superstep: f.ended()}}
	if h.voided(&p, told) {
		return Checkpoint{}, nil
	}
	return p.Checkpoint, nil
}

// left is where a frame stood last that has ended: at its last superstep, or where it began if none
// has ended, or behind that at the last that is told of what is inside it, of an edit or a
// migration while it was open. Once the superstep of the run's own frame has ended none inside it
// is.
func (c *core) left(ctx context.Context, h *hindsight, last Checkpoint) (*machine, Checkpoint, error) {
	m, _, err := c.load(ctx, last.Run, last.Seq)
	if err != nil {
		return nil, last, err
	}
	inside := last.Seq
	for e, err := range c.store.Read(ctx, last.Run, last.Seq+1, h.info.Head.Seq) {
		if err != nil {
			return nil, last, err
		}
		if h.abandoned(e.Seq) {
			continue
		}
		if e.Kind == checkpoint.Superstep && e.Path == "" {
			break
		}
		if e.Kind != checkpoint.Edited && e.Kind != checkpoint.Migrated {
			if strings.HasPrefix(e.Path, last.Path+"/") {
				inside = e.Seq
			}
			continue
		}
		path, there := last.Path, true
		if e.Kind == checkpoint.Migrated {
			var d checkpoint.Migration
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return nil, last, damaged(last.Run, e.Seq, err)
			}
			path, there = d.Renamed(path)
		}
		next, _, err := c.load(ctx, last.Run, e.Seq)
		if err != nil {
			return nil, last, err
		}
		if !there || next.frameAt(path) == nil {
			break
		}
		m, last.Path, last.Seq = next, path, e.Seq
	}
	if inside > last.Seq {
		next, _, err := c.load(ctx, last.Run, inside)
		if err != nil {
			return nil, last, err
		}
		if next.frameAt(last.Path) != nil {
			m, last.Seq = next, inside
		}
	}
	return m, last, nil
}

func noFrame(address string) error {
	return fmt.Errorf("%w: no frame %q has begun", checkpoint.ErrCursor, address)
}

// frameCalled returns the open frame of a path; the path of a Loop is that of its iteration.
func (m *machine) frameCalled(path string) *frame {
	if f := m.frameAt(path); f != nil {
		return f
	}
	if t := m.find(path); t != nil && t.inner != nil && t.node.Kind == dag.KindLoop {
		return t.inner
	}
	return nil
}

// schemaAt is the schema of the frame of a path, nil if a graph can't have such a frame. The
// items of an Each have the state that the Each has, unless a graph runs for each of them.
func schemaAt(plan *dag.Plan, path string) *state.Schema {
	for path != "" {
		name, rest, _ := strings.Cut(path, "/")
		n := nodeOf(plan, name)
		if n == nil {
			return nil
		}
		number, behind, _ := strings.Cut(rest, "/")
		switch {
		case n.Kind == dag.KindEach && rest == "":
			return plan.Schema
		case n.Kind == dag.KindLoop, n.Kind == dag.KindEach:
			if !isIteration(number) {
				return nil
			}
			rest = behind
		}
		if n.Body == nil {
			return nil
		}
		plan, path = n.Body, rest
	}
	return plan.Schema
}

// ofAnotherType is [ErrNested] of the frame with that path.
func ofAnotherType(path string, is, want reflect.Type) error {
	whose := "that of the run"
	if path != "" {
		whose = fmt.Sprintf("that of frame %q", path)
	}
	return fmt.Errorf("%w: %s is %v, not %v", ErrNested, whose, is, want)
}
