package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A machine is one run: its frames, visits and interrupts, and every rule about which
// fact may follow which. It is pure. It has no goroutine, clock, context, lock or disk,
// calls no user code, and is owned by one goroutine at a time.
//
// Facts go in through apply, live and in recovery alike. Out come decisions (next), which
// whoever drives the machine answers with further facts, and visits that may run (take).
// A fact is applied before it is durable, but nothing that a machine offers may be acted
// upon until the facts applied so far are; if they can't be made so, the machine is
// thrown away.
type machine struct {
	plan   *dag.Plan
	status checkpoint.Status
	root   *frame
	fault  *fault              // why the run itself failed; nil if visits did, or nothing
	waits  map[string]*pending // open interrupts by id
	fresh  []*dag.Failure      // rejections since the run failed
	seen   map[string]bool     // ids of posts that were drained
	// effects are those of visits whose superstep of the run's own frame has not ended, by
	// path and key; nil if there are none.
	effects map[string]map[string]*effect
	steps   int       // supersteps ended in this turn, of all frames
	since   time.Time // when the status changed last, as the store tells; zero if it was not asked
	read    int       // bytes of entries that were replayed
	told    told
	tags    map[string]uint64     // names of checkpoints: the numbers of their entries
	depends map[string]dependence // of visits that are done in this turn, by path
	turn    int                   // counted from 1
	// generation counts how often the run was rewound, lineage tells from where it has gone on.
	generation int
	lineage    []ancestor
	shelf      *shelf // of a fork; nil if its effects are done as in any other run
	index      map[*dag.Plan]map[string]int

	// vets: somebody has to be asked before a visit begins. Without it visits are offered
	// as they become ready.
	vets bool
	// gates: the same of interceptors and gates, who are asked once in each call.
	gates bool
	// replaying: facts come from the log. Nothing is offered until rescan.
	replaying bool

	queue []decision // in the order in which they came up
	asked int        // of queue: handed out
	ready []*task    // visits whose body may begin
	taken []*task    // those that were handed out last
}

// A decision is something that must be settled by a fact before the run can go on.
type decision struct {
	kind decisionKind
	f    *frame
	t    *task
}

type decisionKind uint8

const (
	vet       decisionKind = iota + 1 // may t begin, or is it interrupted before?
	enter                             // t's frame has to be entered
	merge                             // f's superstep has nothing left to wait for: close it
	end                               // f has nothing left to run: what comes of it?
	bury                              // f has failed and the failure of what holds it is followed
	takeInput                         // never asked for by the machine: a turn is to begin
)

// A pending is an interrupt that has not ended.
type pending struct {
	id   string
	t    *task
	kind string
	key  string
	ask  checkpoint.Interrupt
}

// A fault is why a run failed that no visit made fail.
type fault struct {
	kind    string // conflict, limit, merge, check, hook
	message string
	stack   []byte
}

// The kinds of interrupts.
const (
	kindBefore = "before"
	kindAfter  = "after"
	kindAsked  = "asked"
	kindEffect = "effect" // an effect inside the visit needs an approval
	kindDoubt  = "doubt"  // nobody knows what came of an effect inside the visit
)

func newMachine(plan *dag.Plan) *machine {
	return &machine{plan: plan}
}

// apply is the only transition. Live runs and recovery both come through it. An error
// means that the fact does not fit: the log is not this graph's, or damaged.
func (m *machine) apply(x *fact) error {
	if !x.live {
		if err := m.resolve(x); err != nil {
			return err
		}
	}
	if x.Post != "" {
		if m.seen == nil {
			m.seen = map[string]bool{}
		}
		m.seen[x.Post] = true
	}
	if x.t != nil && x.t.odd != nil && x.Kind != checkpoint.EffectBegun && x.Kind != checkpoint.EffectEnded {
		x.t.odd.woken = false
	}
	before := m.status
	m.status = m.status.After(x.Kind)
	if err := m.follow(x, before); err != nil {
		return err
	}
	switch {
	case x.t != nil:
		m.yield(x.t)
	case x.f != nil:
		m.yield(x.f.holder)
	}
	return nil
}

// follow makes what a fact says part of the machine, whose status was before.
func (m *machine) follow(x *fact, before checkpoint.Status) error {
	switch x.Kind {
	case checkpoint.Opened:
		return m.open(x)
	case checkpoint.TurnBegun:
		return m.beginTurn(x, before)
	case checkpoint.Entered:
		return m.enter(x)
	case checkpoint.Done:
		return m.done(x)
	case checkpoint.AttemptFailed:
		return m.attemptFailed(x)
	case checkpoint.Interrupted:
		return m.interrupt(x)
	case checkpoint.Answered:
		return m.answer(x)
	case checkpoint.Voided:
		return m.void(x)
	case checkpoint.EffectBegun:
		return m.effectBegun(x)
	case checkpoint.EffectEnded:
		return m.effectEnded(x)
	case checkpoint.Superstep:
		return m.superstep(x)
	case checkpoint.Resumed:
		return m.resume(x, before)
	case checkpoint.Failed:
		return m.fail(x)
	case checkpoint.SettingsChanged:
		return m.set(x)
	case checkpoint.Migrated:
		return m.migrate(x)
	case checkpoint.Tagged:
		return m.tag(x)
	case checkpoint.Rewound:
		return m.rewind(x)
	case checkpoint.Edited:
		return m.edit(x)
	case checkpoint.Cancelled, checkpoint.TimedOut, checkpoint.Completed,
		checkpoint.Waiting, checkpoint.Noted, checkpoint.Trimmed:
		return nil
	}
	return fmt.Errorf("entries of kind %s are not known to this version", x.Kind)
}

// resolve finds what a stored entry speaks of.
func (m *machine) resolve(x *fact) (err error) {
	schema := m.plan.Schema
	switch x.Kind {
	case checkpoint.Opened:
	case checkpoint.Entered:
		if x.t, err = m.holder(x.Path); x.t != nil && x.t.node.Body != nil {
			schema = x.t.node.Body.Schema
		}
	case checkpoint.Superstep, checkpoint.Edited:
		if x.f = m.frameAt(x.Path); x.f == nil {
			return fmt.Errorf("no frame %q is open", x.Path)
		}
		schema = x.f.plan.Schema
	case checkpoint.Done, checkpoint.AttemptFailed, checkpoint.Interrupted,
		checkpoint.EffectBegun, checkpoint.EffectEnded:
		if x.t = m.find(x.Path); x.t == nil {
			return fmt.Errorf("no visit %q is open", x.Path)
		}
		schema = x.t.frame.plan.Schema
	}
	if err == nil && len(x.Delta) > 0 {
		x.delta, err = schema.ParseDelta(x.Delta)
	}
	if err == nil && len(x.Outer) > 0 {
		x.more().outer, err = schema.ParseDelta(x.Outer)
	}
	return err
}

func (m *machine) open(x *fact) error {
	if m.root != nil {
		return fmt.Errorf("the run is opened twice")
	}
	if x.opening != nil && x.opening.Origin != nil {
		return m.originate(x)
	}
	m.root = newFrame(m.plan, "", nil)
	m.root.view = m.plan.Schema.New()
	m.turn = 1
	if err := m.tell(x); err != nil {
		return err
	}
	return m.root.given(x)
}

// enter begins a frame: the run's own, an Embed's, an Each's, or an iteration of a Loop,
// which takes over the state of the iteration before it.
func (m *machine) enter(x *fact) error {
	if x.t == nil {
		m.root.next = m.root.roots()
		m.begin(m.root)
		return nil
	}
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
	case t.inner == nil:
		f.iteration = 1
		f.view, f.outer = t.frame.view.Draft(), t.frame.view.Draft()
	default:
		f.iteration = t.inner.iteration + 1
		f.view, f.spare, f.outer, f.bound = t.inner.view, t.inner.spare, t.inner.outer, t.inner.bound
	}
	t.inner, t.phase = f, inside
	f.next = f.roots()
	m.begin(f)
	return nil
}

// begin starts the next superstep of f: the visits that became ready together.
func (m *machine) begin(f *frame) {
	f.step++
	f.reopen()
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

// offer puts a ready visit where it is found: in the hands of whoever vets it, or among
// those that may run.
func (m *machine) offer(t *task) {
	switch {
	case m.replaying:
	case !t.placed():
		m.enqueue(t)
	case m.vets && !t.begun(), m.gates && !t.cleared:
		m.push(decision{kind: vet, t: t})
	default:
		m.pass(t)
	}
}

// pass lets a visit that was vetted go on.
func (m *machine) pass(t *task) {
	if holds(t.node) {
		m.push(decision{kind: enter, t: t})
		return
	}
	m.ready = append(m.ready, t)
}

func (m *machine) push(d decision) {
	if !m.replaying {
		m.queue = append(m.queue, d)
	}
}

// next returns the oldest decision that still has to be made.
func (m *machine) next() (decision, bool) {
	if m.asked == len(m.queue) {
		m.queue, m.asked = m.queue[:0], 0
		return decision{}, false
	}
	m.asked++
	return m.queue[m.asked-1], true
}

// undecided reports whether a decision still has to be made.
func (m *machine) undecided() bool { return m.asked < len(m.queue) }

// done records that a visit finished well. The delta of a Loop is what its iterations did,
// that of an Each what its items did.
func (m *machine) done(x *fact) error {
	t := x.t
	if t.phase != ready && t.phase != inside && t.phase != delayed {
		return fmt.Errorf("visit %q is %s and can't be done", t.path(), t.phase)
	}
	if t.node.Kind == dag.KindChoose {
		if _, err := chosenIn(x.Outcome); err != nil {
			return fmt.Errorf("visit %q has the outcome %s: %w", t.path(), x.Outcome, err)
		}
	}
	t.phase, t.outcome = finished, x.Outcome
	t.frame.deltas[t.at] = x.delta
	if records(t.node) {
		d, err := t.inner.outer.Delta()
		if err != nil {
			return err
		}
		t.frame.deltas[t.at] = d
	}
	if t.node.Kind == dag.KindEach {
		t.collect()
	}
	if len(x.Data) > 0 {
		if err := m.depend(x); err != nil {
			return err
		}
	}
	m.drop(t)
	t.frame.left--
	if t.isItem() {
		m.itemSettled(t)
	}
	m.check(t.frame)
	return nil
}

// attemptFailed records a failed attempt. After the last one the visit has failed.
func (m *machine) attemptFailed(x *fact) error {
	var a checkpoint.FailedAttempt
	if err := json.Unmarshal(x.Data, &a); err != nil {
		return err
	}
	t := x.t
	if t.phase == finished || t.phase.settled() || t.phase == idle {
		return fmt.Errorf("visit %q is %s and can't fail", t.path(), t.phase)
	}
	if x.Attempt > 0 { // an attempt of the visit itself, not of what it holds
		t.rare().attempts = x.Attempt
	}
	if !a.Final {
		r := t.rare()
		r.notBefore, r.wait = a.NotBefore.UnixNano(), a.Wait
		t.phase = delayed
		return nil
	}
	failure := &dag.Failure{Path: t.path(), Attempts: t.attempts(), Kind: dag.FailureKind(a.Kind), Message: a.Message}
	if a.Origin != "" {
		failure.Path, failure.Attempts = a.Origin, a.Attempts
	}
	if t.node.FailureFollowed && t.inner != nil {
		if records(t.node) {
			d, err := t.inner.outer.Delta()
			if err != nil {
				return err
			}
			t.frame.deltas[t.at] = d
		}
		m.drop(t)
	}
	m.fell(t, failure)
	return nil
}

// fell records that a visit has failed for good.
func (m *machine) fell(t *task, failure *dag.Failure) {
	t.rare().failure = failure
	t.odd.lapse()
	t.frame.left--
	if t.node.FailureFollowed {
		t.phase = lapsed
	} else {
		t.phase = failing
		t.frame.failing++
	}
	if t.isItem() {
		m.itemSettled(t)
	}
	m.check(t.frame)
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
	case f.holder.node.FailureFollowed, f.items != nil:
		m.push(decision{kind: bury, f: f})
	case f.holder.phase == inside:
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
	clear(f.deltas)
	slices.Sort(f.next)
	m.proceed(f)
	return nil
}

// kept marks what visits of a failed frame wrote as merged, so that it is not merged again
// if the frame around it can't be merged for now.
func (m *machine) kept(f *frame) {
	for _, i := range f.open {
		t := &f.tasks[i]
		f.deltas[t.at] = state.Delta{}
		if t.wrecked() {
			m.drop(t)
		}
	}
}

// drop forgets the frame that a visit holds, and what waits in it.
func (m *machine) drop(t *task) {
	if t.inner == nil {
		return
	}
	for _, p := range t.inner.pendings(nil) {
		delete(m.waits, p.id)
	}
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

// fail brings the run to rest. Data tells if the run itself is at fault.
func (m *machine) fail(x *fact) error {
	var r checkpoint.Resting
	if len(x.Data) > 0 {
		if err := json.Unmarshal(x.Data, &r); err != nil {
			return err
		}
	}
	if r.Kind != "" {
		m.fault = &fault{r.Kind, r.Cause, []byte(r.Stack)}
	}
	return nil
}
