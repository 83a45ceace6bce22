package dispatcher

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Migration says how a run goes on whose past the dispatcher's graph does not have: where its
// visits stand in the new graph, and what becomes of its state. It is asked only if the change
// would otherwise be refused. Whatever it says, the run has to stand then where a run of the new
// graph can stand: everything before a visit that is done or open is settled. Otherwise the run is
// refused.
//
// Migrations don't chain, since each leads to the dispatcher's graph. The third version of a
// program has one from the first version to the third beside the one from the second.
//
// What a Migration decided is in the log once a call has gone on with the run or edited it, and for
// a completed run once a further turn has begun. Until then every call asks anew, even one that
// only reads the run's state. A call that reads a checkpoint from before the migration asks anew
// for ever. So State should return the same whenever it is asked.
type Migration struct {
	// Name tells the migration from others, in the log and in errors. It has 1 to 128 bytes of
	// UTF-8 without control characters.
	Name string
	// From is the digest of the graph that the run comes from. "" means any graph of the same name.
	// If it is the digest of a graph of another name, the runs of that graph are the dispatcher's
	// as well ([Dispatcher.Takes]): a supervisor recovers them, and a continuation.Runtime looks
	// for them. Until they are gone on with, a listing by the name of a graph has them under the
	// old name.
	From string
	// Nodes says what nodes are called now, by their node paths: "compose/validate":
	// "compose/check". A node stays in the graph that it is in. "" means that there is no such node
	// any more, and that its visit is forgotten. Nil means that names are the same. Nodes is kept
	// in the log.
	//
	//   - What a forgotten visit wrote, and what it depends on ([dag.Depends]), stays if it was
	//     merged. Otherwise it is dropped with what waited in the visit. What was kept of its
	//     effects is dropped.
	//   - An open visit that is renamed has another idempotency key from then on. So has a visit of
	//     a later node that gets the name of a renamed or forgotten one.
	//   - A visit is not renamed or forgotten while an effect of it was begun and has not ended.
	//   - A node that is put before an open one takes its name here, {"ship": "insure"}: the open
	//     visit becomes one of the new node, and the old node follows. Forgetting the open visit is
	//     refused, since its node is still in the graph. So is naming it if an effect of it has
	//     happened: that would go with it to the new node, and the old one would do it again. Bring
	//     such a run over that visit with the program that began it, and deploy then; or, if the
	//     name was to be another node's, give that one another. No node is put before a visit that
	//     is done: such a run goes on with the program that it has.
	Nodes map[string]string
	// State changes the state of a frame that is open: the run's own (path "") and those of the
	// graphs that its visits hold. It gets an object of the cells that are not zero, by their
	// names, and returns another. Nil means that states are the same; a cell that holds something
	// and is of another type now is refused.
	//
	// If the type of a cell has changed so that what it holds fits the new one, such as a struct
	// with one field more, State may return what it gets. The elements of a [state.Set] it has to
	// return as the new program writes them, or the Set does not find them.
	//
	// State does not change what has not been merged yet:
	//
	//   - What the iterations of a Loop have written, with which its visit ends: a cell that they
	//     wrote to ends as they left it.
	//   - What visits have written, such as the items of an Each under way. If such a cell has
	//     another type now the run is refused until that is merged, unless Nodes has the Loop or
	//     Each forgotten, and one of another name begins anew.
	//   - The items of an Each under way. If their JSON is different now, as that of a struct with
	//     one field more that has no omitempty, that is an [*ItemsChangedError]; an Edit that names
	//     the Each in Void has it begin anew.
	//
	// A state that is larger than Limits.StateBytes is a [*LimitError] of the call, and changes
	// nothing.
	State func(path string, state json.RawMessage) (json.RawMessage, error)
}

// checkMigrations refuses migrations that could never be right.
func checkMigrations(plan *dag.Plan, all []Migration) error {
	names := map[string]bool{}
	for i, m := range all {
		option := fmt.Sprintf("Migrations[%d]", i)
		switch {
		case m.Name == "":
			return &OptionError{option, "has no name"}
		case badText(m.Name, maxKey) != "":
			return &OptionError{option, fmt.Sprintf("has the name %.40q, which %s", m.Name, badText(m.Name, maxKey))}
		case names[m.Name]:
			return &OptionError{option, fmt.Sprintf("has the name %q, as one before it", m.Name)}
		case m.From != "" && !isDigest(m.From):
			return &OptionError{option, fmt.Sprintf("%q comes from %q, which is no digest of a graph: "+
				"Graph.Digest and GraphChangedError have it", m.Name, m.From)}
		case m.From == plan.Digest:
			return &OptionError{option, fmt.Sprintf("%q comes from the graph that it goes to", m.Name)}
		}
		names[m.Name] = true
		if err := m.checkNodes(plan); err != nil {
			return &OptionError{option, fmt.Sprintf("%q: %v", m.Name, err)}
		}
	}
	return nil
}

// isDigest reports whether s has the form of a graph's digest.
func isDigest(s string) bool {
	sum, ok := strings.CutPrefix(s, "sha256:")
	b, err := hex.DecodeString(sum)
	return ok && err == nil && len(b) == sha256.Size && s == strings.ToLower(s)
}

func (m *Migration) checkNodes(plan *dag.Plan) error {
	taken, given := map[string]string{}, slices.Collect(maps.Values(m.Nodes))
	c := change{names: m.Nodes}
	for _, was := range slices.Sorted(maps.Keys(m.Nodes)) {
		is := m.Nodes[was]
		if was == "" || nodePath(was) != was {
			return fmt.Errorf("%q is no path of a node", was)
		}
		if is == "" {
			if is := c.renamed(was); checkPath(plan, is) == nil && !slices.Contains(given, is) {
				return fmt.Errorf("node %s is to be forgotten, and is in the graph", is)
			}
			continue
		}
		if nodePath(is) != is {
			return fmt.Errorf("%q is no path of a node", is)
		}
		if err := checkPath(plan, is); err != nil {
			return fmt.Errorf("%q: %w: a Migration leads to this graph, and none to another: write it anew for each From", is, err)
		}
		if c.renamed(was) != is {
			return fmt.Errorf("node %s can't become %s: a node stays in the graph that it is in", was, is)
		}
		if other, ok := taken[is]; ok {
			return fmt.Errorf("nodes %s and %s can't both be %s: forget one of them", other, was, is)
		}
		taken[is] = was
	}
	return nil
}

// migration returns the first one that is for runs of a graph, nil if there is none.
func (c *core) migration(from *dag.Plan) *Migration {
	for i := range c.opts.Migrations {
		m := &c.opts.Migrations[i]
		if m.From == from.Digest || m.From == "" && from.Name == c.plan.Name {
			return m
		}
	}
	return nil
}

// migrating begins the text of what went wrong while a run of that graph was brought to the
// dispatcher's graph.
func (c *core) migrating(from *dag.Plan) string {
	if m := c.migration(from); m != nil {
		return fmt.Sprintf("migration %q: ", m.Name)
	}
	return ""
}

// adopt brings the run to the dispatcher's graph, or says why that can't be.
func (r *run) adopt() error {
	var d checkpoint.Migration
	err := r.asking("migration", func() (err error) {
		d, err = r.c.carry(r.id, r.m)
		return err
	})
	if err != nil {
		return err
	}
	e, err := r.c.adopted(r.stored, d)
	if err != nil {
		return err
	}
	x := said(e, nil)
	x.more().plan = r.c.plan
	r.add(x)
	return nil
}

// adoption is the entry that brings a run to the dispatcher's graph, and that every later
// replay goes on from.
func (c *core) adoption(ctx context.Context, id string, was *machine) (checkpoint.Entry, error) {
	d, err := c.carry(id, was)
	if err != nil {
		return checkpoint.Entry{}, err
	}
	return c.adopted(ctx, d)
}

// adopted is the entry of a run that was carried, whose graph it stores.
func (c *core) adopted(ctx context.Context, d checkpoint.Migration) (checkpoint.Entry, error) {
	if err := c.putGraph(ctx); err != nil {
		return checkpoint.Entry{}, err
	}
	return checkpoint.Entry{Kind: checkpoint.Migrated, Data: encode(d)}, nil
}

// carries returns why the dispatcher's graph could not go on with a run, nil if it can.
func (c *core) carries(id string, m *machine) error {
	if m.plan == c.plan {
		return nil
	}
	_, err := c.carry(id, m)
	return err
}

// carry takes a run to the dispatcher's graph, or says why that can't be.
func (c *core) carry(id string, was *machine) (checkpoint.Migration, error) {
	from := was.plan
	d := checkpoint.Migration{Graph: c.plan.Name, From: from.Digest, To: c.plan.Digest}
	var plain change
	d.Machine = plain.onto(was, c.plan)
	if reasons := plain.reasons; reasons != nil {
		m := c.migration(from)
		if m == nil {
			return d, c.changed(id, from.Digest, reasons)
		}
		next, err := c.migrate(id, was, m)
		if err != nil {
			return d, err
		}
		d.Name, d.Nodes, d.Machine = m.Name, m.Nodes, next
	}
	return d, nil
}

// migrate takes a run to the dispatcher's graph as a migration says, or says why that can't be.
func (c *core) migrate(id string, was *machine, how *Migration) ([]byte, error) {
	next, err := how.onto(was, c.plan, c.opts.Limits.StateBytes)
	if err == nil && next.reasons != nil {
		changed := c.changed(id, was.plan.Digest, next.reasons)
		changed.Migration = how.Name
		return nil, changed
	}
	return next.machine, err
}

// A migrated is what a migration made of a machine, or why it could not.
type migrated struct {
	machine []byte
	reasons []string
}

// onto asks the migration for the states of all open frames, and takes the machine to the
// graph. limit is how large a state may be.
func (m *Migration) onto(was *machine, is *dag.Plan, limit int) (migrated, error) {
	c := change{names: m.Nodes, byDigest: m.From != "", limit: limit}
	if m.State != nil {
		c.views = map[string]json.RawMessage{}
		if err := m.states(was.root, is, &c); err != nil {
			return migrated{}, err
		}
	}
	return migrated{machine: c.onto(was, is), reasons: c.reasons}, nil
}

// states asks for the state of f and of the frames that its visits hold. is is the graph of
// f from now on, nil if it is forgotten.
func (m *Migration) states(f *frame, is *dag.Plan, c *change) error {
	if is == nil {
		return nil
	}
	if f.items == nil || !f.sharesView() {
		view, err := m.state(f)
		if err != nil {
			return err
		}
		reasons, view, size := accepts(f, is.Schema, view)
		if size > c.limit {
			return &LimitError{"state bytes", c.limit, m.of(f)}
		}
		c.reasons = append(c.reasons, reasons...)
		c.views[f.path] = view
	}
	for i := range f.tasks {
		t := &f.tasks[i]
		if t.inner == nil {
			continue
		}
		if err := m.states(t.inner, c.body(t, is), c); err != nil {
			return err
		}
	}
	return nil
}

// body is the graph of the frame that a visit holds, whose own is is; nil if it is gone.
func (c *change) body(t *task, is *dag.Plan) *dag.Plan {
	name := t.node.Name
	if to, ok := c.names[t.nodePath()]; ok {
		name = to[strings.LastIndexByte(to, '/')+1:]
	}
	switch n := nodeOf(is, name); {
	case n == nil:
		return nil
	case n.Kind == dag.KindEach && !t.isItem(): // items have the state that the Each has
		return is
	default:
		return n.Body
	}
}

// state calls the user's function for one frame.
func (m *Migration) state(f *frame) (view json.RawMessage, err error) {
	failed := protect(func() {
		view, err = m.State(f.path, f.view.AppendJSON(nil))
		err = sound(err)
	})
	if failed != nil {
		return nil, &FaultError{Kind: "migration", Message: m.of(f) + ": " + failed.Error(), Stack: failed.stack, Err: failed.err}
	}
	if err != nil {
		return nil, &FaultError{Kind: "migration", Message: m.of(f) + ": " + fmt.Sprint(err), Err: err}
	}
	return view, nil
}

// of is how an error speaks of the migration of the state of a frame.
func (m *Migration) of(f *frame) string {
	return fmt.Sprintf("migration %q of the state of frame %q", m.Name, f.path)
}

// accepts checks a state that a migration returned against the cells of the new graph. size is that
// of the state, if it is one.
func accepts(f *frame, schema *state.Schema, view json.RawMessage) (reasons []string, compact json.RawMessage, size int) {
	var cells map[string]json.RawMessage
	var buf bytes.Buffer
	if err := json.Unmarshal(view, &cells); err != nil {
		return []string{fmt.Sprintf("the migrated state of frame %q is no object: %v", f.path, err)}, view, 0
	}
	if err := json.Compact(&buf, view); err != nil {
		return []string{fmt.Sprintf("the migrated state of frame %q: %v", f.path, err)}, view, 0
	}
	for _, info := range schema.Cells() {
		if raw, ok := cells[info.Name]; ok {
			if err := info.Type.Decodes(raw); err != nil {
				reasons = append(reasons, fmt.Sprintf("the migrated state of frame %q: cell %s: %s", f.path, info.Name, plain(err)))
			}
		}
	}
	switch is, err := schema.Parse(buf.Bytes()); {
	case err == nil:
		size = is.Size()
	case reasons == nil:
		reasons = append(reasons, fmt.Sprintf("the migrated state of frame %q: %s", f.path, plain(err)))
	}
	return reasons, buf.Bytes(), size
}
