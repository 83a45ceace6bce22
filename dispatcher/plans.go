package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// planOf returns the graph of a digest: the dispatcher's own, or else one without functions,
// by which a log can be replayed that another program has written.
func (c *core) planOf(ctx context.Context, id, digest string) (*dag.Plan, error) {
	if digest == c.plan.Digest {
		return c.plan, nil
	}
	if p, ok := c.parsed.Load(digest); ok {
		return p.(*dag.Plan), nil
	}
	graph, err := c.store.Graph(ctx, digest)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, c.changed(id, digest, []string{noGraph})
	}
	if err != nil {
		return nil, err
	}
	p, err := dag.ParsePlan(graph)
	if err == nil && p.Digest != digest {
		err = fmt.Errorf("another graph, %s, stands in its place", p.Digest)
	}
	if err != nil {
		return nil, &checkpoint.CorruptError{Run: id, Reason: fmt.Sprintf("graph %s: %v", digest, err)}
	}
	c.parsed.Store(digest, p)
	return p, nil
}

// foreign returns the graph of a digest if it is another than the dispatcher's, and planOf has
// found it before.
func (c *core) foreign(digest string) *dag.Plan {
	if digest == "" || digest == c.plan.Digest {
		return nil
	}
	p, _ := c.parsed.Load(digest)
	plan, _ := p.(*dag.Plan)
	return plan
}

// planned gives the machine, or the fact, the graph that an entry, of this number, speaks of.
func (c *core) planned(ctx context.Context, m *machine, id string, seq uint64, x *fact) error {
	var digest string
	switch x.Kind {
	case checkpoint.Opened:
		o, err := parse(x.Data, plainOpening)
		if err != nil {
			return &checkpoint.CorruptError{Run: id, Seq: 1, Reason: err.Error()}
		}
		x.more().opening, digest = &o, o.Digest
		if o.Origin != nil {
			if err := c.originOf(ctx, id, x); err != nil {
				return err
			}
		}
	case checkpoint.Rewound:
		var d checkpoint.Rewinding
		if err := json.Unmarshal(x.Data, &d); err != nil {
			return &checkpoint.CorruptError{Run: id, Seq: seq, Reason: err.Error()}
		}
		digest = d.Digest
	case checkpoint.Migrated:
		var d checkpoint.Migration
		if err := json.Unmarshal(x.Data, &d); err != nil {
			return &checkpoint.CorruptError{Run: id, Seq: seq, Reason: err.Error()}
		}
		digest = d.To
	default:
		return nil
	}
	plan, err := c.planOf(ctx, id, digest)
	if err != nil {
		return err
	}
	if x.Kind == checkpoint.Opened {
		m.plan = plan
		return nil
	}
	x.more().plan = plan
	return nil
}

func (c *core) changed(id, stored string, reasons []string) *GraphChangedError {
	return &GraphChangedError{Run: id, Stored: stored, Current: c.plan.Digest, Changes: reasons}
}

// report reads a machine. Of a run of another graph the state is read with the dispatcher's
// types; if it does not fit them, or the graph is of another name, the report has none, and
// the error says why.
func (c *core) report(m *machine, id string, seq uint64) (*report, error) {
	rep := m.report(id, seq)
	if m.plan == c.plan || m.root == nil {
		return rep, nil
	}
	if err := c.sameName(id, m.plan.Name, m.plan.Digest); err != nil {
		return rep, err
	}
	var err error
	rep.state, err = c.typed(m, m.root.view, id, seq)
	return rep, err
}

// sameName refuses a run of a graph of another name, unless a migration names that graph.
func (c *core) sameName(id, name, digest string) error {
	if c.takes(name, digest) {
		return nil
	}
	return c.changed(id, digest, []string{ofOtherName(name, c.plan.Name)})
}

// takes reports whether runs of a graph are the dispatcher's.
func (c *core) takes(name, digest string) bool {
	return name == c.plan.Name || slices.ContainsFunc(c.opts.Migrations, func(m Migration) bool { return m.From == digest })
}

// graphs are the names of the graphs whose runs the dispatcher takes. Of one that the store does
// not have there are no runs.
func (c *core) graphs(ctx context.Context) ([]string, error) {
	names := []string{c.plan.Name}
	var errs []error
	for _, m := range c.opts.Migrations {
		if m.From == "" || c.store == nil {
			continue
		}
		p, err := c.planOf(ctx, "", m.From)
		switch {
		case errors.As(err, new(*GraphChangedError)): // there is none
		case err != nil:
			errs = append(errs, fmt.Errorf("dispatcher: the graph that migration %q names: %w", m.Name, err))
		case !slices.Contains(names, p.Name):
			names = append(names, p.Name)
		}
	}
	return names, errors.Join(errs...)
}

// carried is the machine as a migration makes it, for reading only, or why it makes none.
func (c *core) carried(id string, m *machine, how *Migration) (*machine, error) {
	data, err := c.migrate(id, m, how)
	if err != nil {
		return nil, err
	}
	z, err := parseMachine(data)
	if err != nil {
		return nil, err
	}
	next := newMachine(c.plan)
	next.replaying = true
	return next, next.thawAll(z)
}

// carriedState is the state of a frame that can't be read for err, as a migration makes it: as the
// call that goes on would have it. It is err if there is no migration, or if the frame has a state
// of another type than the run. If the migration fails, or does not fit, the error says why.
func (c *core) carriedState(id string, m *machine, path string, err error) (any, error) {
	var changed *GraphChangedError
	how := c.migration(m.plan)
	if how == nil || !errors.As(err, &changed) && !errors.Is(err, checkpoint.ErrCorrupt) {
		return nil, err
	}
	f, root, failed := c.carriedFrame(id, m, path, how)
	switch {
	case failed != nil:
		return nil, failed
	case f != nil && sameType(f.view, root.view):
		return f.view.Draft().Value(), nil
	}
	if changed != nil {
		changed.Migration = how.Name
	}
	return nil, err
}

// carriedFrame is a frame as a migration makes it, nil if it is not there any more, and that of the
// run.
func (c *core) carriedFrame(id string, m *machine, path string, how *Migration) (f, root *frame, err error) {
	next, err := c.carried(id, m, how)
	if err != nil || next.root == nil {
		return nil, nil, err
	}
	names := change{names: how.Nodes}
	return next.frameAt(names.renamed(path)), next.root, nil
}

// typed is a copy of a state of the machine in the types of the dispatcher's own graph. If
// it is of another graph and does not fit, the error says why.
func (c *core) typed(m *machine, view state.Image, id string, seq uint64) (any, error) {
	if m.plan == c.plan {
		return view.Draft().Value(), nil
	}
	view, reasons, err := refit(view, c.plan.Schema)
	switch {
	case err != nil:
		return nil, &checkpoint.CorruptError{Run: id, Seq: seq, Reason: err.Error()}
	case reasons != nil:
		return nil, c.changed(id, m.plan.Digest, reasons)
	}
	return view.Value(), nil
}

// refit is a state of one schema as a state of another. The reasons say which cells that
// hold something do not fit.
func refit(view state.Image, schema *state.Schema) (state.Image, []string, error) {
	data := view.AppendJSON(nil)
	var used map[string]json.RawMessage
	if err := json.Unmarshal(data, &used); err != nil {
		return state.Image{}, nil, err
	}
	var reasons []string
	was, is := view.Schema().Cells(), schema.Cells()
	for name := range used {
		if reason := cellChanged(name, was, is); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if reasons != nil {
		slices.Sort(reasons)
		return state.Image{}, reasons, nil
	}
	next, err := schema.Parse(data)
	return next, nil, err
}

// cellsOf describes the cells of a state or delta.
func cellsOf(data json.RawMessage, schema *state.Schema) []state.CellInfo {
	var used map[string]json.RawMessage
	if json.Unmarshal(data, &used) != nil {
		return nil
	}
	return slices.DeleteFunc(schema.Cells(), func(c state.CellInfo) bool {
		_, ok := used[c.Name]
		return !ok
	})
}
