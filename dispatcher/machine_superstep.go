package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// enter begins a frame: the run's own, an Embed's, an Each's, or an iteration of a Loop,
// which takes over the state of the iteration before it.
func (m *machine) enter(x *fact) error {
	if x.t == nil {
		m.root.start()
		m.begin(m.root)
		return nil
	}
	return m.enterTask(x)
}

// enterTask begins what stands in a visit.
func (m *machine) enterTask(x *fact) error {
	t := x.t
	if t.node.Kind == dag.KindEach {
		return m.enterItems(x)
	}
	f := newFrame(t.node.Body, x.Path, t)
	switch {
	case t.node.Kind == dag.KindEmbed:
		f.view = t.node.Body.Schema.New()
		if err := f.given(x); err != nil {
			return err
		}
	case t.inner == nil || strings.HasSuffix(x.Path, "/1"): // earlier versions have begun anew what is salvaged twice
		m.drop(t)
		f.iteration = 1
		f.view, f.outer = t.frame.view.Draft(), t.frame.view.Draft()
	default:
		f.iteration = t.inner.iteration + 1
		f.view, f.spare, f.outer, f.bound = t.inner.view, t.inner.spare, t.inner.outer, t.inner.bound
	}
	t.inner, t.phase = f, inside
	f.start()
	m.begin(f)
	return nil
}

// begin starts the next superstep of f: the visits that became ready together.
func (m *machine) begin(f *frame) {
	f.step++
	f.reopen()
	if !m.replaying {
		m.ready = slices.Grow(m.ready, len(f.open))
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		t.phase = ready
		if t.node.Kind == dag.KindFail {
			m.fell(t, &dag.Failure{Path: t.path(), Attempts: 0, Kind: dag.FailedEnd, Message: "reached the end " + t.node.Name})
			continue
		}
		m.offer(t)
	}
}

// check sees whether f's superstep has nothing left to wait for. That an Each fails is
// decided, and so an entry, even if nobody follows it: which items had begun when one
// failed is known to the process alone in which it did.
func (m *machine) check(f *frame) {
	switch {
	case f.left > 0 && (m.replaying || !f.stopped() || !f.over()):
	case f.failing == 0:
		m.push(decision{kind: merge, f: f})
	case f.holder == nil:
	case f.holder.caught(), f.items != nil:
		m.push(decision{kind: bury, f: f})
	case f.holder.phase == inside:
		f.holder.rare().unfollowed = f.doubtful()
		m.fell(f.holder, f.failure())
	}
}

// superstep ends the superstep of a frame: deltas become its state in declaration order,
// visits settle, and what is ready now begins unless somebody holds the frame after a
// visit. Of a failed frame (Outcome failed) it only keeps what was finished.
func (m *machine) superstep(x *fact) error {
	f := x.f
	if !f.tried {
		if err := f.try(x.delta); err != nil {
			return err
		}
	}
	f.tried = false
	f.view, f.spare = f.spare, f.view
	if !f.outer.IsZero() {
		if err := f.record(x.outer); err != nil {
			return err
		}
		f.salvaged = x.Outcome == outcomeFailed
	}
	if x.Outcome == outcomeFailed {
		m.kept(f)
		return nil
	}
	if f.step != x.Step || f.left != 0 || f.failing != 0 {
		return fmt.Errorf("superstep %d of frame %q can't end", x.Step, f.path)
	}
	m.steps++
	if f.holder == nil {
		m.effects = nil
	}
	if f.items != nil {
		m.shed += f.unmerged()
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		t.phase = t.phase.settle()
		if f.holder == nil && t.odd != nil {
			t.odd.grants = nil // inside it, effects may still be heard of
		}
		if f.items == nil {
			f.settle(int(i))
		}
		if f.holder == nil && m.shelf != nil {
			m.shelf.settled(m.turn, t.node.Name)
		}
	}
	f.open = f.open[:0]
	f.forgetDeltas()
	slices.Sort(f.next)
	m.proceed(f)
	return nil
}

// kept marks what visits of a failed frame wrote as merged, so that it is not merged again if the
// frame around it can't be merged for now. Loops and Eaches that failed in it have recorded nothing
// from here on, and may go on. What stands behind an item that failed is not merged.
func (m *machine) kept(f *frame) {
	m.shed += f.unmerged()
	for _, i := range f.open {
		t := &f.tasks[i]
		if !t.keeps() {
			continue
		}
		f.put(t, state.Delta{})
		if t.wrecked() {
			t.inner.outer = f.view.Draft()
		}
	}
}

// lose drops the frame of a visit that has failed, and what those in it depend on that give nothing
// out.
func (m *machine) lose(t *task) {
	if records(t.node) {
		m.disown(t.inner)
	} else {
		m.independ(t.path())
	}
	m.drop(t)
}

// drop forgets the frame that a visit holds, and what waits in it.
func (m *machine) drop(t *task) {
	if t.inner == nil {
		return
	}
	for _, p := range t.inner.pendings(nil) {
		delete(m.waits, p.id)
	}
	m.shed += t.inner.unmerged()
	t.inner = nil
}

// proceed goes on behind a superstep that ended, unless the frame is held there.
func (m *machine) proceed(f *frame) {
	switch {
	case len(f.after) > 0 || f.refused != nil:
	case len(f.next) > 0:
		m.begin(f)
	default:
		m.push(decision{kind: end, f: f})
	}
}
