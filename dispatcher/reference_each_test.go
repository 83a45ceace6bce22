package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// each runs the items of a node, over drafts of the state of the frame that it is in.
func (r *reference) each(f *refFrame, t *refTask) int {
	if t.inner == nil {
		r.asked++
		t.inner = newRefFrame(&graphSpec{}, t.path, f.state)
		t.inner.each, t.inner.step, t.inner.caught, t.inner.before = t.nodeSpec, 1, t.caught, f.told(t.After)
		for i, item := range t.items(f.state.look()) {
			t.inner.open = append(t.inner.open, &refTask{
				nodeSpec: t.nodeSpec, path: fmt.Sprintf("%s/%d", t.path, i+1), item: item, index: i, caught: t.Collect,
			})
		}
		t.outcome = dag.Done
		if t.inner.open == nil {
			t.outcome = string(dag.Empty)
			return 0
		}
	}
	v := r.advance(t.inner)
	t.failure = t.inner.failure
	if v&refStuck != 0 || v != 0 && !t.caught {
		return v
	}
	t.collected, t.delta = t.inner.collected, t.inner.delta
	if v == 0 {
		return 0
	}
	for _, item := range t.inner.open[t.inner.counted()+1:] {
		if t.Parallel != 1 {
			r.timing = append(r.timing, item.path)
		}
	}
	kept, ok := r.merge(t.inner) // of the items before the first one that failed
	if t.delta = kept; !ok {
		return refStuck
	}
	return v
}

// spared reports whether an item has not begun, and one before it has failed.
func (f *refFrame) spared(t *refTask) bool {
	begun := f.each == nil || t.phase != "" || t.attempts > 0 || t.inner != nil
	return !begun && slices.ContainsFunc(f.open[:t.index], func(t *refTask) bool { return t.verdict == refFailed })
}

// counted is how many visits of the open superstep, from the first one on, are merged: of
// items those before the first one that failed.
func (f *refFrame) counted() int {
	if f.each == nil {
		return len(f.open)
	}
	n := slices.IndexFunc(f.open, func(t *refTask) bool { return t.verdict&refFailed != 0 })
	if n < 0 {
		n = len(f.open)
	}
	return n
}

// settle notes what a visit of the superstep that has ended settled as.
func (f *refFrame) settle(t *refTask) {
	switch {
	case f.each == nil:
		f.nodes[t.index] = *t
	case t.phase == "failed":
		f.collected = append(f.collected, t.failure)
	}
}

// took reports whether one of outcomes is that of the visit, or among them.
func (t *refTask) took(outcomes []string) bool {
	if t.Kind != dag.KindChoose {
		return slices.Contains(outcomes, t.outcome)
	}
	return slices.ContainsFunc(strings.Fields(t.outcome), func(o string) bool { return slices.Contains(outcomes, o) })
}

// gets is what the input and output of the graph in t depend on, beside the state.
func (t *refTask) gets() string {
	if t.item != "" {
		return t.item
	}
	return t.Name
}

// tells is what a visit is told beside the state: the failures that it, or the node whose
// item it is, follows, and the item.
func (f *refFrame) tells(t *refTask) []string {
	if t.item != "" {
		return append(slices.Clone(f.before), t.item)
	}
	return f.told(t.After)
}
