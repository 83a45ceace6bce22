package dispatcher

import (
	"slices"
	"strconv"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// outcomeFailed marks the superstep entry of a frame that failed and whose failure is
// followed: what its visits finished is kept.
const outcomeFailed = "failed"

// A phase is where a visit is in its life.
type phase uint8

const (
	idle     phase = iota // what it follows has not settled
	ready                 // may run
	delayed               // may run, but not before an instant
	held                  // interrupted before it began
	asking                // interrupted inside: waits for answers
	inside                // holds a frame that is at work
	failing               // failed for good and nobody follows that: its frame fails
	finished              // done; its delta is not merged yet
	lapsed                // failed for good; its failure edge will be taken

	// From here on a visit has settled.
	done
	skipped
	failed
)

var phaseNames = [...]string{
	"idle", "ready", "delayed", "held", "asking", "inside", "failing",
	"finished", "lapsed", "done", "skipped", "failed",
}

func (p phase) String() string { return phaseNames[p] }

func (p phase) settled() bool { return p >= done }

// settle is what becomes of a phase when the superstep ends.
func (p phase) settle() phase {
	if p == lapsed {
		return failed
	}
	return done
}

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

	step    int // the superstep that is open, or the last one; counted from 1
	base    int // supersteps of the turns before this one; 0 but for the run's own frame
	tasks   []task
	open    []int32       // in declaration order
	deltas  []state.Delta // what those of open wrote that have finished
	next    []int32       // ready behind this superstep, in declaration order
	left    int           // of open: neither finished nor failed
	failing int           // of open: failed, and nobody follows that

	after   []*pending   // interrupts after a visit, which hold the frame
	refused *dag.Failure // a person rejected one of them

	began time.Time // of the superstep, in this call; for events only
}

// A task is one visit: the place of a node in a frame.
type task struct {
	frame   *frame
	node    *dag.PlanNode
	phase   phase
	busy    bool  // of an item: it has a place
	cleared bool  // in this call: the interceptors let it begin
	waits   int32 // of what it follows: not settled
	at      int32 // its place in the frame's open, and deltas
	outcome string
	inner   *frame // what it holds, while inside or failing there
	odd     *odd
}

// An odd is what most visits never have.
type odd struct {
	attempts  int              // failed ones, since the run was opened
	budget    int              // of these, before the budget was renewed
	notBefore int64            // delayed: nanoseconds since 1970
	wait      time.Duration    // delayed: how long the wait was when it was decided
	woken     bool             // ready: it was delayed until a moment ago, as no entry tells
	failure   *dag.Failure     // failing, lapsed, failed
	passed    bool             // an interrupt before it was taken
	approved  approvals        // of what interceptors and gates asked before it
	grants    map[string]grant // by key: of effects that have not begun since
	entered   bool             // an effect in it was asked about, so it has begun
	asks      []*pending       // held, asking: what has not ended
	answers   map[string]checkpoint.Answer
	collected []dag.Failure // of an Each that is done: of its items
}

func newFrame(plan *dag.Plan, path string, holder *task) *frame {
	f := &frame{plan: plan, path: path, holder: holder, tasks: make([]task, len(plan.Nodes))}
	f.calls = plan.Schema.CallsUser()
	for i := range f.tasks {
		t := &f.tasks[i]
		t.frame, t.node = f, &plan.Nodes[i]
		t.waits = int32(t.node.Waits)
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
	f.deltas = slices.Grow(f.deltas[:0], len(f.open))[:len(f.open)]
	clear(f.deltas)
	for k, i := range f.open {
		f.tasks[i].at = int32(k)
	}
}

// roots are the visits that follow nothing.
func (f *frame) roots() []int32 {
	var roots []int32
	for i := range f.tasks {
		if f.tasks[i].waits == 0 {
			roots = append(roots, int32(i))
		}
	}
	return roots
}

// settle tells the followers of visit i that it has settled. A follower that waits for
// nothing any more joins the next superstep, or is skipped and settles at once.
func (f *frame) settle(i int) {
	for _, j := range f.plan.Followers[i] {
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

// took reports whether one of the outcomes named is one that the visit chose.
func (t *task) took(on []string) bool {
	if t.node.Kind != dag.KindChoose {
		return slices.Contains(on, t.outcome)
	}
	chosen, _ := chosenIn(t.outcome) // checked when it was applied
	return slices.ContainsFunc(on, func(o string) bool { return slices.Contains(chosen, o) })
}

// writes appends what the visits of the open superstep wrote, in declaration order.
func (f *frame) writes(writes []state.Write) []state.Write {
	for _, i := range f.open {
		if t := &f.tasks[i]; t.keeps() {
			writes = append(writes, state.Write{Visit: t.path(), Delta: t.wrote()})
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
			if err := f.spare.Apply(t.wrote()); err != nil {
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
			if err := f.outer.Record(t.wrote()); err != nil {
				return err
			}
		}
	}
	return f.outer.Record(folds)
}

// failure is why f fails: the first in declaration order.
func (f *frame) failure() *dag.Failure {
	for _, i := range f.open {
		if t := &f.tasks[i]; t.phase == failing {
			return t.odd.failure
		}
	}
	return f.refused
}

// keeps reports whether what the visit wrote is part of the superstep: it is done, or
// is a Loop or Each that failed and keeps what it finished. Of a stopped frame of items
// that is what stands before the first one that failed.
func (t *task) keeps() bool {
	if t.frame.stopped() && int(t.at) > t.frame.items.first {
		return false
	}
	return t.phase == finished || t.phase == lapsed || t.wrecked()
}

// wrecked reports whether the visit is a Loop or Each that failed because a visit inside it
// did, and so fails the frame around it. What it finished counts if that frame is a Loop's
// whose failure is followed.
func (t *task) wrecked() bool {
	return t.phase == failing && records(t.node) && t.inner != nil
}

// wrote is what the visit wrote: of a wrecked Loop or Each, what it has recorded.
func (t *task) wrote() state.Delta {
	if !t.wrecked() {
		return t.frame.deltas[t.at]
	}
	d, err := t.inner.outer.Delta()
	if err != nil {
		panic("dispatcher: what a loop recorded can't be told: " + err.Error())
	}
	return d
}

func (t *task) path() string {
	if t.isItem() {
		return t.frame.path + "/" + strconv.Itoa(int(t.at)+1)
	}
	if t.frame.path == "" {
		return t.node.Name
	}
	return t.frame.path + "/" + t.node.Name
}

func (t *task) rare() *odd {
	if t.odd == nil {
		t.odd = &odd{}
	}
	return t.odd
}

// approved are the approvals before the visit.
func (t *task) approved() approvals {
	if t.odd == nil {
		return nil
	}
	return t.odd.approved
}

// attempts counts the attempts of the visit that failed.
func (t *task) attempts() int {
	if t.odd == nil {
		return 0
	}
	return t.odd.attempts
}

// begun reports whether the moment before the visit has passed.
func (t *task) begun() bool {
	return t.odd != nil && (t.odd.passed || t.odd.attempts > 0 || t.odd.answers != nil || t.odd.entered)
}
