package dispatcher_test

import (
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A reference runs a graph as the rules of execution say, one visit after the other,
// without log, dispatcher or cells: the engine is compared with it.
type reference struct {
	root           *refFrame
	states, ready  map[string]string // at each checkpoint: the state, and what runs next
	attempts, done []string          // of visits: path@superstep, with #attempt
	asked          int               // calls of until, items, in and out
	answers        func(path string) []string
	rules          func(path string) rule
	consults       bool     // persons are asked before visits
	timing         []string // items of which it is timing whether they ran
	fault, voided  bool     // a superstep can't be merged; or once couldn't
	status         checkpoint.Status
	pauses
}

type refFrame struct {
	g       *graphSpec
	path    string
	state   refState
	delta   []cellOp // of the supersteps that have ended
	step    int
	nodes   []refTask  // what each node settled as
	open    []*refTask // the superstep that has not ended
	held    []string   // visits after which it pauses
	failure string     // of its first visit that failed, in declaration order

	each      *nodeSpec // whose items the visits are
	before    []string  // failures that it follows
	collected []string  // failures of items
	caught    bool      // that an item fails is followed
}

type refTask struct {
	*nodeSpec
	path, outcome, failure string
	item                   string // "" unless it is one
	phase                  string // "" until it settles: done, failed or skipped
	index, attempts, round int    // index: of the node
	caught                 bool   // its failure is followed
	waits, passed          bool   // at the interrupt before it
	collected              []string
	delta                  []cellOp
	inner                  *refFrame // the graph, or the items, at work in it
	verdict                int
}

// What keeps a frame from going on: a visit failed, and nobody follows that; or something
// in it waits or can't be merged.
const refFailed, refStuck = 1, 2

// run goes on until nothing can.
func (r *reference) run() *reference {
	r.fault, r.status = false, checkpoint.StatusCompleted
	if v := r.advance(r.root); v&refFailed != 0 || r.fault {
		r.status = checkpoint.StatusFailed
	} else if v != 0 {
		r.status = checkpoint.StatusInterrupted
	}
	return r
}

// advance runs a frame until it ends, or as far as it can go.
func (r *reference) advance(f *refFrame) (v int) {
	for len(f.held) == 0 {
		if f.open == nil && !r.begin(f) {
			return 0
		}
		for _, t := range f.open {
			if f.spared(t) {
				break
			}
			one := r.visit(f, t)
			if one&^v&refFailed != 0 {
				f.failure = t.failure
			}
			v |= one
		}
		if v == 0 && !r.end(f) {
			v = refStuck
		}
		if v != 0 {
			return v
		}
	}
	return refStuck
}

// begin opens the superstep of all nodes that are ready; it is false if there are none.
func (r *reference) begin(f *refFrame) bool {
	for i, n := range f.g.Nodes {
		settled, taken := f.edge(edgeSpec{Op: "join", Of: n.After})
		switch {
		case f.nodes[i].phase != "" || !settled:
		case taken:
			f.open = append(f.open, &refTask{nodeSpec: n, path: under(f.path, n.Name), index: i, caught: f.g.catches(i)})
		default:
			f.nodes[i].phase = "skipped"
		}
	}
	r.ready[f.at()] = f.rests()
	f.step++
	return f.open != nil
}

// edge says whether all that e mentions has settled, and whether e is taken. Build has
// seen to it that edges joined without a word exclude each other, or are taken together.
func (f *refFrame) edge(e edgeSpec) (settled, taken bool) {
	if t := &f.nodes[e.Node]; e.Op == "" && e.Failed {
		return t.phase != "", t.phase == "failed"
	} else if e.Op == "" {
		return t.phase != "", t.phase == "done" && (len(e.On) == 0 || t.took(e.On))
	}
	settled, some := true, 0
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
func (r *reference) visit(f *refFrame, t *refTask) (v int) {
	if t.phase != "" {
		return t.verdict
	}
	switch {
	case r.holds(t):
		return refStuck
	case r.refuses(t):
		v = refFailed
	case t.item != "" && t.Body == nil:
		v = r.attempt(f, t)
	case t.item != "", t.Kind == dag.KindEmbed:
		v = r.embed(f, t)
	case t.Kind == dag.KindEach:
		v = r.each(f, t)
	case t.Kind == dag.KindFail:
		v, t.failure = refFailed, toldOf(t.path, 0, dag.FailedEnd)
	case t.Kind == dag.KindLoop:
		v = r.loop(f, t)
	default:
		v = r.attempt(f, t)
	}
	if v == 0 {
		t.phase, t.inner = "done", nil
		r.done = append(r.done, fmt.Sprintf("%s@%d", t.path, f.step))
	} else if v == refFailed && (t.caught || t.inner == nil) {
		t.phase, t.inner = "failed", nil
	}
	if t.verdict = v; t.caught {
		t.verdict &^= refFailed
	}
	return t.verdict
}

func (r *reference) attempt(f *refFrame, t *refTask) int {
	rule := r.rules(t.path)
	draft := func(ops ...cellOp) string {
		t.delta = append(t.delta, ops...)
		return f.state.with(t.delta).look()
	}
	for range max(t.Attempts, 1) {
		t.attempts++
		r.attempts = append(r.attempts, fmt.Sprintf("%s@%d#%d", t.path, f.step, t.attempts))
		switch {
		case rule == ruleInstead:
		case t.fails(t.path, t.attempts):
			continue
		default:
			t.outcome = t.act(t.path, append(f.tells(t), r.answers(t.path)...), draft)
		}
		if rule == ruleInstead || rule == ruleReplace {
			t.outcome = t.substitute(t.path, draft)
		}
		return 0
	}
	t.failure = toldOf(t.path, t.attempts, dag.FailureKind(t.How))
	return refFailed
}

// loop repeats a graph over the state of the frame. What it finished inside is kept also
// if it fails, and somebody follows that.
func (r *reference) loop(f *refFrame, t *refTask) int {
	for ; ; t.inner = nil {
		if t.inner == nil {
			t.round++
			t.inner = newRefFrame(t.Body, fmt.Sprintf("%s/%d", t.path, t.round), f.state.with(t.delta))
		}
		v := r.advance(t.inner)
		t.failure = t.inner.failure
		if v&refStuck != 0 || v != 0 && !t.caught {
			return v
		}
		kept, ok := r.merge(t.inner)
		if !ok {
			return refStuck
		}
		if t.delta = slices.Concat(t.delta, t.inner.delta, kept); v != 0 {
			return v
		}
		r.asked++
		if t.until(t.inner.state.look()) {
			t.outcome = string(dag.Done)
			return 0
		}
		if t.outcome = string(dag.Exhausted); t.round == t.Most {
			return 0
		}
	}
}

func (r *reference) embed(f *refFrame, t *refTask) int {
	if t.inner == nil {
		r.asked++
		t.inner = newRefFrame(t.Body, t.path, refState{}.with(fill(t.In, t.gets(), f.state.look())))
	}
	v := r.advance(t.inner)
	t.failure = t.inner.failure
	if v == 0 {
		r.asked++
		t.delta = fill(t.Out, t.gets(), t.inner.state.look())
	}
	return v
}

// end merges the open superstep and settles it; it is false if that can't be merged.
func (r *reference) end(f *refFrame) bool {
	delta, ok := r.merge(f)
	if !ok {
		return false
	}
	settled := f.open
	f.delta, f.state, f.open = append(f.delta, delta...), f.state.with(delta), nil
	for _, t := range settled {
		f.settle(t)
	}
	r.states[f.at()] = f.state.json()
	r.hold(f, settled)
	return true
}

// merge joins what the open superstep has finished, in declaration order. If two visits
// conflict it voids them instead, and is not ok.
func (r *reference) merge(f *refFrame) (delta []cellOp, ok bool) {
	deltas := make([][]cellOp, len(f.open))
	for i, t := range f.open[:f.counted()] {
		if deltas[i] = t.delta; t.item == "" && t.Kind != dag.KindEmbed && t.inner != nil { // it failed, and so does f
			kept, ok := r.merge(t.inner)
			if !ok {
				return nil, false
			}
			deltas[i] = slices.Concat(t.delta, t.inner.delta, kept)
		}
	}
	void := conflict(deltas)
	for _, i := range void {
		t := f.open[i]
		*t = refTask{nodeSpec: t.nodeSpec, path: t.path, item: t.item, index: t.index, caught: t.caught, attempts: t.attempts, passed: t.passed}
		r.fault, r.voided = true, true
	}
	return slices.Concat(deltas...), void == nil
}
