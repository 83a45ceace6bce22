package dispatcher

import (
	"encoding/json"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// migrate lets the run go on with another graph. The entry says where it stands in it.
func (m *machine) migrate(x *fact) error {
	var d checkpoint.Migration
	if err := json.Unmarshal(x.Data, &d); err != nil {
		return err
	}
	if x.plan == nil || d.From != m.plan.Digest || d.To != x.plan.Digest {
		return fmt.Errorf("it goes from graph %s to %s, and the run is of %s", d.From, d.To, m.plan.Digest)
	}
	z, err := parseMachine(d.Machine)
	if err != nil {
		return err
	}
	m.plan = x.plan
	return m.thawAll(z)
}

// catchUp finds what may begin with the next superstep of a frame, and of those inside it:
// visits that have not begun and wait for nothing. Those that are not taken are skipped.
func (f *frame) catchUp() {
	f.next = f.next[:0]
	for i := range f.tasks {
		t := &f.tasks[i]
		if t.inner != nil {
			t.inner.catchUp()
		}
		if t.phase != idle || t.waits > 0 || !f.begun() || t.isItem() {
			continue
		}
		if f.taken(&t.node.Follows) {
			f.next = append(f.next, int32(i))
			continue
		}
		f.thawPhase(i, skipped)
	}
}

// check sees whether a frame stands where a run of its graph can stand: what has begun was
// taken, what was skipped was not, and all of it only when nothing before it was left.
func (c *change) check(f *frame) {
	for i := range f.tasks {
		t := &f.tasks[i]
		if t.inner != nil {
			c.check(t.inner)
		}
		switch {
		case t.phase == idle, t.isItem():
		case t.waits > 0:
			c.against("visit %s %s, and %s before it has not settled", t.path(), t.phase.tells(), f.unsettled(&t.node.Follows))
		case f.taken(&t.node.Follows) != (t.phase != skipped):
			c.against("visit %s %s, and it would not, as it follows %s", t.path(), t.phase.tells(), f.follows(t))
		}
	}
}

// unsettled names a visit of e that has not settled.
func (f *frame) unsettled(e *dag.Expr) string {
	if e.Op == dag.OpNode && !f.tasks[e.Node].phase.settled() {
		return f.tasks[e.Node].path()
	}
	for i := range e.Of {
		if path := f.unsettled(&e.Of[i]); path != "" {
			return path
		}
	}
	return ""
}

func (f *frame) follows(t *task) string {
	text, _ := named(f.plan, &t.node.Follows, nil)
	return orNothing(text)
}
