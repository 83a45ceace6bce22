package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A reference runs a graph as the rules say, one visit after the other, without a log, a
// dispatcher or a cell: what the engine does is compared with what it does.
type reference struct {
	root   *refFrame
	before map[string]bool // visits before and after which it pauses
	after  map[string]bool
	fault  bool              // a superstep can't be merged
	states map[string]string // at each checkpoint, by path@superstep
	visits []string          // attempts made: path@superstep#attempt
	done   []string          // visits done
	status checkpoint.Status
}

type refFrame struct {
	g      *graphSpec
	path   string // with a slash behind it, unless it is the run's own
	state  refState
	delta  []cellOp // of the supersteps that have ended
	step   int
	nodes  []refTask  // what has settled
	open   []*refTask // the superstep that has not ended
	held   []string   // visits after which it pauses
	closed map[string]bool
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
	phase    refPhase
	outcome  string
	delta    []cellOp
	attempts int
	passed   bool      // its interrupt before it has been taken
	inner    *refFrame // the graph it holds, at work
	round    int
	failure  string
}

func newReference(g *graphSpec, input []cellOp) *reference {
	r := &reference{before: map[string]bool{}, after: map[string]bool{}, states: map[string]string{}}
	r.root = newRefFrame(g, "", refState{}.with(input...))
	return r
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

// resume ends the interrupts, gives what failed a new budget, and runs.
func (r *reference) resume() *reference {
	r.root.release(r.status == checkpoint.StatusFailed)
	return r.run()
}

func (f *refFrame) release(again bool) {
	f.held = nil
	for _, t := range f.open {
		switch {
		case t.phase == refWaits && t.inner == nil:
			t.phase, t.passed = refToRun, true
		case t.phase == refFailed && again && !f.follows(t.Name):
			t.phase = refToRun
		}
		if t.inner != nil {
			t.inner.release(again)
		}
	}
}

// advance runs a frame until it ends. It fails if a visit did whose failure nobody
// follows; it is stuck if something in it waits, or can't be merged.
func (r *reference) advance(f *refFrame) (failed, stuck bool) {
	for len(f.held) == 0 {
		if f.open == nil && !r.begin(f) {
			return false, false
		}
		for _, t := range f.open {
			taskFailed, taskStuck := r.visit(f, t)
			failed, stuck = failed || taskFailed, stuck || taskStuck
		}
		if failed || stuck || !r.end(f) {
			return failed, stuck || r.fault && !failed
		}
	}
	return false, true
}

// begin opens the superstep of all nodes that are ready; false if there are none.
func (r *reference) begin(f *refFrame) bool {
	for i, n := range f.g.Nodes {
		if f.nodes[i].phase != refToRun {
			continue
		}
		settled, taken := f.joins(n.After)
		if settled && taken {
			f.open = append(f.open, &refTask{nodeSpec: n, path: f.path + n.Name})
		} else if settled {
			f.nodes[i].phase = refSkipped
		}
	}
	f.step++
	return f.open != nil
}

// joins says whether all edges have settled, and whether they are taken together. Build
// has seen to it that edges without a word exclude each other or are taken together.
func (f *refFrame) joins(edges []edgeSpec) (settled, taken bool) {
	settled, some := true, 0
	for _, e := range edges {
		s, t := f.edge(e)
		settled = settled && s
		if t {
			some++
		}
	}
	if settled && some != 0 && some != 1 && some != len(edges) {
		panic(fmt.Sprintf("the frame %q joins %d of %d edges", f.path, some, len(edges)))
	}
	return settled, some > 0 || len(edges) == 0
}

func (f *refFrame) edge(e edgeSpec) (settled, taken bool) {
	if e.Op == "" {
		t := f.nodes[e.Node]
		want := refDone
		if e.Failed {
			want = refFailed
		}
		return t.phase != refToRun, t.phase == want && (len(e.On) == 0 || slices.Contains(e.On, t.outcome))
	}
	settled, taken = true, e.Op == "all"
	for _, of := range e.Of {
		s, t := f.edge(of)
		settled = settled && s
		if t != taken {
			taken = e.Op == "any"
		}
	}
	return settled, taken
}
