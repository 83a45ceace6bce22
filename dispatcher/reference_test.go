package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A reference runs a graph as the rules of execution say, one visit after the other,
// without log, dispatcher or cells: the engine is compared with it.
type reference struct {
	root          *refFrame
	before, after map[string]bool   // visits before and after which it pauses
	fault         bool              // a superstep can't be merged
	states        map[string]string // at each checkpoint, by path@superstep
	ready         map[string]string // what its frame runs next, likewise
	attempts      []string          // path@superstep#attempt
	done          []string          // visits, by path@superstep
	asked         int               // calls of until, in and out
	status        checkpoint.Status
}

type refFrame struct {
	g     *graphSpec
	path  string
	state refState
	delta []cellOp // of the supersteps that have ended
	step  int
	nodes []refTask  // what each node settled as
	open  []*refTask // the superstep that has not ended
	held  []string   // visits after which it pauses
}

type refPhase int

const (
	refToRun refPhase = iota
	refWaits
	refDone
	refFailed
	refSkipped
)

type refTask struct {
	*nodeSpec
	path     string
	index    int // of the node
	caught   bool
	phase    refPhase
	outcome  string
	delta    []cellOp
	attempts int
	passed   bool      // the interrupt before it was taken
	inner    *refFrame // the graph at work in it
	round    int
	failure  string
}

func newReference(g *graphSpec, input []cellOp) *reference {
	return &reference{
		root:   newRefFrame(g, "", refState{}.with(input)),
		states: map[string]string{}, ready: map[string]string{},
	}
}

func newRefFrame(g *graphSpec, path string, s refState) *refFrame {
	return &refFrame{g: g, path: path, state: s, nodes: make([]refTask, len(g.Nodes))}
}

// run goes on until nothing can.
func (r *reference) run() *reference {
	r.fault = false
	failed, stuck := r.advance(r.root)
	switch {
	case failed || r.fault:
		r.status = checkpoint.StatusFailed
	case stuck:
		r.status = checkpoint.StatusInterrupted
	default:
		r.status = checkpoint.StatusCompleted
	}
	return r
}

// resume ends the interrupts, gives new attempts to what made the run fail, and runs.
func (r *reference) resume() *reference {
	r.root.release(r.status == checkpoint.StatusFailed)
	return r.run()
}

func (f *refFrame) release(again bool) {
	f.held = nil
	for _, t := range f.open {
		switch {
		case t.inner != nil:
			t.inner.release(again)
		case t.phase == refWaits:
			t.phase, t.passed = refToRun, true
		case t.phase == refFailed && again && !t.caught:
			t.phase = refToRun
		}
	}
}

// advance runs a frame until it ends. The frame fails with a visit whose failure nobody
// follows; it is stuck while something in it waits, or can't be merged.
func (r *reference) advance(f *refFrame) (failed, stuck bool) {
	for len(f.held) == 0 {
		if f.open == nil && !r.begin(f) {
			return false, false
		}
		for _, t := range f.open {
			taskFailed, taskStuck := r.visit(f, t)
			failed, stuck = failed || taskFailed, stuck || taskStuck
		}
		if failed || stuck {
			return failed, stuck
		}
		if !r.end(f) {
			return false, true
		}
	}
	return false, true
}

// begin opens the superstep of all nodes that are ready; it is false if there are none.
func (r *reference) begin(f *refFrame) bool {
	for i, n := range f.g.Nodes {
		if f.nodes[i].phase != refToRun {
			continue
		}
		settled, taken := f.edge(edgeSpec{Op: "join", Of: n.After})
		if settled && taken {
			f.open = append(f.open, &refTask{nodeSpec: n, path: under(f.path, n.Name), index: i, caught: f.g.catches(i)})
		} else if settled {
			f.nodes[i].phase = refSkipped
		}
	}
	r.ready[f.at()] = strings.Join(f.cursor(nil), ",")
	f.step++
	return f.open != nil
}

// edge says whether all that e mentions has settled, and whether e is taken. Build has
// seen to it that edges joined without a word exclude each other, or are taken together.
func (f *refFrame) edge(e edgeSpec) (settled, taken bool) {
	if e.Op == "" {
		t := &f.nodes[e.Node]
		taken = t.phase == refDone && (len(e.On) == 0 || slices.Contains(e.On, t.outcome))
		return t.phase != refToRun, taken && !e.Failed || t.phase == refFailed && e.Failed
	}
	some := 0
	settled = true
	for _, of := range e.Of {
		s, t := f.edge(of)
		settled = settled && s
		if t {
			some++
		}
	}
	if e.Op == "join" && settled && some > 1 && some < len(e.Of) {
		panic(fmt.Sprintf("Build accepted a join of which %d edges of %d are taken", some, len(e.Of)))
	}
	return settled, some == len(e.Of) || e.Op != "all" && some > 0
}

// visit brings a visit of the open superstep to its end, or as far as it can go.
func (r *reference) visit(f *refFrame, t *refTask) (failed, stuck bool) {
	switch {
	case t.phase == refDone || t.phase == refFailed:
		return t.phase == refFailed && !t.caught, false
	case r.before[t.path] && !t.passed:
		t.phase = refWaits
		return false, true
	case t.Kind == dag.KindFail:
		failed, t.failure = true, toldOf(t.path, 0, dag.FailedEnd)
	case t.Kind == dag.KindLoop:
		failed, stuck = r.loop(f, t)
	case t.Kind == dag.KindEmbed:
		failed, stuck = r.embed(f, t)
	default:
		failed = r.attempt(f, t)
	}
	switch {
	case !failed && !stuck:
		t.phase, t.inner, t.failure = refDone, nil, ""
		r.done = append(r.done, fmt.Sprintf("%s@%d", t.path, f.step))
	case !stuck && (t.caught || t.inner == nil):
		t.phase, t.inner = refFailed, nil
	}
	return failed && !t.caught, stuck
}

func (r *reference) attempt(f *refFrame, t *refTask) (failed bool) {
	for range max(t.Attempts, 1) {
		t.attempts++
		r.attempts = append(r.attempts, fmt.Sprintf("%s@%d#%d", t.path, f.step, t.attempts))
		if t.fails(t.attempts) {
			continue
		}
		var caught []string
		for _, i := range failures(t.After) {
			if f.nodes[i].phase == refFailed {
				caught = append(caught, f.nodes[i].failure)
			}
		}
		t.outcome = t.act(t.path, caught, func(ops ...cellOp) string {
			t.delta = append(t.delta, ops...)
			return f.state.with(t.delta).json()
		})
		return false
	}
	t.failure = toldOf(t.path, t.attempts, dag.FailureKind(t.How))
	return true
}

// loop repeats a graph over the state of the frame. What it finished inside is kept also
// if it fails, and somebody follows that.
func (r *reference) loop(f *refFrame, t *refTask) (failed, stuck bool) {
	for ; ; t.inner = nil {
		if t.inner == nil {
			t.round++
			t.inner = newRefFrame(t.Body, fmt.Sprintf("%s/%d", t.path, t.round), f.state.with(t.delta))
		}
		failed, stuck = r.advance(t.inner)
		t.failure = t.inner.failure()
		if stuck || failed && !t.caught {
			return failed, stuck
		}
		if failed && !r.merge(t.inner) {
			return false, true
		}
		t.delta = append(t.delta, t.inner.delta...)
		if failed {
			return true, false
		}
		r.asked++
		if t.until(t.inner.state.json()) {
			t.outcome = string(dag.Done)
			return false, false
		}
		if t.outcome = string(dag.Exhausted); t.round == t.Most {
			return false, false
		}
	}
}

func (r *reference) embed(f *refFrame, t *refTask) (failed, stuck bool) {
	if t.inner == nil {
		r.asked++
		t.inner = newRefFrame(t.Body, t.path, refState{}.with(fill(t.In, t.Name, f.state.json())))
	}
	failed, stuck = r.advance(t.inner)
	t.failure = t.inner.failure()
	if !failed && !stuck {
		r.asked++
		t.delta = fill(t.Out, t.Name, t.inner.state.json())
	}
	return failed, stuck
}

// end merges the open superstep and settles it; it is false if that can't be merged.
func (r *reference) end(f *refFrame) bool {
	if !r.merge(f) {
		return false
	}
	for _, t := range f.open {
		f.nodes[t.index] = *t
		if r.after[t.path] && t.phase == refDone {
			f.held = append(f.held, t.path)
		}
	}
	f.open = nil
	r.states[f.at()] = f.state.json()
	if len(f.held) > 0 {
		r.begin(f) // what it goes on with is known, and has not begun
	}
	return true
}

// merge applies what the open superstep has finished, in declaration order. If two visits
// conflict it voids them instead, and is false.
func (r *reference) merge(f *refFrame) bool {
	for _, t := range f.open {
		if t.Kind == dag.KindLoop && t.inner != nil { // it failed, and so does the frame
			if !r.merge(t.inner) {
				return false
			}
			t.delta = append(t.delta, t.inner.delta...)
		}
	}
	if a, b := conflict(f.open); a != nil {
		for _, t := range []*refTask{a, b} {
			*t = refTask{nodeSpec: t.nodeSpec, path: t.path, index: t.index, caught: t.caught, attempts: t.attempts, passed: t.passed}
		}
		r.fault = true
		return false
	}
	for _, t := range f.open {
		f.delta = append(f.delta, t.delta...)
		f.state = f.state.with(t.delta)
	}
	return true
}

func (f *refFrame) at() string { return fmt.Sprintf("%s@%d", f.path, f.step) }

// failure tells of the first visit, in declaration order, that fails the frame.
func (f *refFrame) failure() string {
	for _, t := range f.open {
		if t.failure != "" && !t.caught {
			return t.failure
		}
	}
	return ""
}

// cursor adds the visits that have still to run or wait.
func (f *refFrame) cursor(all []string) []string {
	if f.open == nil {
		all = append(all, f.held...)
	}
	for _, t := range f.open {
		switch {
		case t.inner != nil:
			all = t.inner.cursor(all)
		case t.phase != refDone && !(t.phase == refFailed && t.caught):
			all = append(all, t.path)
		}
	}
	return all
}
