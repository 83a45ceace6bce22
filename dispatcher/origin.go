package dispatcher

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlgo/pawl/checkpoint"
)

// originOf gives the fact that opens a fork the machine that it begins with.
func (c *core) originOf(ctx context.Context, id string, x *fact) error {
	o := x.opening.Origin
	left := c.opts.Limits.DecodeBytes
	base, err := c.baseData(ctx, id, o.Base, &left)
	if err != nil {
		return err
	}
	var shelf []byte
	if o.Shelf != "" {
		if shelf, err = c.baseData(ctx, id, o.Shelf, &left); err != nil {
			return err
		}
	}
	z, err := beginning(x.opening, base, shelf)
	if err != nil {
		return &checkpoint.CorruptError{Run: id, Seq: 1, Reason: err.Error()}
	}
	x.more().origin = z
	return nil
}

// base reads a machine that a run goes on from, which its store keeps.
func (c *core) base(ctx context.Context, id, digest string) (*frozenMachine, error) {
	left := c.opts.Limits.DecodeBytes
	data, err := c.baseData(ctx, id, digest, &left)
	if err != nil {
		return nil, err
	}
	z, err := parseMachine(data)
	if err != nil {
		return nil, &checkpoint.CorruptError{Run: id, Reason: "base " + digest + ": " + err.Error()}
	}
	return z, nil
}

// baseData reads a base of a run. What it has is taken from left.
func (c *core) baseData(ctx context.Context, id, digest string, left *int) ([]byte, error) {
	data, err := c.store.Base(ctx, id, digest)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, &checkpoint.CorruptError{Run: id, Reason: "its base " + digest + " is not in the store"}
	}
	if err != nil {
		return nil, err
	}
	return data, c.opts.Limits.decode(left, len(data), "the base at entry", 1)
}

// shelve collects what effects have returned in a run behind the entry that the machine was
// replayed up to, and in visits that were under way there.
func (c *core) shelve(ctx context.Context, id string, m *machine, how EffectsOfFork, from, to uint64) (*shelf, error) {
	if how == Live {
		return nil, nil
	}
	s := &shelf{how: how} // an empty one too: it says what becomes of other effects
	if m.shelf != nil {   // the run is a fork itself, and has not come to all of it
		m.shelf.each(s.put)
	}
	g := gathering{shelf: s, run: id, turn: m.turn, begun: map[string]string{}}
	for path, of := range m.effects {
		for key, e := range of {
			g.found(path, key, e)
		}
	}
	info, err := c.store.Stat(ctx, id)
	if err != nil || from >= to {
		return s, err
	}
	from = max(from, info.First-1) // of a checkpoint that was kept for its name, entries are gone
	left := c.opts.Limits.DecodeBytes
	for e, err := range c.store.Read(ctx, id, from+1, to) {
		if err != nil {
			return nil, err
		}
		if e.Kind == checkpoint.EffectEnded {
			if err := c.opts.Limits.decode(&left, len(e.Data), "the effect at entry", e.Seq); err != nil {
				return nil, err
			}
		}
		if err := g.read(&e); err != nil {
			return nil, &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()}
		}
	}
	return s, nil
}

// A gathering puts what a log tells of effects on a shelf.
type gathering struct {
	shelf *shelf
	run   string
	turn  int
	begun map[string]string // digests of inputs, by what is on the shelf and key
}

// found puts what a machine knows of an effect on the shelf.
func (g *gathering) found(path, key string, e *effect) {
	name := onShelf(g.turn, path)
	g.begun[name+"#"+key] = e.digest
	if e.state == effectEnded {
		g.shelf.put(name, key, shelved{Digest: e.digest, Output: e.output, Run: g.run})
	}
}

// read puts what an entry tells on the shelf.
func (g *gathering) read(e *checkpoint.Entry) error {
	name := onShelf(g.turn, e.Path)
	switch e.Kind {
	case checkpoint.TurnBegun:
		var t checkpoint.Turn
		err := json.Unmarshal(e.Data, &t)
		g.turn = t.Number
		return err
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		err := json.Unmarshal(e.Data, &w)
		g.turn = w.Turn
		return err
	case checkpoint.EffectBegun:
		var b checkpoint.BegunEffect
		err := json.Unmarshal(e.Data, &b)
		g.begun[name+"#"+e.ID] = b.Digest
		return err
	case checkpoint.EffectEnded:
		var end checkpoint.EndedEffect
		if err := json.Unmarshal(e.Data, &end); err != nil || end.Output == nil {
			return err
		}
		by := g.run
		if end.Reused != "" {
			by = end.Reused
		}
		g.shelf.put(name, e.ID, shelved{Digest: g.begun[name+"#"+e.ID], Output: end.Output, Run: by})
	}
	return nil
}
