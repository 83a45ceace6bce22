package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
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
	Root   *frozenFrame      `json:"root"`

	Labels      map[string]string     `json:"labels,omitempty"`
	Correlation string                `json:"correlation,omitempty"`
	Settings    json.RawMessage       `json:"settings,omitempty"`
	Tags        map[string]uint64     `json:"tags,omitempty"`
	Depends     map[string]dependence `json:"depends,omitempty"`
	// Effects by path and key.
	Effects map[string]map[string]frozenEffect `json:"effects,omitempty"`

	Generation int          `json:"generation,omitempty"`
	Lineage    []ancestor   `json:"lineage,omitempty"`
	Shelf      *frozenShelf `json:"shelf,omitempty"`
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
	View      json.RawMessage `json:"view,omitempty"`
	Outer     json.RawMessage `json:"outer,omitempty"` // a delta
	Open      []int32         `json:"open,omitempty"`
	Next      []int32         `json:"next,omitempty"`
	Done      []int           `json:"done,omitempty"`    // first, last, first, last…: with nothing more to say
	Skipped   []int           `json:"skipped,omitempty"` // the same
	Tasks     []frozenTask    `json:"tasks,omitempty"`   // the others that are not idle
	After     []frozenPending `json:"after,omitempty"`
	Refused   *dag.Failure    `json:"refused,omitempty"`
	Items     *frozenItems    `json:"items,omitempty"`
	Ready     []int           `json:"ready,omitempty"` // of items: as Done
}

// A frozenItems makes a frozenFrame one of items. While they are open they all are. The state
// is left out while it is that of the frame around it.
type frozenItems struct {
	checkpoint.Items
	Open bool `json:"open,omitempty"`
}

type frozenTask struct {
	Node      int                          `json:"node"`
	Phase     phase                        `json:"phase"`
	Outcome   string                       `json:"outcome,omitempty"`
	Delta     json.RawMessage              `json:"delta,omitempty"`
	Inner     *frozenFrame                 `json:"inner,omitempty"`
	Attempts  int                          `json:"attempts,omitempty"`
	Budget    int                          `json:"budget,omitempty"`
	NotBefore int64                        `json:"not_before,omitempty"`
	Wait      time.Duration                `json:"wait,omitempty"`
	Failure   *dag.Failure                 `json:"failure,omitempty"`
	Passed    bool                         `json:"passed,omitempty"`
	Grants    map[string]grant             `json:"grants,omitempty"`
	Entered   bool                         `json:"entered,omitempty"`
	Approved  approvals                    `json:"approved,omitempty"`
	Asks      []frozenPending              `json:"asks,omitempty"`
	Answers   map[string]checkpoint.Answer `json:"answers,omitempty"`
	Collected []dag.Failure                `json:"collected,omitempty"`
}

type frozenPending struct {
	ID   string               `json:"id"`
	Node int                  `json:"node"`
	Ask  checkpoint.Interrupt `json:"ask"`
}

// encode returns the machine as JSON: the same bytes for the same machine.
func (m *machine) encode() []byte { return encode(m.frozen()) }

// frozen is the machine as encode writes it. It shares the machine's memory.
func (m *machine) frozen() *frozenMachine {
	z := &frozenMachine{
		Graph: m.plan.Digest, Status: m.status, Turn: m.turn, Steps: m.steps,
		Seen: slices.Sorted(maps.Keys(m.seen)), Root: m.root.freeze(),
	}
	z.Labels, z.Correlation, z.Settings = m.told.labels, m.told.correlation, m.told.settings
	z.Tags, z.Depends, z.Effects = m.tags, m.depends, m.freezeEffects()
	z.Generation, z.Lineage, z.Shelf = m.generation, m.lineage, m.shelf.freeze()
	if m.fault != nil {
		z.Fault = &frozenFault{m.fault.kind, m.fault.message, m.fault.stack}
	}
	return z
}

func (f *frame) freeze() *frozenFrame {
	z := &frozenFrame{
		Path: f.path, Iteration: f.iteration, Step: f.step, Base: f.base, Next: f.next, Refused: f.refused,
		After: f.freezePendings(f.after),
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
		case t.odd != nil || t.outcome != "":
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

// sharesView reports whether the frame is one of items whose state is that of the frame
// around it.
func (f *frame) sharesView() bool { return f.items != nil && len(f.open) > 0 && f.failing == 0 }

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
		z.Collected = o.collected
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

// parseMachine reads what encode has written.
func parseMachine(data []byte) (*frozenMachine, error) {
	z := &frozenMachine{}
	if err := json.Unmarshal(data, z); err != nil {
		return nil, err
	}
	if z.Root == nil {
		return nil, fmt.Errorf("it holds no frame")
	}
	return z, nil
}

// thawAll makes m the machine that was frozen, under the plan of its graph.
func (m *machine) thawAll(z *frozenMachine) error {
	if z.Graph != m.plan.Digest {
		return fmt.Errorf("it is of graph %s, not %s", z.Graph, m.plan.Digest)
	}
	m.turn = z.Turn
	m.status, m.steps, m.fault, m.seen, m.waits = z.Status, z.Steps, nil, nil, nil
	m.told = told{z.Labels, z.Correlation, z.Settings}
	m.tags, m.depends = maps.Clone(z.Tags), maps.Clone(z.Depends)
	if z.Fault != nil {
		m.fault = &fault{z.Fault.Kind, z.Fault.Message, z.Fault.Stack}
	}
	for _, id := range z.Seen {
		if m.seen == nil {
			m.seen = map[string]bool{}
		}
		m.seen[id] = true
	}
	m.effects = nil
	m.thawEffects(z.Effects)
	m.generation, m.lineage, m.shelf = z.Generation, z.Lineage, z.Shelf.thaw()
	root, err := m.thaw(z.Root, m.plan, nil)
	m.root = root
	return err
}

func (m *machine) thaw(z *frozenFrame, plan *dag.Plan, holder *task) (*frame, error) {
	f, err := thawBare(z, plan, holder)
	if err != nil {
		return nil, err
	}
	if err := f.thawRanges(z.Ready, ready); err != nil {
		return nil, err
	}
	if err := f.thawRanges(z.Done, done); err != nil {
		return nil, err
	}
	if err := f.thawRanges(z.Skipped, skipped); err != nil {
		return nil, err
	}
	for i := range z.Tasks {
		if err := m.thawTask(&z.Tasks[i], f); err != nil {
			return nil, err
		}
	}
	if f.after, err = m.thawPendings(z.After, f); err != nil {
		return nil, err
	}
	for _, i := range f.open {
		switch f.tasks[i].phase {
		case finished, lapsed:
		case failing:
			f.failing++
		default:
			f.left++
		}
	}
	if f.refused != nil {
		f.failing++
	}
	if f.items != nil {
		f.refind()
	}
	return f, f.sound()
}

// thawBare makes a frame without its visits.
func thawBare(z *frozenFrame, plan *dag.Plan, holder *task) (f *frame, err error) {
	if err := z.fits(holder); err != nil {
		return nil, err
	}
	if z.Items != nil {
		f = newItems(holder, z.Items.Items)
	} else {
		f = newFrame(plan, z.Path, holder)
		f.open = z.Open
	}
	f.iteration, f.step, f.base, f.next, f.refused = z.Iteration, z.Step, z.Base, z.Next, z.Refused
	for _, list := range [][]int32{f.open, f.next} {
		for k, i := range list {
			if i < 0 || int(i) >= len(f.tasks) || k > 0 && i <= list[k-1] {
				return nil, fmt.Errorf("frame %q has no nodes %v", f.path, list)
			}
		}
	}
	if z.Items != nil && z.Items.Open {
		f.openItems()
		f.left = 0 // counted again
	} else {
		f.place()
	}
	if z.Items != nil && z.View == nil {
		f.view, f.outer = holder.frame.view.Draft(), holder.frame.view.Draft()
		return f, nil
	}
	if f.view, err = f.plan.Schema.Parse(z.View); err != nil {
		return nil, err
	}
	if f.iteration > 0 || f.items != nil {
		return f, f.thawOuter(z.Outer)
	}
	return f, nil
}

// thawOuter restores what a Loop or Each has recorded.
func (f *frame) thawOuter(recorded json.RawMessage) error {
	d, err := f.plan.Schema.ParseDelta(recorded)
	if err != nil {
		return err
	}
	f.outer = f.holder.frame.view.Draft()
	return f.outer.Record(d.Recorded())
}

func (f *frame) thawRanges(ranges []int, p phase) error {
	for k := 0; k < len(ranges); k += 2 {
		if k+1 == len(ranges) || ranges[k] < 0 || ranges[k+1] >= len(f.tasks) {
			return fmt.Errorf("frame %q has no nodes %v", f.path, ranges[k:])
		}
		for i := ranges[k]; i <= ranges[k+1]; i++ {
			f.thawPhase(i, p)
		}
	}
	return nil
}

// thawPhase puts a visit in its phase. Its followers no longer wait for one that has settled.
func (f *frame) thawPhase(i int, p phase) {
	f.tasks[i].phase = p
	if p.settled() && f.items == nil {
		for _, j := range f.plan.Followers[i] {
			f.tasks[j].waits--
		}
	}
}

func (m *machine) thawTask(z *frozenTask, f *frame) error {
	if z.Node < 0 || z.Node >= len(f.tasks) || int(z.Phase) >= len(phaseNames) {
		return fmt.Errorf("frame %q has no node %d", f.path, z.Node)
	}
	t := &f.tasks[z.Node]
	f.thawPhase(z.Node, z.Phase)
	t.outcome = z.Outcome
	var err error
	if len(z.Delta) > 0 {
		if int(t.at) >= len(f.deltas) {
			return fmt.Errorf("visit %q is not open", t.path())
		}
		if f.deltas[t.at], err = f.plan.Schema.ParseDelta(z.Delta); err != nil {
			return err
		}
	}
	if z.Attempts > 0 || z.Failure != nil || z.Passed || z.Asks != nil || z.Answers != nil || z.Entered || z.Collected != nil {
		o := t.rare()
		o.attempts, o.budget, o.notBefore, o.wait = z.Attempts, z.Budget, z.NotBefore, z.Wait
		o.failure, o.passed, o.approved, o.collected = z.Failure, z.Passed, z.Approved, z.Collected
		if o.asks, err = m.thawPendings(z.Asks, f); err != nil {
			return err
		}
		o.answers, o.grants, o.entered = z.Answers, z.Grants, z.Entered
	}
	if z.Inner != nil {
		if t.node.Body == nil && z.Inner.Items == nil || (t.node.Kind == dag.KindEach) != (z.Inner.Items != nil) {
			return fmt.Errorf("visit %q holds no such frame", t.path())
		}
		t.inner, err = m.thaw(z.Inner, t.node.Body, t)
	}
	return err
}

func (m *machine) thawPendings(z []frozenPending, f *frame) ([]*pending, error) {
	var all []*pending
	for _, q := range z {
		if q.Node < 0 || q.Node >= len(f.tasks) {
			return nil, fmt.Errorf("frame %q has no node %d", f.path, q.Node)
		}
		p := &pending{id: q.ID, t: &f.tasks[q.Node], kind: q.Ask.Kind, key: q.Ask.Key, ask: q.Ask}
		if m.waits == nil {
			m.waits = map[string]*pending{}
		}
		m.waits[p.id] = p
		all = append(all, p)
	}
	return all, nil
}

// want is the type of the answer that an asked interrupt waits for.
func (p *pending) want() (state.Type, error) {
	var t state.Type
	err := json.Unmarshal(p.ask.Want, &t)
	return t, err
}
