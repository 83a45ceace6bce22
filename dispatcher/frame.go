package dispatcher

import (
	"slices"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// outcomeFailed marks the superstep entry of a frame that failed and whose failure is
// followed: what its visits finished is kept.
const outcomeFailed = "failed"

// A frame is a graph at work.
//
// While a superstep is open, open lists its visits and left counts those that have
// neither finished nor failed. Between supersteps open is empty, and next holds what
// begins once nobody holds the frame.
type frame struct {
	plan      *dag.Plan
	path      string // "" for the run's own, compose-loop/2 for an iteration, the path of an Embed or Each
	holder    *task  // nil for the run's own
	iteration int    // of a Loop, counted from 1; else 0
	items     *items // of an Each: tasks are its items, and plan the graph that it stands in

	view  state.Image // the state at the end of the last superstep
	spare state.Image // memory for the next one
	outer state.Image // Loop, Each: records what was done in all, as the node's own draft would
	bound int         // at least the size of view; 0 if it was never looked at
	calls bool        // merging calls user code
	tried bool        // spare holds the merged state of the open superstep
	// salvaged: the open superstep has failed, and what it keeps is part of view and outer. Those
	// that wrote it can't be told from it any more; only what holds the frame can take it back.
	salvaged bool

	step    int // the superstep that is open, or the last one; counted from 1
	base    int // supersteps of the turns before this one; 0 but for the run's own frame
	tasks   []task
	odds    bool          // some task has an odd, or had
	open    []int32       // in declaration order
	deltas  []state.Delta // what those of open wrote; empty as long as none has finished
	next    []int32       // ready behind this superstep, in declaration order
	left    int           // of open: neither finished nor failed
	failing int           // of open: failed, and nobody follows that

	after   []*pending   // interrupts after a visit, which hold the frame
	refused *dag.Failure // a person rejected one of them

	began time.Time // of the superstep, in this call; for events only
}

func newFrame(plan *dag.Plan, path string, holder *task) *frame {
	f := &frame{plan: plan, path: path, holder: holder, tasks: make([]task, len(plan.Nodes))}
	f.calls = plan.Schema.CallsUser()
	for i := range f.tasks {
		t := &f.tasks[i]
		t.frame, t.node = f, &plan.Nodes[i]
		t.follows = int32(t.node.Waits)
		t.waits = t.follows
	}
	return f
}

// begun reports whether a first superstep has begun.
func (f *frame) begun() bool { return f.step > f.base }

// ended is the last superstep that has ended.
func (f *frame) ended() int {
	if len(f.open) > 0 {
		return f.step - 1
	}
	return f.step
}

// given makes the input of a frame its state. Outer holds the Folds that it merged.
func (f *frame) given(x *fact) error {
	if err := f.view.Apply(x.delta); err != nil {
		return err
	}
	return f.view.Apply(x.outer)
}

// reopen makes what is next the open superstep.
func (f *frame) reopen() {
	f.open, f.next = f.next, f.open[:0]
	f.left = len(f.open)
	f.place()
}

// place tells the visits of the open superstep where their deltas are.
func (f *frame) place() {
	f.forgetDeltas()
	for k, i := range f.open {
		f.tasks[i].at = int32(k)
	}
}

// forgetDeltas makes room for those of the next superstep.
func (f *frame) forgetDeltas() {
	clear(f.deltas)
	f.deltas = f.deltas[:0]
}

// put keeps what t wrote, which is open.
func (f *frame) put(t *task, d state.Delta) { *f.slot(t) = d }

// slot is where stands what t wrote, which is open.
func (f *frame) slot(t *task) *state.Delta {
	if len(f.deltas) == 0 {
		f.deltas = slices.Grow(f.deltas, len(f.open))[:len(f.open)]
	}
	return &f.deltas[t.at]
}

// delta is what t wrote, which is open.
func (f *frame) delta(t *task) *state.Delta {
	if len(f.deltas) == 0 {
		return &noDelta
	}
	return &f.deltas[t.at]
}

// noDelta is what is in no slot. It is never written to.
var noDelta state.Delta

// start makes next the visits that follow nothing.
func (f *frame) start() {
	f.next = f.next[:0]
	for i := range f.tasks {
		if f.tasks[i].waits == 0 {
			f.next = append(f.next, int32(i))
		}
	}
}

// settle tells the followers of visit i that it has settled. A follower that waits for
// nothing any more joins the next superstep, or is skipped and settles at once.
func (f *frame) settle(i int) {
	followers := f.plan.Followers[i]
	if len(f.next) == 0 {
		f.next = slices.Grow(f.next, len(followers))
	}
	for _, j := range followers {
		t := &f.tasks[j]
		if t.waits--; t.waits > 0 {
			continue
		}
		if f.taken(&t.node.Follows) {
			f.next = append(f.next, int32(j))
			continue
		}
		t.phase = skipped
		f.settle(j)
	}
}

// taken evaluates what a node follows. Everything in it has settled.
func (f *frame) taken(e *dag.Expr) bool {
	switch e.Op {
	case dag.OpAll:
		for i := range e.Of {
			if !f.taken(&e.Of[i]) {
				return false
			}
		}
		return true
	case dag.OpAny:
		for i := range e.Of {
			if f.taken(&e.Of[i]) {
				return true
			}
		}
		return false
	case dag.OpNode:
		t := &f.tasks[e.Node]
		if e.Failed {
			return t.phase == failed
		}
		return t.phase == done && (e.On == nil || t.took(e.On))
	}
	return true
}

// writes appends what the visits of the open superstep wrote, in declaration order.
func (f *frame) writes(writes []state.Write) []state.Write {
	for _, i := range f.open {
		if t := &f.tasks[i]; t.keeps() {
			writes = append(writes, state.Write{Visit: t.path(), Delta: *t.wrote()})
		}
	}
	return writes
}

// try computes in spare what the state will be; folds are the merged Fold cells.
func (f *frame) try(folds state.Delta) error {
	if f.spare.IsZero() {
		f.spare = f.view.Draft()
	} else {
		f.spare.CopyFrom(f.view)
	}
	for _, i := range f.open {
		if t := &f.tasks[i]; t.keeps() {
			if err := f.spare.Apply(*t.wrote()); err != nil {
				return err
			}
		}
	}
	return f.spare.Apply(folds)
}

// oversize reports whether the merged state is larger than limit. Its size is looked at
// only when what was written since the last look could have made it so.
func (f *frame) oversize(limit int, folds state.Delta) bool {
	if f.bound > 0 {
		f.bound += folds.Size()
		for _, i := range f.open {
			if t := &f.tasks[i]; t.keeps() {
				f.bound += t.wrote().Size()
			}
		}
		if f.bound <= limit {
			return false
		}
	}
	f.bound = f.spare.Size()
	return f.bound > limit
}

// record adds the superstep to what the Loop did as a whole.
func (f *frame) record(folds state.Delta) error {
	for _, i := range f.open {
		if t := &f.tasks[i]; t.keeps() {
			if err := f.outer.Record(*t.wrote()); err != nil {
				return err
			}
		}
	}
	return f.outer.Record(folds)
}

// recordable returns the error that record would return.
func (f *frame) recordable(folds state.Delta) error {
	if f.outer.IsZero() {
		return nil
	}
	return f.outer.Recordable(len(f.open)+1, func(k int) *state.Delta {
		if k == len(f.open) {
			return &folds
		}
		if t := &f.tasks[f.open[k]]; t.keeps() {
			return t.wrote()
		}
		return nil
	})
}

// failure is why f fails: the first in declaration order, and before it one that keeps the
// failure edge of f from being taken.
func (f *frame) failure() *dag.Failure {
	for _, unfollowed := range [...]bool{true, false} {
		for _, i := range f.open {
			if t := &f.tasks[i]; t.phase == failing && t.odd.unfollowed == unfollowed {
				return t.odd.failure
			}
		}
	}
	return f.refused
}
