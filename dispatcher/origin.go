package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

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
	g := gathering{run: id, turn: m.turn, graph: m.plan.Digest, renames: m.renames, begun: map[string]string{}}
	if m.shelf != nil { // the run is a fork itself, and has not come to all of it
		s.trimmed = m.shelf.trimmed
		m.shelf.each(func(name, key string, e shelved) {
			if graph, _ := ofGraph(name); graph != "" {
				s.put(name, key, e)
				return
			}
			g.ended = append(g.ended, gathered{name, key, g.renames, e})
		})
	}
	for path, of := range m.effects {
		for key, e := range of {
			g.found(path, key, e)
		}
	}
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return nil, err
	}
	if from+1 < info.First { // the checkpoint was kept for its name, and entries behind it are gone
		reached, err := g.leap(ctx, c, &info, from)
		if err != nil {
			return nil, err
		}
		s.trimmed, from = max(s.trimmed, reached), info.First-1
	}
	if from < to {
		if err := g.readAll(ctx, c, from, to); err != nil {
			return nil, err
		}
	}
	g.shelve(s, m)
	return s, nil
}

// A gathering collects what a log tells of effects.
type gathering struct {
	run     string
	turn    int
	graph   string            // digest of the one that the run has, here in the log
	renames renames           // of it
	begun   map[string]string // digests of inputs, by what is on the shelf and key
	ended   []gathered
}

// A gathered is what an effect has returned in a visit that had the name where a run had the
// renames.
type gathered struct {
	name, key string
	renames   renames
	shelved
}

// shelve puts what was found on the shelf of a fork that begins with a machine. What a visit did
// that is not in that one, since its node has another one's name, is not there.
func (g *gathering) shelve(s *shelf, m *machine) {
	moved := g.graph != m.plan.Digest && !slices.EqualFunc(g.renames, m.renames, maps.Equal[map[string]string])
	for i := range g.ended {
		e := &g.ended[i]
		if name, there := m.renames.called(e.name, e.renames); there {
			s.put(name, e.key, e.shelved)
		}
		if !moved {
			continue
		}
		if name, there := g.renames.called(e.name, e.renames); there {
			s.put(inGraph(g.graph, name), e.key, e.shelved)
		}
	}
}

// leap goes on where the log begins that is left, and returns the last turn that the run was in
// between an entry and there.
func (g *gathering) leap(ctx context.Context, c *core, info *checkpoint.Info, from uint64) (reached int, err error) {
	z, err := c.base(ctx, info.Run, info.Base)
	if err != nil {
		return 0, err
	}
	g.turn, g.graph, g.renames = z.Turn, z.Graph, z.Renames
	for path, of := range z.Effects {
		for key, e := range of {
			g.found(path, key, e.thaw())
		}
	}
	return z.reached(from), nil
}

func (g *gathering) readAll(ctx context.Context, c *core, from, to uint64) error {
	left := c.opts.Limits.DecodeBytes
	for e, err := range c.store.Read(ctx, g.run, from+1, to) {
		if err != nil {
			return err
		}
		if e.Kind == checkpoint.EffectEnded {
			if err := c.opts.Limits.decode(&left, len(e.Data), "the effect at entry", e.Seq); err != nil {
				return err
			}
		}
		if err := g.read(&e); err != nil {
			return &checkpoint.CorruptError{Run: g.run, Seq: e.Seq, Reason: err.Error()}
		}
	}
	return nil
}

// found collects what a machine knows of an effect.
func (g *gathering) found(path, key string, e *effect) {
	name := onShelf(g.turn, path)
	g.begun[name+"#"+key] = e.digest
	if e.state == effectEnded {
		g.ended = append(g.ended, gathered{name, key, g.renames, shelved{Digest: e.digest, Output: e.output, Run: cmp.Or(e.reused, g.run)}})
	}
}

// read collects what an entry tells.
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
		if err := json.Unmarshal(e.Data, &w); err != nil {
			return err
		}
		var m struct{ Renames renames }
		err := json.Unmarshal(w.Machine, &m)
		g.turn, g.graph, g.renames = w.Turn, w.Digest, m.Renames
		return err
	case checkpoint.Migrated:
		var m checkpoint.Migration
		err := json.Unmarshal(e.Data, &m)
		if g.graph = m.To; len(m.Nodes) > 0 {
			g.renames = append(slices.Clip(g.renames), m.Nodes)
		}
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
		g.ended = append(g.ended, gathered{
			name, e.ID, g.renames, shelved{Digest: g.begun[name+"#"+e.ID], Output: end.Output, Run: cmp.Or(end.Reused, g.run)},
		})
	}
	return nil
}
