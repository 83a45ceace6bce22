package dispatcher

import (
	"slices"
	"strconv"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

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

// A task is one visit: the place of a node in a frame.
type task struct {
	frame   *frame
	node    *dag.PlanNode
	phase   phase
	busy    bool  // of an item: it has a place
	cleared bool  // in this call: the interceptors let it begin
	waits   int32 // of what it follows: not settled
	follows int32 // how many that are
	at      int32 // its place in the frame's open, and deltas
	outcome string
	inner   *frame // what it holds, while inside or failing there
	odd     *odd
}

// An odd is what most visits never have.
type odd struct {
	attempts  int           // failed ones, since the run was opened
	budget    int           // of these, before the budget was renewed
	notBefore int64         // delayed: nanoseconds since 1970
	wait      time.Duration // delayed: how long the wait was when it was decided
	woken     bool          // ready: it was delayed until a moment ago, as no entry tells
	failure   *dag.Failure  // failing, lapsed, failed
	// unfollowed: failing, and its failure edge is not taken, though there may be one: see
	// [checkpoint.FailedAttempt].
	unfollowed bool
	passed     bool              // an interrupt before it was taken
	approved   approvals         // of what interceptors and gates asked before it
	grants     map[string]grant  // by key: of effects that have not begun since
	revoked    map[string]grant  // those that ended with a voiding; in no snapshot, see revoke
	entered    bool              // an effect in it was asked about, or is an item's: so it has begun
	asks       []*pending        // held, asking: what has not ended
	answers    map[string]*heard // by key; what is said in one never changes
	collected  []dag.Failure     // of an Each that is done: of its items
}

// none reports whether it says nothing, or is nil. The rest of it means something only beside
// these.
func (o *odd) none() bool {
	return o == nil || o.attempts == 0 && o.failure == nil && !o.unfollowed && !o.passed && o.approved == nil && o.grants == nil &&
		!o.entered && o.asks == nil && o.answers == nil && o.collected == nil
}

// took reports whether one of the outcomes named is one that the visit chose.
func (t *task) took(on []string) bool {
	if t.node.Kind != dag.KindChoose {
		return slices.Contains(on, t.outcome)
	}
	chosen, _ := chosenIn(t.outcome) // checked when it was applied
	return slices.ContainsFunc(on, func(o string) bool { return slices.Contains(chosen, o) })
}

// keeps reports whether what the visit wrote is part of the superstep: it is done, or
// is a Loop or Each that failed and keeps what it finished. Of a stopped frame of items
// that is what stands before the first one that failed.
func (t *task) keeps() bool {
	if t.frame.stopped() && int(t.at) > t.frame.items.first {
		return false
	}
	return t.ended()
}

// ended reports whether the visit wrote what can be part of the superstep, or could be if what has
// stopped its frame ran again.
func (t *task) ended() bool { return t.phase == finished || t.phase == lapsed || t.wrecked() }

// wrecked reports whether the visit is a Loop or Each that failed because a visit inside it
// did, and so fails the frame around it. What it finished counts if that frame is a Loop's
// whose failure is followed.
func (t *task) wrecked() bool {
	return t.phase == failing && records(t.node) && t.inner != nil
}

// salvaged reports whether a part of what the visit did may be merged already: its frame has
// failed, and has kept what was finished. What has written since then has run again; of a Loop or
// Each that may be a part.
func (t *task) salvaged() bool {
	return t.frame.salvaged && (records(t.node) || t.ended() && t.wrote().IsZero())
}

// wrote is what the visit wrote: of a wrecked Loop or Each, what it has recorded.
func (t *task) wrote() *state.Delta {
	if !t.wrecked() {
		return t.frame.delta(t)
	}
	d, err := t.inner.outer.Delta()
	if err != nil {
		panic("dispatcher: what a loop recorded can't be told: " + err.Error())
	}
	return &d
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

// where is where the path stands: most of them are not made for that.
func (t *task) where() *string {
	if t.frame.path == "" && !t.isItem() {
		return &t.node.Name
	}
	path := t.path()
	return &path
}

func (t *task) rare() *odd {
	if t.odd == nil {
		t.odd, t.frame.odds = &odd{}, true
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

// failuresBefore tells what failed among the nodes whose failure t follows, and among the
// items of those that collect failures. An item follows what its Each does.
func (t *task) failuresBefore() []dag.Failure {
	if t.isItem() {
		return t.frame.holder.failuresBefore()
	}
	if !t.frame.odds {
		return nil
	}
	nodes := t.frame.followed(&t.node.Follows, nil)
	slices.Sort(nodes)
	var failures []dag.Failure
	for _, i := range slices.Compact(nodes) {
		o := t.frame.tasks[i].odd
		if o.failure != nil {
			failures = append(failures, *o.failure)
		}
		failures = append(failures, o.collected...)
	}
	return failures
}

// followed lists the nodes whose failure e follows, and that have failed, and those that
// have collected failures and e follows otherwise.
func (f *frame) followed(e *dag.Expr, nodes []int) []int {
	if e.Op == dag.OpNode {
		t := &f.tasks[e.Node]
		if t.odd != nil && f.taken(e) && (e.Failed || t.odd.collected != nil) {
			nodes = append(nodes, e.Node)
		}
	}
	for i := range e.Of {
		nodes = f.followed(&e.Of[i], nodes)
	}
	return nodes
}
