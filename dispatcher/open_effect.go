package dispatcher

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// openEffects lists what the machine knows of effects.
func (m *machine) openEffects(id string) []OpenEffect {
	var all []OpenEffect
	for _, path := range slices.Sorted(maps.Keys(m.effects)) {
		for _, key := range slices.Sorted(maps.Keys(m.effects[path])) {
			all = append(all, m.openEffect(id, path, key))
		}
	}
	slices.SortStableFunc(all, func(a, b OpenEffect) int { return a.Begun.Compare(b.Begun) })
	at := make(map[[2]string]int, len(all))
	for i := range all {
		at[[2]string{all[i].Path, all[i].Key}] = i
	}
	for _, p := range m.pendings() {
		if p.kind == kindEffect {
			all = m.unbegun(all, at, id, p.t.path(), p.key, p.ask.Question, OpenEffect{Phase: PhaseAwaiting, Interrupt: p.id})
		}
	}
	if m.root != nil {
		m.root.eachGrant(func(t *task, key string, g grant) {
			phase := PhaseApproved
			if g.Rejected {
				phase = PhaseNotBegun
			}
			all = m.unbegun(all, at, id, t.path(), key, g.Question, OpenEffect{Phase: phase, By: g.By, Why: g.Reason})
		})
	}
	return slices.DeleteFunc(all, func(o OpenEffect) bool { return o.Path == "" })
}

// openEffect tells of an effect that has begun.
func (m *machine) openEffect(id, path, key string) OpenEffect {
	e := m.effects[path][key]
	o := OpenEffect{
		Path: path, Key: key, ID: effectID(id, m.turn, path, key, e),
		Phase: effectPhases[e.state], Declared: e.DeclaredEffect, Attempt: e.attempt, Digest: e.digest,
		Input: slices.Clone(e.input), Output: slices.Clone(e.output), Why: e.why,
		Begun: e.begun, Took: e.took, Resolved: e.resolved, By: e.by,
	}
	o.Declared.Touches = slices.Clone(o.Declared.Touches)
	_ = json.Unmarshal(e.want, &o.Want) // what it is was written by state itself
	t := m.find(path)
	if t != nil && t.doubt(key) != nil {
		o.Interrupt = t.doubt(key).id
	}
	o.InDoubt = e.inDoubt(t, key)
	return o
}

// unbegun adds an effect that needs an approval, and that somebody was asked about. One that has
// begun before, and is done again, stays what it is. o has what is known of the approval, at tells
// where in all an effect is, by path and key: one that is told of here leaves an empty one behind.
func (m *machine) unbegun(
	all []OpenEffect, at map[[2]string]int, id, path, key string, action json.RawMessage, o OpenEffect,
) []OpenEffect {
	i, known := at[[2]string{path, key}]
	if known && all[i].Phase == PhaseBegun {
		all[i].Interrupt = o.Interrupt
		return all
	}
	o.Path, o.Key, o.ID = path, key, keyOf(id, m.turn, m.generationOf(path))+path+"#"+key
	var a Action
	if json.Unmarshal(action, &a) == nil {
		o.Input, o.Declared.Operation = a.Input, a.Operation
		if a.Access.Declared() {
			o.Declared.Access = a.Access.String()
		}
	}
	if known {
		all[i] = OpenEffect{}
	}
	at[[2]string{path, key}] = len(all)
	return append(all, o)
}

// eachGrant calls yield for what was decided about effects of visits of f, and of all inside.
func (f *frame) eachGrant(yield func(*task, string, grant)) {
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.odd != nil {
			for _, key := range slices.Sorted(maps.Keys(t.odd.grants)) {
				yield(t, key, t.odd.grants[key])
			}
		}
		if t.inner != nil {
			t.inner.eachGrant(yield)
		}
	}
}

// advice says what to do about an effect.
func (e *OpenEffect) advice(m *machine, live bool) string {
	t := m.find(e.Path)
	switch {
	case e.Phase == PhaseNotBegun:
		return "Nothing to do: a person has rejected it. It is asked about again if its visit fails and the run is resumed."
	case e.Phase == PhaseAwaiting:
		return fmt.Sprintf("Answer interrupt %s with Approve or Reject: it has not begun.", e.Interrupt)
	case e.Phase == PhaseApproved:
		return "Nothing to do: it was approved, has not begun, and begins when the run goes on."
	case e.Phase == PhaseEnded && t != nil && t.phase == failing:
		return "It is not done again, and its visit gets the output that was kept. If the visit fails because it has " +
			"another input now (dag.ErrInputChanged), or wants another output (dag.ErrOutputChanged), have the node take what it was, or go back before the effect with Rewind or Fork."
	case e.Phase == PhaseEnded:
		return "Nothing to do: it is not done again, and its visit gets the output that was kept."
	case e.Phase == PhaseLost:
		return "It happened and is not done again. Its visit fails until the node handles dag.ErrOutputLost."
	case e.Phase == PhaseNotDone:
		return "Nothing to do: if its visit runs again and asks for it, it is done."
	case live && (t == nil || t.phase == ready || t.phase == delayed):
		return "The run is live: it may just be happening. Look again when the run rests."
	case !e.InDoubt:
		return "Nothing to do: it is replayable, and is done again under the same key when the run goes on, unless Resolve says what happened."
	case !m.meets(e.Path):
		return "Nothing has to be done: its visit has ended, and has decided what happened."
	}
	return e.doubtAdvice()
}

func (e *OpenEffect) doubtAdvice() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Ask the other side for %s, and say with Resolve what happened: Happened, with what it returned, "+
		"or NotHappened, and it is done when the run goes on.", e.ID)
	switch cmp.Or(e.Declared.Doubt, dag.DoubtTells.String()) {
	case dag.DoubtAsks.String():
		b.WriteString(" Its visit waits for that.")
	case dag.DoubtFails.String():
		b.WriteString(" Until then its visit fails.")
	default:
		b.WriteString(" Until then its node is told, and decides.")
	}
	if e.Declared.Reversible {
		b.WriteString(" It is declared reversible: if it can't be found out, undo it there and say NotHappened.")
	}
	return b.String()
}
