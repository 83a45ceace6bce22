package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/pawlgo/pawl/dag"
)

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
	m.status, m.steps, m.fault, m.seen, m.answered, m.waits = z.Status, z.Steps, nil, nil, 0, nil
	m.told = told{z.Labels, z.Correlation, z.Settings}
	m.tags, m.depends = maps.Clone(z.Tags), maps.Clone(z.Depends)
	if z.Fault != nil {
		m.fault = &fault{z.Fault.Kind, z.Fault.Message, z.Fault.Stack}
	}
	for _, id := range z.Seen {
		m.see(id)
	}
	m.effects = nil
	m.thawEffects(z.Effects)
	m.generation, m.vacated, m.renames = z.Generation, z.Vacated, z.Renames
	m.lineage, m.voids, m.shelf, m.fresh = z.Lineage, z.Voids, z.Shelf.thaw(), z.Fresh
	root, err := m.thaw(z.Root, m.plan, nil)
	m.root = root
	return err
}

func (m *machine) thaw(z *frozenFrame, plan *dag.Plan, holder *task) (*frame, error) {
	f, err := m.thawBare(z, plan, holder)
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
func (m *machine) thawBare(z *frozenFrame, plan *dag.Plan, holder *task) (f *frame, err error) {
	if err := z.fits(holder); err != nil {
		return nil, err
	}
	switch {
	case z.Items != nil:
		f = newItems(holder, z.Items.Items)
	case holder == nil:
		f = m.newRoot()
		f.open = z.Open
	default:
		f = newFrame(plan, z.Path, holder)
		f.open = z.Open
	}
	f.iteration, f.step, f.base, f.next, f.refused = z.Iteration, z.Step, z.Base, z.Next, z.Refused
	f.salvaged = z.Salvaged
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
		if int(t.at) >= len(f.open) {
			return fmt.Errorf("visit %q is not open", t.path())
		}
		d, err := f.plan.Schema.ParseDelta(z.Delta)
		if err != nil {
			return err
		}
		f.put(t, d)
	}
	o := odd{
		attempts: z.Attempts, budget: z.Budget, notBefore: z.NotBefore, wait: z.Wait,
		failure: z.Failure, unfollowed: z.Unfollowed, passed: z.Passed, approved: z.Approved,
		grants: z.Grants, entered: z.Entered, answers: z.Answers, collected: z.Collected,
	}
	if o.asks, err = m.thawPendings(z.Asks, f); err != nil {
		return err
	}
	for key, a := range o.answers {
		if a == nil {
			return fmt.Errorf("visit %q has no answer to %q", t.path(), key)
		}
	}
	if !o.none() {
		t.odd, t.frame.odds = &o, true
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
