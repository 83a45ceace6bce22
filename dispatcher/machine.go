package dispatcher

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
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
//
// Its rules are told in the order in which a run meets them: what follows what, and what is
// skipped (frame.go); how supersteps begin, merge and end (machine_superstep.go); what may
// become of a visit (machine_task.go, machine_attempt.go); what is asked of the driver
// (machine_decision.go); and then a file for each thing that not all runs have.
type machine struct {
	plan   *dag.Plan
	status checkpoint.Status
	root   *frame
	// what newRoot takes, if an earlier run has left it; nil once the machine is one of a run
	heir  *frame
	fault *fault              // why the run itself failed; nil if visits did, or nothing
	waits map[string]*pending // open interrupts by id
	fresh []string            // paths of visits that were rejected since the run failed
	seen  map[string]bool     // ids of posts that were drained
	// answered is the number of the last answer among them, 0 if there is none.
	answered uint64
	// effects are those of visits whose superstep of the run's own frame has not ended, by
	// path and key; nil if there are none.
	effects map[string]map[string]*effect
	steps   int       // supersteps ended in this turn, of all frames
	since   time.Time // when the status changed last, as the store tells; zero if it was not asked
	read    int       // bytes of entries that were replayed
	shed    int       // bytes that were unmerged, and are merged or dropped
	told    told
	tags    map[string]uint64     // names of checkpoints: the numbers of their entries
	depends map[string]dependence // of visits that are done in this turn, by path
	turn    int                   // counted from 1
	// generation counts how often the run was rewound, lineage tells from where it has gone on.
	generation int
	vacated    map[string]int // see generationOf; not written to
	renames    renames        // by the migrations that led here
	lineage    []ancestor
	voids      []voided // what was voided, of all turns, oldest first
	shelf      *shelf   // of a fork; nil if its effects are done as in any other run

	// vets: somebody has to be asked before a visit begins. Without it visits are offered
	// as they become ready.
	vets bool
	// gates: the same of interceptors and gates, who are asked once in each call.
	gates bool
	// replaying: facts come from the log. Nothing is offered until rescan.
	replaying bool
	asked     int32 // of queue: handed out; here it takes no room of its own
	home      *kept // what the machine is part of; nil if it was never kept

	few   [2]decision // where queue begins
	queue []decision  // in the order in which they came up
	ready []*task     // visits whose body may begin
	taken []*task     // those that were handed out last
}

// A fault is why a run failed that no visit made fail.
type fault struct {
	kind    string // conflict, limit, merge, check, hook
	message string
	stack   []byte
}

func newMachine(plan *dag.Plan) *machine {
	return &machine{plan: plan}
}

// see remembers that something was drained.
func (m *machine) see(id string) {
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	m.seen[id] = true
	m.answered = max(m.answered, numberOf(id))
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
		m.see(x.Post)
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
	case checkpoint.EffectEnded: // the visit may have been voided with a frame around it
		x.t = m.find(x.Path)
		return nil
	case checkpoint.Done, checkpoint.AttemptFailed, checkpoint.Interrupted, checkpoint.EffectBegun:
		if x.t = m.find(x.Path); x.t == nil {
			return fmt.Errorf("no visit %q is open", x.Path)
		}
		schema = x.t.frame.plan.Schema
	}
	switch {
	case err != nil || len(x.Delta) == 0:
	case x.slabs != nil:
		x.delta, err = schema.ParseDeltaIn(x.Delta, x.slabs)
	default:
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
	m.root = m.newRoot()
	m.root.view = m.plan.Schema.New()
	m.turn = 1
	if err := m.tell(x); err != nil {
		return err
	}
	return m.root.given(x)
}

// newRoot is the run's own frame, in what an earlier run has left if that is of the same graph.
func (m *machine) newRoot() *frame {
	f := m.heir
	if m.heir = nil; f == nil || f.plan != m.plan {
		return newFrame(m.plan, "", nil)
	}
	return f
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
