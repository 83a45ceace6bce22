package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// load replays a run up to an entry (0 means its head) into a machine, under the graph that
// the run had then.
func (c *core) load(ctx context.Context, id string, upTo uint64) (*machine, checkpoint.Head, error) {
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return nil, checkpoint.Head{}, err
	}
	if info.Head.Seq == 0 {
		return nil, checkpoint.Head{}, checkpoint.ErrNotFound
	}
	if upTo == 0 {
		upTo = info.Head.Seq
	}
	m, from, err := c.restore(ctx, id, upTo)
	if err != nil {
		return nil, checkpoint.Head{}, err
	}
	for e, err := range c.store.Read(ctx, id, from+1, upTo) {
		if err != nil {
			return nil, checkpoint.Head{}, err
		}
		m.read += len(e.Delta) + len(e.Outer) + len(e.Data) + len(e.Path) + entryOverhead
		x := said(e, nil)
		x.live = false
		if err := c.planned(ctx, m, id, &x); err != nil {
			return nil, checkpoint.Head{}, err
		}
		if err := m.apply(&x); err != nil {
			return nil, checkpoint.Head{}, &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()}
		}
	}
	if m.root == nil {
		return nil, checkpoint.Head{}, &checkpoint.CorruptError{Run: id, Seq: 1, Reason: "the log does not begin with opened"}
	}
	return m, info.Head, nil
}

// restore begins a replay: from a snapshot if there is one.
func (c *core) restore(ctx context.Context, id string, upTo uint64) (*machine, uint64, error) {
	m := newMachine(c.plan)
	m.replaying = true
	s, err := c.store.Snapshot(ctx, id, upTo)
	if errors.Is(err, checkpoint.ErrNotFound) || s.Head.Seq > upTo && err == nil {
		return m, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	z, err := parseMachine(s.Data)
	if err == nil {
		if m.plan, err = c.planOf(ctx, id, z.Graph); err != nil {
			return nil, 0, err
		}
		err = m.thawAll(z)
	}
	if err != nil {
		return nil, 0, &checkpoint.CorruptError{Run: id, Seq: s.Head.Seq, Reason: "snapshot: " + err.Error()}
	}
	return m, s.Head.Seq, nil
}

// read is State.
func (c *core) read(ctx context.Context, id string, upTo uint64) (*report, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	m, head, err := c.load(ctx, id, upTo)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	seq := upTo
	if seq == 0 {
		seq = head.Seq
	}
	rep, err := c.report(m, id, seq)
	return rep, c.refuse(id, err)
}

// history is History.
func (c *core) history(ctx context.Context, id string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		if err := c.exists(ctx, id); err != nil {
			yield(Checkpoint{}, err)
			return
		}
		for e, err := range c.store.Read(ctx, id, 1, 0) {
			if err != nil {
				yield(Checkpoint{}, c.refuse(id, err))
				return
			}
			if e.Kind != checkpoint.Superstep || e.Outcome == outcomeFailed {
				continue
			}
			if !yield(Checkpoint{Run: id, Seq: e.Seq, Path: strings.Clone(e.Path), Superstep: e.Step, At: e.At}, nil) {
				return
			}
		}
	}
}

// at is At.
func (c *core) at(ctx context.Context, id, address string) (*report, error) {
	point, err := c.locate(ctx, id, address)
	if err != nil {
		return nil, err
	}
	m, _, err := c.load(ctx, id, point.Seq)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	rep, err := c.report(m, id, point.Seq)
	if err != nil || point.Path == "" {
		return rep, c.refuse(id, err)
	}
	return rep, c.nested(m, rep, point)
}

// nested makes a report tell of a frame inside the run, while its superstep is the last.
func (c *core) nested(m *machine, rep *report, point Checkpoint) error {
	f := m.frameAt(point.Path)
	if f == nil {
		return fmt.Errorf("dispatcher: run %q: %w: frame %q is not open at %s", rep.Run, checkpoint.ErrCursor, point.Path, point)
	}
	if f.plan.Schema != m.plan.Schema && !sameType(f.view, m.root.view) {
		return fmt.Errorf("dispatcher: run %q: %s: %w", rep.Run, point, ErrNested)
	}
	rep.Superstep = point.Superstep
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

// locate finds the checkpoint of an address.
func (c *core) locate(ctx context.Context, id, address string) (Checkpoint, error) {
	bad := fmt.Errorf("dispatcher: run %q: %w: %q is no checkpoint of the run", id, checkpoint.ErrCursor, address)
	path, number := "", address
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		path, number = address[:i], address[i+1:]
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n == 0 {
		return Checkpoint{}, bad
	}
	var found Checkpoint
	for p, err := range c.history(ctx, id) {
		if err != nil {
			return Checkpoint{}, err
		}
		if path == id && p.Seq == n {
			return p, nil
		}
		if p.Path == path && p.Superstep == int(n) {
			found = p // a loop that was voided and entered again counts the last time
		}
	}
	if found.Seq == 0 {
		return Checkpoint{}, bad
	}
	return found, nil
}

func marshal(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && !json.Valid(raw) {
		return nil, errors.New("is not JSON")
	}
	return json.Marshal(v)
}
