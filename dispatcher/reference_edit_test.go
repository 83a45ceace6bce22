package dispatcher_test

import (
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// frames adds the frames at work that have a state that can be edited: f, the graphs in its Embeds
// and items, and the iterations of its Loops.
func (f *refFrame) frames(all []*refFrame) []*refFrame {
	if f.each == nil {
		all = append(all, f)
	}
	for _, t := range f.open {
		if t.inner != nil {
			all = t.inner.frames(all)
		}
	}
	return all
}

// edit changes the state that the open superstep of a frame began with. What was done since stays
// done, on that state. It says instead what is in the way of it, and changes nothing: a visit that
// would hide the edit, or items of an Each at work that would be others, but for those that are
// over.
func (f *refFrame) edit(writes []cellOp, over map[*refTask]bool) string {
	switch next := f.state.with(writes); {
	case f.hides(writes):
		return "hidden"
	case f.rebase(next, false, over):
		return "items"
	default:
		f.state, f.delta = next, append(f.delta, writes...)
		f.rebase(next, true, over)
		return ""
	}
}

// over adds what has failed inside a visit at work whose failure is followed: nothing in it runs
// again.
func (f *refFrame) over(kept bool, all map[*refTask]bool) map[*refTask]bool {
	for _, t := range f.open {
		if t.inner == nil {
			continue
		}
		if t.verdict == refFailed && kept {
			all[t] = true
		}
		t.inner.over(kept || t.verdict&refStuck != 0 && t.caught, all)
	}
	return all
}

// hides reports whether something that was done in the open superstep, and is not merged yet, wrote
// alone to a cell that an edit writes to.
func (f *refFrame) hides(edit []cellOp) bool {
	alone := func(delta []cellOp) bool {
		return slices.ContainsFunc(edit, func(w cellOp) bool {
			_, alone := touched(w.Cell, delta)
			return alone
		})
	}
	for _, t := range f.open[:f.counted()] {
		ended := t.phase == "done" || t.phase == "failed" && t.caught
		if (ended || t.shares()) && alone(t.delta) {
			return true
		}
	}
	return slices.ContainsFunc(f.open, func(t *refTask) bool {
		return t.shares() && (alone(t.inner.delta) || t.inner.hides(edit))
	})
}

// shares reports whether a visit holds a frame that goes on with the state of its own.
func (t *refTask) shares() bool { return t.inner != nil && t.item == "" && t.Kind != dag.KindEmbed }

// rebase gives the frames inside, which share the state, what they have done on it. It reports
// whether the items of an Each would be others, and changes only what it is to.
func (f *refFrame) rebase(state refState, change bool, over map[*refTask]bool) (others bool) {
	for _, t := range f.open {
		if !t.shares() {
			continue
		}
		inside := state.with(slices.Concat(t.delta, t.inner.delta))
		if change {
			t.inner.state = inside
		}
		if t.Kind == dag.KindEach && t.inner.open != nil && !over[t] { // else they have ended
			var were []string
			for _, item := range t.inner.open {
				were = append(were, item.item)
			}
			others = others || !slices.Equal(were, t.items(state.look()))
		}
		others = t.inner.rebase(inside, change, over) && !over[t] || others
	}
	return others
}

// editOf are some writes of an edit: of most cells one that merges, and of V one that does not.
func editOf(number int, chosen func(int) int) (writes []cellOp) {
	mark := fmt.Sprintf("edit %d ", number)
	for _, w := range []cellOp{
		{Cell: "V", Do: "set", Val: mark}, {Cell: "L", Do: "append", Val: mark}, {Cell: "N", Do: "add", Num: 1 + number},
		{Cell: "M", Do: "put", Key: mark, Val: mark}, {Cell: "E", Do: "add", Key: mark}, {Cell: "F", Do: "merge", Val: mark},
	} {
		if chosen(3) == 0 {
			writes = append(writes, w)
		}
	}
	return writes
}
