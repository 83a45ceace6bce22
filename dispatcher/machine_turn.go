package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// beginTurn makes new input part of the state of a completed run, whose graph runs again
// from its roots. Visits, attempts, failures and budgets begin anew, and so does the count
// of supersteps that is limited. The supersteps of the run's own frame count on, so that no
// two of its checkpoints have the same number.
func (m *machine) beginTurn(x *fact, was checkpoint.Status) error {
	var t checkpoint.Turn
	if err := json.Unmarshal(x.Data, &t); err != nil {
		return err
	}
	if was != checkpoint.StatusCompleted || t.Number != m.turn+1 {
		return fmt.Errorf("turn %d can't begin: the run is %s in turn %d", t.Number, was, m.turn)
	}
	last := m.root
	f := newFrame(m.plan, "", nil)
	f.view, f.spare = last.view, last.spare
	f.step, f.base = last.step, last.step
	m.root, m.turn, m.steps, m.fault, m.depends = f, t.Number, 0, nil, nil
	if m.shelf != nil {
		m.shelf.begun(m.turn)
	}
	return f.given(x)
}

// unfinished says how a run that is not completed is brought to its end.
func (m *machine) unfinished() string {
	switch {
	case m.status == checkpoint.StatusFailed && m.deadEnd():
		return "it would only fail again: go back with Rewind"
	case m.status == checkpoint.StatusInterrupted && slices.ContainsFunc(m.pendings(), (*pending).asks):
		return "Answer what it waits for, and bring it to its end with Resume"
	case m.status == checkpoint.StatusFailed:
		return "bring it to its end with Resume, behind an Edit if it would fail again, or go back with Rewind"
	}
	return "bring it to its end with Resume"
}
