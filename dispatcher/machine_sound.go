package dispatcher

import (
	"fmt"

	"github.com/pawlgo/pawl/dag"
)

// A machine that was frozen elsewhere may be anything. What follows is all that the machine
// relies on beyond the types: it is looked at once, when a frame is thawed.

// mostItems is how many items an Each may have, whatever the limits are.
const mostItems = 1 << 24

// fits reports why a frame can't be the one that holder holds, nil for the run's own.
func (z *frozenFrame) fits(holder *task) error {
	kind := dag.Kind(0)
	if holder != nil {
		kind = holder.node.Kind
	}
	switch {
	case (z.Items != nil) != (kind == dag.KindEach && !holder.isItem()):
		return fmt.Errorf("frame %q holds items, or should", z.Path)
	case (z.Iteration > 0) != (kind == dag.KindLoop):
		return fmt.Errorf("frame %q is iteration %d", z.Path, z.Iteration)
	case z.Items != nil && (z.Items.Count < 0 || z.Items.Count > mostItems):
		return fmt.Errorf("frame %q has %d items", z.Path, z.Items.Count)
	case z.Step < 0 || holder != nil && z.Step == 0:
		return fmt.Errorf("frame %q is in superstep %d", z.Path, z.Step)
	}
	return nil
}

// sound reports what can't be about the visits of a frame.
func (f *frame) sound() error {
	open := make([]bool, len(f.tasks))
	for _, i := range f.open {
		open[i] = true
	}
	for i := range f.tasks {
		if t := &f.tasks[i]; !t.sound(open[i]) {
			return fmt.Errorf("visit %q is %s, and lacks something, or has too much", t.path(), t.phase)
		}
	}
	for _, p := range f.after {
		// Between the interrupt and the end of its superstep, where a trim may cut, it is finished.
		if p.t.phase != done && p.t.phase != finished {
			return fmt.Errorf("frame %q is held behind visit %q, which is %s", f.path, p.t.path(), p.t.phase)
		}
	}
	return nil
}

// sound reports whether a visit has what its phase says. Visits that are idle or have settled
// are none of an open superstep, all others are.
func (t *task) sound(open bool) bool {
	o := t.odd
	if o == nil {
		o = &odd{}
	}
	if open != (t.phase != idle && !t.phase.settled()) {
		return false
	}
	switch t.phase {
	case inside:
		return t.inner != nil
	case failing:
		return o.failure != nil
	case held, asking:
		return t.inner == nil && len(o.asks) > 0
	case lapsed, failed:
		return t.inner == nil && o.failure != nil
	}
	return t.inner == nil && len(o.asks) == 0
}
