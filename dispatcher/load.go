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

// load replays a run up to an entry (0 means its head) into a machine, under the graph that
// the run had then.
func (c *core) load(ctx context.Context, id string, upTo uint64) (m *machine, head checkpoint.Head, err error) {
	err = c.steadily(ctx, id, func(info *checkpoint.Info) error {
		if m, _, err = c.loadFrom(ctx, info, upTo, nil); err == nil {
			head, err = info.Head, c.remains(ctx, info)
		}
		return err
	})
	if err != nil {
		return nil, checkpoint.Head{}, err
	}
	return m, head, nil
}

// loadFrom is load for who wants to see the entries that are read, and may not keep them: those
// behind the one that is returned.
func (c *core) loadFrom(ctx context.Context, info *checkpoint.Info, upTo uint64, hear func(*checkpoint.Entry) error) (*machine, uint64, error) {
	id := info.Run
	if info.Head.Seq == 0 {
		return nil, 0, checkpoint.ErrNotFound
	}
	upTo = cmp.Or(upTo, info.Head.Seq)
	left := c.opts.Limits.DecodeBytes
	m, from, err := c.restore(ctx, id, upTo, &left)
	if err == nil && from == 0 && info.First > 1 {
		from, err = c.behind(ctx, m, info, upTo)
	}
	if err != nil || from == upTo {
		return m, from, err
	}
	var room extra
	var slabs state.Slabs
	var keeping checkpoint.Keeping
	for e, err := range c.store.Read(keeping.With(ctx), id, from+1, upTo) {
		if err != nil {
			return nil, 0, err
		}
		size := sizeOf(&e)
		if err := c.opts.Limits.decode(&left, size, "entry", e.Seq); err != nil {
			return nil, 0, err
		}
		m.read += size
		if hear != nil {
			heard := e // else every entry would be allocated
			if err := hear(&heard); err != nil {
				return nil, 0, err
			}
		}
		kept := &slabs
		if !keeping.Has(e.Delta) {
			kept = nil
		}
		if err := c.replay(ctx, m, id, &e, &room, kept); err != nil {
			return nil, 0, err
		}
	}
	if m.root == nil {
		return nil, 0, &checkpoint.CorruptError{Run: id, Seq: 1, Reason: "the log does not begin with opened"}
	}
	m.since, m.heir = info.Updated, nil
	return m, from, nil
}

// replay applies an entry of the log to a machine. What most entries don't have is put into room,
// if that is given. With slabs the delta is kept as it is.
func (c *core) replay(ctx context.Context, m *machine, id string, e *checkpoint.Entry, room *extra, slabs *state.Slabs) error {
	x := saidIn(e, nil, room)
	x.live = false
	if slabs != nil {
		x.more().slabs = slabs
	}
	if x.Kind == checkpoint.Rewound {
		x.more().seq = e.Seq
	}
	if err := c.planned(ctx, m, id, e.Seq, &x); err != nil {
		return err
	}
	if err := m.apply(&x); err != nil {
		return &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()}
	}
	return nil
}

// restore begins a replay: from a snapshot if there is one. What that has is taken from left.
func (c *core) restore(ctx context.Context, id string, upTo uint64, left *int) (*machine, uint64, error) {
	m := newMachine(c.plan)
	m.replaying, m.heir = true, c.heir()
	s, err := c.store.Snapshot(ctx, id, upTo)
	if errors.Is(err, checkpoint.ErrNotFound) || s.Head.Seq > upTo && err == nil {
		return m, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := c.opts.Limits.decode(left, len(s.Data), "the snapshot at entry", s.Head.Seq); err != nil {
		return nil, 0, err
	}
	z, err := parseMachine(s.Data)
	if err != nil {
		return nil, 0, &checkpoint.CorruptError{Run: id, Seq: s.Head.Seq, Reason: "snapshot: " + err.Error()}
	}
	return m, s.Head.Seq, c.thaw(ctx, m, id, s.Head.Seq, z)
}

// thaw makes m the machine that the store keeps of a run as it stood at an entry, under the graph
// that the run had then.
func (c *core) thaw(ctx context.Context, m *machine, id string, at uint64, z *frozenMachine) error {
	plan, err := c.planOf(ctx, id, z.Graph)
	if err != nil {
		return err
	}
	m.plan = plan
	if err := m.thawAll(z); err != nil {
		return &checkpoint.CorruptError{Run: id, Seq: at, Reason: "the machine that is kept: " + err.Error()}
	}
	return nil
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
	seq = cmp.Or(seq, head.Seq)
	rep, err := c.report(m, id, seq)
	if err != nil {
		rep.state, err = c.carriedState(id, m, "", err)
	}
	return rep, c.refuse(id, err)
}

// marshal is the JSON of a user's value, without escapes of HTML: JSON inside of it stays as it is,
// but for its spaces.
func marshal(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok && !json.Valid(raw) {
		if len(raw) == 0 {
			return nil, errors.New("it is an empty json.RawMessage, which is not JSON: give nil for null")
		}
		return nil, fmt.Errorf("it is not JSON: %w", json.Unmarshal(raw, new(json.RawMessage)))
	}
	return inJSON(v, asJSON)
}

// marshalled is json.Marshal of a user's value.
func marshalled(v any) (json.RawMessage, error) {
	return inJSON(v, func(v any) (json.RawMessage, error) { return json.Marshal(v) })
}

// inJSON has a user's value encoded. Text that is not UTF-8 is [state.ErrUTF8], as it is in a cell.
// A panic of the value's own MarshalJSON is an error as well.
func inJSON(v any, as func(any) (json.RawMessage, error)) (raw json.RawMessage, err error) {
	failed := protect(func() {
		if raw, err = as(v); err == nil {
			err = state.CheckText(v, raw)
		}
	})
	if failed != nil {
		return nil, errors.New(failed.tells())
	}
	return raw, err
}
