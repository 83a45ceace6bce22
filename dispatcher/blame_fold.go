package dispatcher

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A blaming follows who wrote what while a log is replayed: the same fold as that of the state,
// of writers and not of values. For each open frame it knows who wrote the cells of its state,
// and of a Loop's or Each's what was written in it as a whole; for each visit that has finished
// and is not merged yet, what it wrote. What a Loop or Each wrote is what the visits inside it
// did, so blame goes through it.
type blaming struct {
	run    string
	turn   int
	frames map[string]*blamedFrame // by the visit that holds the frame; "" is the run's own
	visits map[string]touches
}

type blamedFrame struct {
	state touches
	outer touches // nil unless a Loop or Each holds the frame
}

// touches are who wrote to cells, by their names.
type touches map[string]touch

type touch struct {
	whole bool // the first of them wrote all of the cell, and what was there before is gone
	by    []Writer
}

// copied returns touches of their own.
func (t touches) copied() touches {
	next := make(touches, len(t))
	for cell, w := range t {
		w.by = slices.Clip(w.by) // whoever appends makes a list of its own
		t[cell], next[cell] = w, w
	}
	return next
}

// add adds later writes. Whoever wrote what was trimmed is one writer, of a frame's state and of
// what is merged into it.
func (t touches) add(later touches) {
	for cell, w := range later {
		if was := t[cell]; !w.whole {
			more := w.by
			if len(was.by) > 0 && len(more) > 0 && more[0].Kind == WroteBefore && more[0] == was.by[0] {
				more = more[1:]
			}
			w.whole, w.by = was.whole, append(was.by, more...)
		} else {
			w.by = slices.Clip(w.by)
		}
		t[cell] = w
	}
}

// touched tells which cells a delta wrote to. Delta is as the log has it.
func touched(delta json.RawMessage, by Writer) (touches, error) {
	t := touches{}
	if len(delta) == 0 {
		return t, nil
	}
	var cells map[string]map[string]json.RawMessage
	if err := json.Unmarshal(delta, &cells); err != nil {
		return nil, err
	}
	for cell, ops := range cells {
		w := touch{by: []Writer{by}}
		for _, op := range []string{"set", "clear", "replace"} {
			if _, ok := ops[op]; ok {
				w.whole = true
			}
		}
		t[cell] = w
	}
	return t, nil
}

func newBlaming(run string) *blaming {
	return &blaming{
		run: run, turn: 1,
		frames: map[string]*blamedFrame{"": {state: touches{}}}, visits: map[string]touches{},
	}
}

func (b *blaming) writer(kind WriterKind, e *checkpoint.Entry) Writer {
	return Writer{Kind: kind, Run: b.run, Seq: e.Seq, Turn: b.turn, Path: e.Path, At: e.At}
}

// before follows an entry that m, which stands before it, is about to apply.
func (b *blaming) before(m *machine, e *checkpoint.Entry) error {
	switch e.Kind {
	case checkpoint.Opened:
		return b.write("", e.Delta, b.writer(WroteInput, e))
	case checkpoint.TurnBegun:
		b.turn = m.turn + 1
		return b.write("", e.Delta, b.writer(WroteTurn, e))
	case checkpoint.Edited:
		return b.edited(m, e)
	case checkpoint.Entered:
		return b.entered(m, e)
	case checkpoint.Done:
		return b.done(m, e)
	case checkpoint.AttemptFailed:
		b.failed(m, e)
	case checkpoint.Superstep:
		b.merged(m, e)
	case checkpoint.Voided:
		var paths []string
		err := json.Unmarshal(e.Data, &paths)
		b.drop(paths)
		return err
	case checkpoint.Migrated:
		var d checkpoint.Migration
		err := json.Unmarshal(e.Data, &d)
		b.rename(&d)
		return err
	case checkpoint.Rewound:
		var d checkpoint.Rewinding
		err := json.Unmarshal(e.Data, &d)
		b.turn = d.Turn
		return err
	}
	return nil
}

// write adds a delta to the state of a frame.
func (b *blaming) write(holder string, delta json.RawMessage, by Writer) error {
	t, err := touched(delta, by)
	if f := b.frames[holder]; f != nil && err == nil {
		f.state.add(t)
		if f.outer != nil {
			f.outer.add(t)
		}
	}
	return err
}

// edited adds an edit to the state of a frame, and to the states of Loops and Eaches inside it,
// which share it.
func (b *blaming) edited(m *machine, e *checkpoint.Entry) error {
	var d checkpoint.Edit
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	b.drop(d.Voids)
	f := m.frameAt(e.Path)
	if f == nil {
		return nil
	}
	by := b.writer(WroteEdit, e)
	by.By = d.Author
	if err := b.write(f.held(), e.Delta, by); err != nil {
		return err
	}
	b.share(f)
	return nil
}

// share gives the Loops and Eaches that f holds its state, with what they did on it.
func (b *blaming) share(f *frame) {
	for _, i := range f.open {
		t := &f.tasks[i]
		g := b.frames[t.path()]
		if t.inner == nil || !records(t.node) || g == nil {
			continue
		}
		g.state = b.stateOf(f.held())
		g.state.add(g.outer)
		b.share(t.inner)
	}
}

// held is the path of the visit that holds the frame, "" if the frame is the run's own.
func (f *frame) held() string {
	if f.holder == nil {
		return ""
	}
	return f.holder.path()
}

// stateOf is who wrote the state of the frame that a visit holds, for another one that goes on from
// it. Behind a migration whose entry doesn't say which nodes it renamed, as those of older programs
// don't, nobody is known.
func (b *blaming) stateOf(held string) touches {
	if f := b.frames[held]; f != nil {
		return f.state.copied()
	}
	return touches{}
}

// entered begins a frame.
func (b *blaming) entered(m *machine, e *checkpoint.Entry) error {
	t, err := m.holder(e.Path)
	if err != nil || t == nil {
		return err
	}
	path := t.path()
	switch {
	case !records(t.node):
		b.frames[path] = &blamedFrame{state: touches{}}
		return b.write(path, e.Delta, b.writer(WroteInput, e))
	case t.inner == nil || b.frames[path] == nil: // else another iteration goes on with it
		b.frames[path] = &blamedFrame{state: b.stateOf(t.frame.held()), outer: touches{}}
	}
	return nil
}

// done keeps what a visit wrote until it is merged.
func (b *blaming) done(m *machine, e *checkpoint.Entry) (err error) {
	t := m.find(e.Path)
	if t == nil {
		return nil // apply says so
	}
	if records(t.node) {
		b.settle(e.Path)
		return nil
	}
	by := b.writer(WroteVisit, e)
	by.Attempt = max(e.Attempt, 1)
	if holds(t.node) {
		by.Attempt = 0
	}
	b.visits[e.Path], err = touched(e.Delta, by)
	delete(b.frames, e.Path)
	return err
}

// settle makes what was written inside a Loop or Each what it wrote.
func (b *blaming) settle(path string) {
	if f := b.frames[path]; f != nil {
		b.visits[path] = f.outer
		delete(b.frames, path)
	}
}

// failed keeps what a Loop or Each wrote that has failed, and whose failure is followed.
func (b *blaming) failed(m *machine, e *checkpoint.Entry) {
	var a checkpoint.FailedAttempt
	t := m.find(e.Path)
	if t == nil || json.Unmarshal(e.Data, &a) != nil || !a.Final || a.Unfollowed || !t.node.FailureFollowed {
		return
	}
	if records(t.node) {
		b.settle(e.Path)
		return
	}
	delete(b.frames, e.Path)
}

// merged makes what the visits of a superstep wrote part of the state of their frame.
func (b *blaming) merged(m *machine, e *checkpoint.Entry) {
	f := m.frameAt(e.Path)
	if f == nil || b.frames[f.held()] == nil {
		return
	}
	to := b.frames[f.held()]
	for _, i := range f.open {
		t := &f.tasks[i]
		path := t.path()
		if !t.keeps() {
			continue
		}
		if records(t.node) { // it has failed: a changed graph may follow that, without an entry
			b.settle(path)
		}
		to.state.add(b.visits[path])
		if to.outer != nil {
			to.outer.add(b.visits[path])
		}
		delete(b.visits, path)
	}
}

// drop forgets what visits wrote that are voided, and what is inside them.
func (b *blaming) drop(paths []string) {
	for _, path := range paths {
		inside := func(other string) bool { return isOrIn(other, path) }
		maps.DeleteFunc(b.visits, func(visit string, _ touches) bool { return inside(visit) })
		maps.DeleteFunc(b.frames, func(visit string, _ *blamedFrame) bool { return visit != "" && inside(visit) })
	}
}

// rename has visits and frames go by their names behind a migration, without those that it forgets.
func (b *blaming) rename(d *checkpoint.Migration) {
	frames, visits := map[string]*blamedFrame{}, map[string]touches{}
	for path, f := range b.frames {
		if is, there := d.Renamed(path); there {
			frames[is] = f
		}
	}
	for path, t := range b.visits {
		if is, there := d.Renamed(path); there {
			visits[is] = t
		}
	}
	b.frames, b.visits = frames, visits
}

// views adds the states of f and of the frames inside it, by the visits that hold them.
func (f *frame) views(to map[string]state.Image) {
	to[f.held()] = f.view.Draft()
	for _, i := range f.open {
		if inner := f.tasks[i].inner; inner != nil {
			inner.views(to)
		}
	}
}

// changed blames a migration for the cells that it made others, of the states of frames that m was
// at work on before it.
func (b *blaming) changed(was map[string]state.Image, m *machine, e *checkpoint.Entry) error {
	var d checkpoint.Migration
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	is := map[string]state.Image{}
	m.root.views(is)
	for held, before := range was {
		held, there := d.Renamed(held)
		after, open := is[held]
		f := b.frames[held]
		if !there || !open || f == nil { // of a migration that doesn't say what it renamed, nobody knows which frame it is
			continue
		}
		diff, err := state.Diff(before, after)
		if err != nil {
			return err
		}
		for _, c := range diff.Cells {
			if c.After == nil {
				delete(f.state, c.Cell)
				continue
			}
			f.state.add(touches{c.Cell: {whole: true, by: []Writer{b.writer(WroteMigration, e)}}})
		}
	}
	return nil
}

// unknown blames one writer for all that a machine holds: of what was before, nothing is known.
func (b *blaming) unknown(m *machine, by Writer) error {
	b.turn = m.turn
	return b.unknownFrame(m.root, by)
}

func (b *blaming) unknownFrame(f *frame, by Writer) error {
	held, err := holding(f.view.AppendJSON(nil), by)
	if err != nil {
		return err
	}
	g := &blamedFrame{state: held}
	if f.holder != nil && records(f.holder.node) {
		g.outer = touches{}
		d, err := f.outer.Delta()
		if err != nil {
			return err
		}
		if g.outer, err = touched(d.AppendJSON(nil), by); err != nil {
			return err
		}
	}
	b.frames[f.held()] = g
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.keeps() {
			if b.visits[t.path()], err = touched(t.wrote().AppendJSON(nil), by); err != nil {
				return err
			}
		}
		if t.inner != nil {
			if err := b.unknownFrame(t.inner, by); err != nil {
				return err
			}
		}
	}
	return nil
}

// holding blames one writer for every cell of a state that is not empty.
func holding(view json.RawMessage, by Writer) (touches, error) {
	var cells map[string]json.RawMessage
	err := json.Unmarshal(view, &cells)
	t := make(touches, len(cells))
	for cell := range cells {
		t[cell] = touch{whole: true, by: []Writer{by}}
	}
	return t, err
}
