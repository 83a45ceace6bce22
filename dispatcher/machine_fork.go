package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A fork begins, and a rewound run goes on, with a machine in which nothing is under way:
//
//  1. What has finished stays, in open supersteps too, and does not run again. A failure that
//     somebody follows is such an end.
//  2. What has begun and has not finished begins anew, from its first line: its attempts, what
//     it waits for, its approvals, questions and answers are gone, and so is what held a frame
//     behind a visit.
//  3. A visit whose failure nobody follows begins anew as well, unless a dag.Fail was reached:
//     then the run can do nothing but fail.
//  4. Nobody has run it yet, and it has drained no posts.
//
// What it was told from outside, its turn and its counts of supersteps stay.

// calm makes m, which was replayed up to a checkpoint, such a machine. Its effects stay.
func (m *machine) calm() {
	m.fault, m.fresh, m.seen, m.answered, m.waits = nil, nil, nil, 0, nil
	if !m.deadEnd() {
		m.renew(m.root)
	}
	m.renounce(m.root)
	m.status = checkpoint.StatusPending
}

// renounce lets every visit of f that has begun and not finished begin anew.
func (m *machine) renounce(f *frame) {
	for _, i := range f.open {
		t := &f.tasks[i]
		switch t.phase {
		case ready, delayed, held, asking:
			t.phase, t.odd = ready, nil
		case inside:
			t.odd = nil
			m.renounce(t.inner)
		case failing:
			if t.inner != nil {
				m.renounce(t.inner)
			}
		}
	}
	m.reenter(f)
	if len(f.after) > 0 {
		f.after = nil
		m.proceed(f)
	}
}

// An ancestor is a checkpoint from which a run has gone on, as a fork or rewound.
type ancestor = checkpoint.Ancestor

// fork makes m, which was replayed up to an entry of a run, what all forks of that checkpoint
// begin with, whenever and however they are made: so that a store keeps it once. What tells one
// from the other is in the logs of the forks, and on their shelves; see beginning. They have no
// tags, and know of nothing that was voided or renamed: those are of the log of that run.
func (m *machine) fork() {
	m.effects = nil // before calm: in a fork nothing has begun
	m.calm()
	m.tags, m.generation, m.lineage, m.voids, m.renames, m.shelf = nil, 0, nil, nil, nil, nil
}

// beginning is the machine that a fork begins with: that of the checkpoint, with where it comes
// from and what it may take, as its opening says. The shelf, as encode has written it, is nil if
// nothing is on it.
func beginning(o *checkpoint.Opening, base, shelf []byte) (*frozenMachine, error) {
	z, err := parseMachine(base)
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", o.Origin.Base, err)
	}
	how, err := parseEffects(o.Origin.Effects)
	if err != nil {
		return nil, err
	}
	z.Labels = o.Labels
	z.Lineage = append(slices.Clip(o.Lineage), ancestor{Run: o.Origin.Run, Seq: o.Origin.Seq})
	if how == Live {
		return z, nil
	}
	z.Shelf = &frozenShelf{How: how, Trimmed: o.Trimmed}
	if shelf == nil {
		return z, nil
	}
	if err := json.Unmarshal(shelf, &z.Shelf.Effects); err != nil {
		return nil, fmt.Errorf("base %s: %w", o.Origin.Shelf, err)
	}
	return z, nil
}

// rewound makes m, which was replayed up to an entry of a run, what that run goes on as, which
// stands at now. What it has drained since it was there stays drained, and names that were
// given to its checkpoints stay given.
func (m *machine) rewound(from ancestor, now *machine) {
	m.calm()
	m.seen, m.answered, m.tags, m.generation = now.seen, now.answered, now.tags, now.generation+1
	m.lineage = append(slices.Clip(m.lineage), from)
}

// originate begins a fork: the machine is its origin's.
func (m *machine) originate(x *fact) error {
	if x.origin == nil {
		return fmt.Errorf("the machine that the run goes on from is not at hand")
	}
	return m.thawAll(x.origin)
}

// rewind lets the run go on from an earlier checkpoint. The entry says where it stands there.
func (m *machine) rewind(x *fact) error {
	var d checkpoint.Rewinding
	if err := json.Unmarshal(x.Data, &d); err != nil {
		return err
	}
	z, err := parseMachine(d.Machine)
	switch {
	case err != nil:
		return err
	case x.plan == nil:
		return fmt.Errorf("the graph that the run is rewound to is not at hand")
	case z.Generation != m.generation+1:
		return fmt.Errorf("it begins generation %d of the run, which is in %d", z.Generation, m.generation)
	}
	if n := len(z.Lineage); n == 0 || !z.Lineage[n-1].Rewound {
		return fmt.Errorf("it does not tell where the run goes back to")
	}
	m.plan = x.plan
	if err := m.thawAll(z); err != nil {
		return err
	}
	m.lineage[len(m.lineage)-1].At = x.seq
	return nil
}
