package dispatcher

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// A chronicle makes what a log says into its past: one entry after the other. It keeps what is
// open, and nothing of what is over, so it is as large as the open supersteps are.
//
// It can begin at any machine of the run, and does so wherever the log itself goes on from one:
// at the origin of a fork, where it was rewound or migrated, where it was trimmed. What it then
// tells is what it would have told from the beginning.
type chronicle struct {
	run  string
	seq  uint64 // of the entry that it has heard last
	turn int
	// voids is how many visits were voided before: the machine keeps which.
	voids int
	// renames is how many migrations before gave nodes other names: the machine keeps those too.
	renames int
	root    *chapter
	held    map[string]string // visits that wait to begin: their paths, by the ids of the interrupts
}

// A chapter is what a chronicle knows of a frame, or of a visit that holds frames.
type chapter struct {
	step  int                 // the last superstep that has ended
	ended map[string]struct{} // visits of the open one that have, by the last part of their paths
	items bool                // its visits are items, which are at work side by side
	inner map[string]*chapter // by the next part of their paths
}

func newChronicle(run string) *chronicle {
	return &chronicle{run: run, turn: 1, root: &chapter{}}
}

// of returns the chapter of a path, and makes it if there is none.
func (t *chronicle) of(path string) *chapter {
	h := t.root
	for name := range parts(path) {
		next := h.inner[name]
		if next == nil {
			if h.inner == nil {
				h.inner = map[string]*chapter{}
			}
			next = &chapter{}
			h.inner[strings.Clone(name)] = next
		}
		h = next
	}
	return h
}

// parts yields the parts of a path; "" has none.
func parts(path string) func(func(string) bool) {
	if path == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(path, "/")
}

// close forgets what is open in the frame.
func (h *chapter) close() { h.ended, h.inner = nil, nil }

// hear takes the next entry, and returns the checkpoint that it makes, if it makes one. It
// keeps nothing of the memory of e.
func (t *chronicle) hear(ctx context.Context, c *core, e *checkpoint.Entry) (Past, bool, error) {
	t.seq = e.Seq
	p := Past{Checkpoint: Checkpoint{Run: t.run, Seq: e.Seq, At: e.At, Path: strings.Clone(e.Path)}}
	var err error
	switch e.Kind {
	case checkpoint.Opened:
		err = t.opened(ctx, c, e, &p)
	case checkpoint.TurnBegun:
		t.turn++
		t.root.close()
		p.Cause, p.Superstep = CauseTurn, t.root.step
	case checkpoint.Edited:
		var d checkpoint.Edit
		err = json.Unmarshal(e.Data, &d)
		t.void(d.Voids)
		p.Cause, p.Author, p.Reason, p.Superstep = CauseEdited, d.Author, d.Reason, t.of(e.Path).step
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		if err = json.Unmarshal(e.Data, &w); err == nil {
			err = t.goOn(ctx, c, w.Machine)
		}
		p.Cause, p.Author, p.Reason, p.Superstep = CauseRewound, w.Author, w.Reason, t.root.step
	case checkpoint.Migrated:
		var g checkpoint.Migration
		if err = json.Unmarshal(e.Data, &g); err == nil {
			err = t.goOn(ctx, c, g.Machine)
		}
	case checkpoint.Superstep:
		h := t.of(e.Path)
		if e.Outcome != outcomeFailed {
			h.step = e.Step
			p.Cause, p.Superstep, p.Visits = CauseSuperstep, e.Step, h.visits(e.Path)
		}
		h.close()
	default:
		err = t.visit(e)
	}
	if err != nil {
		return p, false, damaged(t.run, e.Seq, err)
	}
	p.Turn = t.turn
	return p, p.Cause != "", nil
}

// damaged is an error of reading an entry, unless it says itself what it is.
func damaged(run string, seq uint64, err error) error {
	switch err.(type) {
	case *json.SyntaxError, *json.UnmarshalTypeError:
		return &checkpoint.CorruptError{Run: run, Seq: seq, Reason: err.Error()}
	}
	return err
}

// visit takes an entry of a visit. It makes no checkpoint.
func (t *chronicle) visit(e *checkpoint.Entry) error {
	switch e.Kind {
	case checkpoint.Interrupted:
		var i checkpoint.Interrupt
		if err := json.Unmarshal(e.Data, &i); err != nil {
			return err
		}
		if i.Kind == kindBefore {
			t.hold(e.ID, strings.Clone(e.Path))
		}
	case checkpoint.Answered:
		return t.answered(e)
	case checkpoint.Entered:
		t.entered(e)
	case checkpoint.Done:
		t.end(e.Path, true)
	case checkpoint.AttemptFailed:
		var a checkpoint.FailedAttempt
		if err := json.Unmarshal(e.Data, &a); err != nil {
			return err
		}
		if a.Final { // what it holds may go on when the run is resumed
			t.end(e.Path, false)
		}
	case checkpoint.Voided:
		var paths []string
		if err := json.Unmarshal(e.Data, &paths); err != nil {
			return err
		}
		t.void(paths)
	}
	return nil
}

// opened begins with the run. A fork goes on from where its origin stood.
func (t *chronicle) opened(ctx context.Context, c *core, e *checkpoint.Entry, p *Past) error {
	p.Cause = CauseOpened
	o, err := parse(e.Data, plainOpening)
	if err != nil || o.Origin == nil {
		return err
	}
	p.Superstep, p.Author, p.Reason = o.Origin.Step, o.Origin.Author, o.Origin.Reason
	z, err := c.base(ctx, t.run, o.Origin.Base)
	if err != nil {
		return err
	}
	return t.thaw(ctx, c, z)
}

// entered begins a frame. An iteration takes the place of the one before it.
func (t *chronicle) entered(e *checkpoint.Entry) {
	if e.Path == "" { // of the next turn: its supersteps are counted on
		t.root.close()
		return
	}
	number := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
	if h := t.of(frameOf(e.Path)); isIteration(number) && !h.items {
		h.inner = nil
	}
	*t.of(e.Path) = chapter{items: len(e.Data) > 0}
}

// hold notes that a visit waits before it begins.
func (t *chronicle) hold(id, path string) {
	if t.held == nil {
		t.held = map[string]string{}
	}
	t.held[strings.Clone(id)] = path
}

// release forgets that a visit, and what is inside it, waits before it begins.
func (t *chronicle) release(path string) {
	maps.DeleteFunc(t.held, func(_, held string) bool { return isOrIn(held, path) })
}

// answered ends a visit that was not to begin.
func (t *chronicle) answered(e *checkpoint.Entry) error {
	path, ok := t.held[e.ID]
	if !ok {
		return nil
	}
	var a checkpoint.Answer
	if err := json.Unmarshal(e.Data, &a); err != nil {
		return err
	}
	var v Verdict
	if err := json.Unmarshal(a.Value, &v); err != nil {
		return err
	}
	delete(t.held, e.ID)
	if v == Reject {
		t.release(path)
		t.end(path, true)
	}
	return nil
}

// end notes that a visit has ended; over says that nothing of what it holds goes on.
func (t *chronicle) end(path string, over bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	h := t.of(frameOf(path))
	if h.ended == nil {
		h.ended = map[string]struct{}{}
	}
	h.ended[strings.Clone(name)] = struct{}{}
	if over {
		delete(h.inner, name)
	}
}

// void forgets what visits did.
func (t *chronicle) void(paths []string) {
	t.voids += len(paths)
	for _, path := range paths {
		name := path[strings.LastIndexByte(path, '/')+1:]
		h := t.of(frameOf(path))
		delete(h.ended, name)
		delete(h.inner, name)
		t.release(path)
	}
}

// goOn lets the chronicle go on from a machine that is part of the log.
func (t *chronicle) goOn(ctx context.Context, c *core, machine json.RawMessage) error {
	z, err := parseMachine(machine)
	if err != nil {
		return &checkpoint.CorruptError{Run: t.run, Seq: t.seq, Reason: err.Error()}
	}
	return t.thaw(ctx, c, z)
}

func (t *chronicle) thaw(ctx context.Context, c *core, z *frozenMachine) error {
	m := newMachine(c.plan)
	m.replaying = true
	if err := c.thaw(ctx, m, t.run, t.seq, z); err != nil {
		return err
	}
	t.stand(m)
	return nil
}

// stand begins the chronicle anew where a machine stands.
func (t *chronicle) stand(m *machine) {
	t.turn, t.voids, t.renames, t.root, t.held = m.turn, len(m.voids), len(m.renames), &chapter{}, nil
	t.tell(m.root)
	for _, p := range m.pendings() {
		if p.kind == kindBefore {
			t.hold(p.id, p.t.path())
		}
	}
}

// tell takes over a frame, and those inside it.
func (t *chronicle) tell(f *frame) {
	h := t.of(f.path)
	h.step, h.items = f.ended(), f.items != nil
	for _, i := range f.open {
		v := &f.tasks[i]
		switch {
		case v.phase == finished, v.phase == lapsed:
			t.end(v.path(), false)
		case v.inner != nil:
			t.tell(v.inner)
		}
	}
}

// visits are the paths of those that have ended, in the order of their paths.
func (h *chapter) visits(frame string) []string {
	var all []string
	for _, name := range slices.SortedFunc(maps.Keys(h.ended), comparePart) {
		if frame != "" {
			name = frame + "/" + name
		}
		all = append(all, name)
	}
	return all
}

// comparePart orders parts of paths: numbers by what they are worth, before names.
func comparePart(a, b string) int {
	if isIteration(a) && isIteration(b) && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// clone is a chronicle of its own.
func (t *chronicle) clone() *chronicle {
	next := *t
	next.root, next.held = t.root.clone(), maps.Clone(t.held)
	return &next
}

func (h *chapter) clone() *chapter {
	next := &chapter{step: h.step, items: h.items, ended: maps.Clone(h.ended)}
	for name, inner := range h.inner {
		if next.inner == nil {
			next.inner = make(map[string]*chapter, len(h.inner))
		}
		next.inner[name] = inner.clone()
	}
	return next
}

// size is how much the chapter knows.
func (h *chapter) size() int {
	n := 1 + len(h.ended)
	for _, inner := range h.inner {
		n += inner.size()
	}
	return n
}

// frameOf is the path of the frame that a visit is in.
func frameOf(visit string) string {
	i := strings.LastIndexByte(visit, '/')
	return visit[:max(i, 0)]
}
