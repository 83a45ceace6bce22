package dispatcher

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A frozenMachine is a machine as a snapshot holds it: all of it, and nothing that
// follows from the rest.
type frozenMachine struct {
	Graph  string            `json:"graph"` // digest of the graph whose nodes it numbers
	Status checkpoint.Status `json:"status"`
	Turn   int               `json:"turn"`
	Steps  int               `json:"steps,omitempty"`
	Fault  *frozenFault      `json:"fault,omitempty"`
	Seen   []string          `json:"seen,omitempty"`
	Root   *frozenFrame      `json:"root"` // before it no JSON of others, and no other view: see encode

	Labels      map[string]string     `json:"labels,omitempty"`
	Correlation string                `json:"correlation,omitempty"`
	Settings    json.RawMessage       `json:"settings,omitempty"`
	Tags        map[string]uint64     `json:"tags,omitempty"`
	Depends     map[string]dependence `json:"depends,omitempty"`
	// Effects by path and key.
	Effects map[string]map[string]frozenEffect `json:"effects,omitempty"`

	Generation int            `json:"generation,omitempty"`
	Vacated    map[string]int `json:"vacated,omitempty"`
	Renames    renames        `json:"renames,omitempty"`
	Lineage    []ancestor     `json:"lineage,omitempty"`
	Voids      []voided       `json:"voids,omitempty"`
	Shelf      *frozenShelf   `json:"shelf,omitempty"`
	// Fresh are rejections since the run failed, as an edit, or a change of its graph, may find
	// them.
	Fresh []string `json:"fresh,omitempty"`
	// Kept is no part of the machine, but what the log told of a checkpoint that was kept for its
	// name. Nor is Reached, the last turn that a run was in which was rewound, and then trimmed up
	// to here.
	Kept    *frozenPast `json:"kept,omitempty"`
	Reached int         `json:"reached,omitempty"`
}

type frozenFault struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Stack   []byte `json:"stack,omitempty"`
}

type frozenFrame struct {
	Path      string          `json:"path,omitempty"`
	Iteration int             `json:"iteration,omitempty"`
	Step      int             `json:"step,omitempty"`
	Base      int             `json:"base,omitempty"`
	View      json.RawMessage `json:"view,omitempty"`  // the same before this one
	Outer     json.RawMessage `json:"outer,omitempty"` // a delta
	Open      []int32         `json:"open,omitempty"`
	Next      []int32         `json:"next,omitempty"`
	Done      []int           `json:"done,omitempty"`    // first, last, first, last…: with nothing more to say
	Skipped   []int           `json:"skipped,omitempty"` // the same
	Tasks     []frozenTask    `json:"tasks,omitempty"`   // the others that are not idle
	After     []frozenPending `json:"after,omitempty"`
	Refused   *dag.Failure    `json:"refused,omitempty"`
	// Salvaged is not told by earlier versions, which void a visit of such a frame alone.
	Salvaged bool         `json:"salvaged,omitempty"`
	Items    *frozenItems `json:"items,omitempty"`
	Ready    []int        `json:"ready,omitempty"` // of items: as Done
}

// A frozenItems makes a frozenFrame one of items. While they are open they all are. The state
// is left out while it is that of the frame around it.
type frozenItems struct {
	checkpoint.Items
	Open bool `json:"open,omitempty"`
}

type frozenTask struct {
	Node      int             `json:"node"`
	Phase     phase           `json:"phase"`
	Outcome   string          `json:"outcome,omitempty"`
	Delta     json.RawMessage `json:"delta,omitempty"`
	Inner     *frozenFrame    `json:"inner,omitempty"`
	Attempts  int             `json:"attempts,omitempty"`
	Budget    int             `json:"budget,omitempty"`
	NotBefore int64           `json:"not_before,omitempty"`
	Wait      time.Duration   `json:"wait,omitempty"`
	Failure   *dag.Failure    `json:"failure,omitempty"`
	Passed    bool            `json:"passed,omitempty"`
	// Unfollowed is that of the failure.
	Unfollowed bool              `json:"unfollowed,omitempty"`
	Grants     map[string]grant  `json:"grants,omitempty"`
	Entered    bool              `json:"entered,omitempty"`
	Approved   approvals         `json:"approved,omitempty"`
	Asks       []frozenPending   `json:"asks,omitempty"`
	Answers    map[string]*heard `json:"answers,omitempty"`
	Collected  []dag.Failure     `json:"collected,omitempty"`
}

type frozenPending struct {
	ID   string               `json:"id"`
	Node int                  `json:"node"`
	Ask  checkpoint.Interrupt `json:"ask"`
}

// encode returns the machine as JSON: the same bytes for the same machine.
func (m *machine) encode() []byte {
	z := m.frozen()
	view := z.Root.View
	if view == nil {
		return encode(z)
	}
	z.Root.View = json.RawMessage("0")
	return splice(encode(z), "view", view) // the first key of that name
}

// frozen is the machine as encode writes it. It shares the machine's memory.
func (m *machine) frozen() *frozenMachine {
	z := &frozenMachine{
		Graph: m.plan.Digest, Status: m.status, Turn: m.turn, Steps: m.steps,
		Seen: slices.Sorted(maps.Keys(m.seen)), Root: m.root.freeze(),
	}
	z.Labels, z.Correlation, z.Settings = m.told.labels, m.told.correlation, m.told.settings
	z.Tags, z.Depends, z.Effects = m.tags, m.depends, m.freezeEffects()
	z.Generation, z.Vacated, z.Renames = m.generation, m.vacated, m.renames
	z.Lineage, z.Voids, z.Shelf, z.Fresh = m.lineage, m.voids, m.shelf.freeze(), m.fresh
	if m.fault != nil {
		z.Fault = &frozenFault{m.fault.kind, m.fault.message, m.fault.stack}
	}
	return z
}

func (f *frame) freeze() *frozenFrame {
	z := &frozenFrame{
		Path: f.path, Iteration: f.iteration, Step: f.step, Base: f.base, Next: f.next, Refused: f.refused,
		Salvaged: f.salvaged, After: f.freezePendings(f.after),
	}
	if f.items != nil {
		z.Items = &frozenItems{checkpoint.Items{Count: len(f.tasks), Digest: f.items.digest, Collect: f.items.collect}, len(f.open) > 0}
	} else {
		z.Open = f.open
	}
	if !f.sharesView() {
		z.View = f.view.AppendJSON(nil)
	}
	if !f.outer.IsZero() && z.View != nil {
		d, err := f.outer.Delta()
		if err != nil {
			panic("dispatcher: what a loop recorded can't be encoded: " + err.Error())
		}
		z.Outer = d.AppendJSON(nil)
	}
	for i := range f.tasks {
		switch t := &f.tasks[i]; {
		case !t.odd.none() || t.outcome != "": // thaw makes none of an odd that says nothing
			z.Tasks = append(z.Tasks, t.freeze(i))
		case t.phase == done:
			z.Done = extend(z.Done, i)
		case t.phase == skipped:
			z.Skipped = extend(z.Skipped, i)
		case t.phase == ready && t.isItem():
			z.Ready = extend(z.Ready, i)
		case t.phase != idle:
			z.Tasks = append(z.Tasks, t.freeze(i))
		}
	}
	return z
}

// unmerged is about what a snapshot holds of items that are done, while their Each is not: they are
// as alive as the state that they are to be merged with, and not worth a snapshot before that.
func (f *frame) unmerged() (bytes int) {
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.inner != nil {
			bytes += t.inner.unmerged()
		}
		if f.items != nil && (t.phase == finished || t.phase == lapsed) {
			bytes += f.delta(t).Size() + entryOverhead
		}
	}
	return bytes
}

// sharesView reports whether the frame is one of items whose state is that of the frame
// around it.
func (f *frame) sharesView() bool {
	return f.items != nil && len(f.open) > 0 && f.failing == 0 && !f.salvaged
}

// extend adds i, which is greater than any before, to a list of ranges.
func extend(ranges []int, i int) []int {
	if n := len(ranges); n > 0 && ranges[n-1] == i-1 {
		ranges[n-1] = i
		return ranges
	}
	return append(ranges, i, i)
}

func (t *task) freeze(i int) frozenTask {
	z := frozenTask{Node: i, Phase: t.phase, Outcome: t.outcome}
	if t.phase == finished || t.phase == lapsed {
		z.Delta = t.wrote().AppendJSON(nil)
	}
	if t.inner != nil {
		z.Inner = t.inner.freeze()
	}
	if o := t.odd; o != nil {
		if o.woken {
			z.Phase = delayed // as a replay has it
		}
		z.Attempts, z.Budget, z.NotBefore, z.Wait = o.attempts, o.budget, o.notBefore, o.wait
		z.Failure, z.Passed, z.Approved, z.Asks = o.failure, o.passed, o.approved, t.frame.freezePendings(o.asks)
		z.Collected, z.Unfollowed = o.collected, o.unfollowed
		z.Answers, z.Grants, z.Entered = o.answers, o.freezeGrants(), o.entered
	}
	return z
}

func (f *frame) freezePendings(all []*pending) []frozenPending {
	var z []frozenPending
	for _, p := range all {
		i := int(p.t.at)
		if f.items == nil {
			i = slices.IndexFunc(f.plan.Nodes, func(n dag.PlanNode) bool { return n.Name == p.t.node.Name })
		}
		z = append(z, frozenPending{p.id, i, p.ask})
	}
	return z
}
