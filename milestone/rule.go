package milestone

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A Rule says which checkpoints have a name. The zero Rule names none.
type Rule struct {
	name  string
	wrong string // what is wrong with its arguments
	judge func() judge
}

// String returns the rule's name, which its tags begin with.
func (r Rule) String() string { return r.name }

// A judge says what the next event of a run means to a rule. visit is what a visit did that counts
// when its superstep ends; checkpoint is what that event, which is a checkpoint, is.
type judge interface {
	visit(e *dispatcher.Event) (detail string, hit bool)
	checkpoint(e *dispatcher.Event) (detail string, hit bool)
}

// Every names each n-th superstep of the run's own frame: those whose number can be divided by n.
func Every(n int) Rule {
	r := Rule{name: fmt.Sprint("every ", n), judge: stateless(nil, func(e *dispatcher.Event) (string, bool) {
		return "", e.Kind == dispatcher.SuperstepEnded && e.Path == "" && e.Step%n == 0
	})}
	if n < 1 {
		r.wrong = "needs a number of supersteps, from 1"
	}
	return r
}

// Node names the checkpoint at the end of the superstep in which a visit of a node is done. The
// node is named by its path: "compose-loop/validate".
func Node(path string) Rule {
	r := Rule{name: "node " + path, judge: stateless(func(e *dispatcher.Event) (string, bool) {
		return e.Outcome, e.Kind == dispatcher.VisitDone && e.Node == path
	}, nil)}
	if path == "" {
		r.wrong = "names no node"
	}
	return r
}

// Effect names the checkpoint at the end of the superstep in which an effect of one of these
// operations has happened; none means any operation.
func Effect(operations ...string) Rule {
	of := slices.Clone(operations)
	return Rule{
		name:  strings.TrimSpace("effect " + strings.Join(of, ",")),
		judge: func() judge { return &effects{of: of, begun: map[string]string{}} },
	}
}

// Decision names the checkpoint at the end of the superstep in which a visit has decided something
// (dag.Decide).
func Decision() Rule {
	return Rule{name: "decision", judge: stateless(func(e *dispatcher.Event) (string, bool) {
		var d dag.Decision
		if e.Kind != dispatcher.Noted || e.Name != dag.NoteDecision || json.Unmarshal(e.Value, &d) != nil {
			return "", false
		}
		return d.ID, true
	}, nil)}
}

// Fork names the checkpoint that a fork begins with. The name is in the fork.
func Fork() Rule {
	return Rule{name: "fork", judge: stateless(nil, func(e *dispatcher.Event) (string, bool) {
		return "", e.Kind == dispatcher.RunStarted && e.Name != ""
	})}
}

// Recovery names the checkpoint at the end of a superstep in which something goes well that had
// failed: a visit is done of which an attempt failed before, or a run that had failed gets to the
// end of a superstep.
func Recovery() Rule {
	return Rule{name: "recovery", judge: func() judge { return &recovery{failed: map[string]bool{}} }}
}

// Change names the checkpoint at the end of each superstep of the run's own frame behind which a
// cell has another value than before. The cell is named as in the JSON of the state, with dots if
// it is in a nested struct: "Plan.Phase". If the state has no cell "state", that name means all of
// the state, as dispatcher.Dispatcher.Diff calls the cell that a state.Whole is.
//
// A cell has changed if it had nothing, or the zero value, and then has something. It has not
// changed if it has nothing but zero values behind the first superstep.
func Change(cell string) Rule {
	r := Rule{name: "change " + cell, judge: func() judge { return &change{cell: cell} }}
	if cell == "" {
		r.wrong = "names no cell"
	}
	return r
}

// Rises names the checkpoint at the end of each superstep of the run's own frame behind which a
// cell that is a number is over the threshold, and was not before.
func Rises(cell string, over float64) Rule {
	r := Rule{name: fmt.Sprintf("rises %s %g", cell, over), judge: func() judge { return &change{cell: cell, over: &over} }}
	switch {
	case cell == "":
		r.wrong = "names no cell"
	case over != over:
		r.wrong = "needs a number as its threshold"
	}
	return r
}

// plain is the judge of a rule that remembers nothing.
type plain struct {
	of, at func(*dispatcher.Event) (string, bool)
}

func stateless(of, at func(*dispatcher.Event) (string, bool)) func() judge {
	return func() judge { return plain{of, at} }
}

func (p plain) visit(e *dispatcher.Event) (string, bool) {
	if p.of == nil {
		return "", false
	}
	return p.of(e)
}

func (p plain) checkpoint(e *dispatcher.Event) (string, bool) {
	if p.at == nil {
		return "", false
	}
	return p.at(e)
}

// effects remembers of which operation effects are that have begun.
type effects struct {
	of    []string
	begun map[string]string // by path#key
}

func (f *effects) visit(e *dispatcher.Event) (string, bool) {
	id := e.Path + "#" + e.ID
	switch e.Kind {
	case dispatcher.EffectBegun:
		f.begun[id] = e.Name
	case dispatcher.EffectEnded:
		operation := f.begun[id]
		delete(f.begun, id)
		if !strings.HasPrefix(e.Cause, "not done: ") && (len(f.of) == 0 || slices.Contains(f.of, operation)) {
			return e.ID, true
		}
	}
	return "", false
}

func (f *effects) checkpoint(*dispatcher.Event) (string, bool) { return "", false }

// recovery remembers what has failed.
type recovery struct {
	failed map[string]bool // visits of which an attempt has failed
	run    bool            // the run has
}

func (r *recovery) visit(e *dispatcher.Event) (string, bool) {
	switch e.Kind {
	case dispatcher.AttemptFailed:
		r.failed[e.Path] = true
	case dispatcher.VisitDone:
		was := r.failed[e.Path]
		delete(r.failed, e.Path)
		return e.Path, was
	case dispatcher.RunRested:
		r.run = r.run || e.Status == checkpoint.StatusFailed
	case dispatcher.TurnBegun:
		clear(r.failed)
	}
	return "", false
}

// beside adds what has failed that another one knows of.
func (r *recovery) beside(o *recovery) {
	maps.Copy(r.failed, o.failed)
	r.run = r.run || o.run
}

// migrated has visits that have failed go by other names.
func (r *recovery) migrated(m *checkpoint.Migration) {
	failed := map[string]bool{}
	for path := range r.failed {
		if is, there := m.Renamed(path); there {
			failed[is] = true
		}
	}
	r.failed = failed
}

func (r *recovery) checkpoint(e *dispatcher.Event) (string, bool) {
	was := r.run && e.Kind == dispatcher.SuperstepEnded
	if was {
		r.run = false
	}
	return "", was
}

// change remembers what a cell had at the last checkpoint.
type change struct {
	cell string
	over *float64 // of Rises
	was  *value   // nil before the first checkpoint
}

// A value is what a cell has. Of its text, which may be long, it keeps the digest.
type value struct {
	sum  [sha256.Size]byte
	high bool // it is over the threshold
}

func (c *change) visit(*dispatcher.Event) (string, bool) { return "", false }

func (c *change) checkpoint(e *dispatcher.Event) (string, bool) {
	if e.State == nil {
		return "", false
	}
	cell, now := c.value(e)
	last := value{high: c.over != nil && *c.over < 0} // before the first superstep a number is 0
	switch {
	case c.was != nil:
		last = *c.was
	case empty(cell):
		last.sum = now.sum
	}
	c.was = &now
	if c.over != nil {
		return string(cell), now.high && !last.high
	}
	return plainly(cell), now.sum != last.sum
}

// begin takes the state in which a reading begins as given.
func (c *change) begin(e *dispatcher.Event) {
	_, now := c.value(e)
	c.was = &now
}

// inherit begins with the last value of the origin.
func (c *change) inherit(o *change) { c.was = o.was }

func (c *change) value(e *dispatcher.Event) (cell json.RawMessage, v value) {
	cell = lookup(e.State, c.cell)
	if cell == nil && c.cell == "state" {
		cell = e.State
	}
	var number float64
	v.high = c.over != nil && json.Unmarshal(cell, &number) == nil && number > *c.over
	v.sum = sha256.Sum256(cell)
	return cell, v
}
