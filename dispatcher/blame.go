package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A Blame tells who wrote a cell.
type Blame struct {
	Cell string
	// Writers are those whose writes make up the value, oldest first: whoever wrote the whole cell
	// last, and those who have added to it since. An empty cell that somebody has emptied has
	// writers too.
	Writers Writers
}

// String tells the cell and its writers on one line: Total: visit pay at order-7@4, edit by ann at
// order-7@9.
func (b Blame) String() string { return b.Cell + ": " + b.Writers.String() }

// Writers are the writers of one cell, oldest first.
type Writers []Writer

// String tells the writers on one line, with commas between them, or nobody if there are none.
func (all Writers) String() string {
	if len(all) == 0 {
		return "nobody"
	}
	told := make([]string, len(all))
	for i, w := range all {
		told[i] = w.String()
	}
	return strings.Join(told, ", ")
}

// A Writer is who wrote to a cell.
type Writer struct {
	Kind WriterKind
	Run  string // in whose log it is told: the run, or one that it was forked from
	Seq  uint64 // of the entry
	Turn int
	// Path is that of the visit: compose-loop/2/draft is the second iteration. What was written
	// inside a Loop or Each was written by the visits there; what an Embed gives out, by the Embed.
	Path    string
	Attempt int    // of the visit
	By      string // of an edit, who did it
	At      time.Time
}

// A WriterKind says by what a cell was written.
type WriterKind string

// Kinds of writers.
const (
	WroteInput     WriterKind = "input"     // the input with which the run, or a frame inside it, was opened
	WroteTurn      WriterKind = "turn"      // the input of a later turn
	WroteVisit     WriterKind = "visit"     // a node
	WroteEdit      WriterKind = "edit"      // a person
	WroteMigration WriterKind = "migration" // a Migration, for another graph
	WroteBefore    WriterKind = "before"    // somebody; the entries that tell who are gone
)

// String tells the writer on one line: visit draft attempt 2 at inquiry-42@17, or: edit by ann at
// inquiry-42@19.
func (w Writer) String() string {
	var b bytes.Buffer
	b.WriteString(string(w.Kind))
	if w.Path != "" {
		b.WriteString(" " + w.Path)
	}
	if w.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", w.Attempt)
	}
	if w.By != "" {
		b.WriteString(" by " + w.By)
	}
	fmt.Fprintf(&b, " at %s@%d", w.Run, w.Seq)
	return b.String()
}

// Blame tells who wrote the cells of a run at a checkpoint: which visit, in which iteration and
// attempt, which input or edit. The address is one as At takes it; "" is the last checkpoint. If
// the checkpoint is of a frame inside the run, the cells are those of that frame. For a fork Blame
// goes on in the runs that it comes from, as long as they are there.
//
// Cells are named as in the state's JSON, those of nested structs with dots. No names mean every
// cell that somebody wrote to. Blame reads the whole log; the run may be of any graph, and the
// cells are those of that graph.
//
// An [*OptionError] names a cell that the state does not have. checkpoint.ErrCursor if the address
// names no checkpoint of the run.
func (d *Dispatcher[S]) Blame(ctx context.Context, run, address string, cells ...string) ([]Blame, error) {
	return d.inside().blame(ctx, run, address, cells)
}

func (c *core) blame(ctx context.Context, id, address string, cells []string) ([]Blame, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	var point Checkpoint
	var b *blaming
	var m *machine
	err := c.steadily(ctx, id, func(*checkpoint.Info) (err error) {
		if point, err = c.locate(ctx, id, address); err == nil {
			b, m, err = c.blaming(ctx, id, point.Seq)
		}
		return err
	})
	if err != nil {
		return nil, c.refuse(id, err)
	}
	if address == "" {
		point.Path = "" // as At reads it: the frame in which it is may be of another type, and nobody has named it
	}
	f := m.frameAt(point.Path)
	if f == nil {
		return nil, c.refuse(id, fmt.Errorf("%w: frame %q is not open at %s", checkpoint.ErrCursor, point.Path, point))
	}
	wrote := b.stateOf(f.held())
	var names []string
	for _, cell := range f.view.Schema().Cells() {
		names = append(names, cell.Name)
	}
	if len(cells) == 0 {
		cells = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(wrote[name].by) == 0 })
	}
	var all []Blame
	for _, name := range cells {
		if !slices.Contains(names, name) {
			return nil, c.refuse(id, &OptionError{fmt.Sprintf("cell %.40q", name), "is none of the state: name one as its JSON does"})
		}
		all = append(all, Blame{name, slices.Clone(wrote[name].by)})
	}
	return all, nil
}

// blaming replays a run up to an entry, without what was abandoned on the way.
func (c *core) blaming(ctx context.Context, id string, upTo uint64) (*blaming, *machine, error) {
	b, m := newBlaming(id), newMachine(c.plan)
	m.replaying = true
	spans, err := c.spans(ctx, id, upTo)
	if err != nil {
		return nil, nil, err
	}
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for len(spans) > 1 && spans[0].to < info.First {
		spans = spans[1:]
	}
	lost := spans[0].from > 1 && spans[0].from >= info.First // what the run was rewound to is gone
	left := c.opts.Limits.DecodeBytes
	if info.First > 1 {
		at, err := c.behind(ctx, m, &info, min(upTo, info.First-1))
		if err == nil && !lost {
			err = b.unknown(m, Writer{Kind: WroteBefore, Run: id, Seq: at, Turn: m.turn})
		}
		if err != nil || at == upTo {
			return b, m, err
		}
	}
	for _, s := range spans {
		s.from = max(s.from, info.First)
		for e, err := range c.store.Read(ctx, id, s.from, s.to) {
			if err == nil {
				size := sizeOf(&e)
				err = c.opts.Limits.decode(&left, size, "entry", e.Seq)
			}
			if err == nil {
				err = c.blameEntry(ctx, b, m, &e)
			}
			if err == nil && lost {
				lost = false
				err = b.unknown(m, Writer{Kind: WroteBefore, Run: id, Seq: m.lineage[len(m.lineage)-1].Seq, Turn: m.turn})
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	if m.root == nil {
		return nil, nil, &checkpoint.CorruptError{Run: id, Seq: 1, Reason: "the log does not begin with opened"}
	}
	return b, m, nil
}

// blameEntry follows one entry.
func (c *core) blameEntry(ctx context.Context, b *blaming, m *machine, e *checkpoint.Entry) error {
	own := *e // writers keep its texts
	var was map[string]state.Image
	switch {
	case e.Kind == checkpoint.Migrated && m.root != nil:
		was = map[string]state.Image{}
		m.root.views(was)
	case e.Kind == checkpoint.Rewound: // what was abandoned before it, and how often, was left out
		var next struct{ Machine struct{ Generation int } }
		if err := json.Unmarshal(e.Data, &next); err != nil {
			return &checkpoint.CorruptError{Run: b.run, Seq: e.Seq, Reason: err.Error()}
		}
		m.generation = next.Machine.Generation - 1
	}
	err := b.before(m, &own)
	if err != nil {
		err = &checkpoint.CorruptError{Run: b.run, Seq: e.Seq, Reason: err.Error()}
	}
	if err == nil {
		err = c.replay(ctx, m, b.run, e, nil, nil)
	}
	switch {
	case err != nil:
		return err
	case e.Kind == checkpoint.Opened && len(m.lineage) > 0:
		return c.blameOrigin(ctx, b, m, e)
	case was != nil:
		return b.changed(was, m, &own)
	}
	return nil
}

// blameOrigin goes on in the run that a fork comes from. If that is gone, or another one bears
// its name, nobody knows.
func (c *core) blameOrigin(ctx context.Context, b *blaming, m *machine, e *checkpoint.Entry) error {
	from := m.lineage[len(m.lineage)-1]
	was, at, err := c.blaming(ctx, from.Run, from.Seq)
	var limit *LimitError
	if errors.As(err, &limit) || err != nil && !unreadable(err) {
		return err
	}
	if err != nil || at.plan.Digest != m.plan.Digest || !bytes.Equal(at.root.view.AppendJSON(nil), m.root.view.AppendJSON(nil)) {
		return b.unknown(m, Writer{Kind: WroteBefore, Run: from.Run, Seq: from.Seq, Turn: m.turn, At: e.At})
	}
	b.frames, b.visits, b.turn = was.frames, was.visits, m.turn
	return nil
}
