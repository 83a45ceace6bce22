package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// An effect is what is known of one effect of a visit. It never changes: attempts hold it.
type effect struct {
	digest string // of its input
	state  effectState
	output []byte // effectEnded
	why    string // effectNotDone, effectLost
	begun  time.Time
	// approval is the interrupt that approved of it when it was last begun; "" is none.
	approval string
	// generation of the run in which it began: its key is of that one. It stays while nobody
	// knows whether the effect happened, however often it begins again.
	generation int
	// at is the path that its visit had then, if a migration has renamed it since.
	at string
	// anew is the head of the log at which a rewind found that what came of it was trimmed, so that
	// it is in doubt anew; 0 is none. What was said of the doubt before is not said of this one.
	anew uint64

	// What follows is for people, and for resolutions. Attempts leave it out.
	attempt  int
	want     json.RawMessage // type of the output
	input    json.RawMessage // effectBegun: later on only the log has it
	took     time.Duration
	resolved bool   // somebody has said what happened
	by       string // who that was
	reused   string // the run that did it, if a fork has taken what it returned there
	checkpoint.DeclaredEffect
}

type effectState uint8

const (
	effectBegun   effectState = iota + 1 // and whether it has happened is not known
	effectEnded                          // it happened, and this is its output
	effectNotDone                        // it did not happen
	effectLost                           // it happened, and its output could not be kept
)

// The effects of a visit are found by its path, not in its task: they stay when the visit,
// or a frame around it, is voided and runs again under the same path. Only when a superstep
// of the run's own frame has ended can no visit in it run again, and its effects go.

// effectBegun records that an effect of a visit begins.
func (m *machine) effectBegun(x *fact) error {
	var b checkpoint.BegunEffect
	if err := json.Unmarshal(x.Data, &b); err != nil {
		return err
	}
	was := m.effects[x.Path][x.ID]
	if was != nil && (was.state == effectEnded || was.state == effectLost) {
		return fmt.Errorf("effect %q of visit %q has ended and can't begin", x.ID, x.Path)
	}
	if err := x.t.spend(x.ID, b.Approval, was); err != nil {
		return err
	}
	m.setEffect(x, was.begin(&b, x.Attempt, m.generationOf(x.Path)))
	for t := x.t; t != nil; t = t.frame.holder {
		if t.isItem() {
			t.rare().entered = true
		}
	}
	return nil
}

// begin is what becomes of an effect, which may be nil, that begins in a generation of the run.
func (was *effect) begin(b *checkpoint.BegunEffect, attempt, generation int) *effect {
	if was != nil && was.state == effectBegun {
		generation = was.generation
	}
	return &effect{
		digest: b.Digest, state: effectBegun, begun: b.At, approval: b.Approval, generation: generation,
		attempt: attempt, want: slices.Clone(b.Output), input: slices.Clone(b.Input), DeclaredEffect: b.DeclaredEffect,
	}
}

// effectEnded records what came of an effect, or what somebody says came of it. Then the visit
// waits for it no more.
func (m *machine) effectEnded(x *fact) error {
	var end checkpoint.EndedEffect
	if err := json.Unmarshal(x.Data, &end); err != nil {
		return err
	}
	begun := m.effects[x.Path][x.ID]
	if begun == nil || begun.state != effectBegun {
		return fmt.Errorf("effect %q of visit %q has not begun and can't end", x.ID, x.Path)
	}
	if x.t == nil && (!end.Resolved || !m.meets(x.Path)) {
		return fmt.Errorf("no visit %q is open", x.Path)
	}
	m.setEffect(x, begun.end(&end))
	if end.Resolved {
		m.resolved(x.t, x.ID)
	}
	return nil
}

// end is what becomes of an effect that was begun.
func (was *effect) end(end *checkpoint.EndedEffect) *effect {
	e := *was
	e.input, e.took, e.resolved, e.by, e.reused = nil, end.Took, end.Resolved, end.By, end.Reused
	switch {
	case end.NotDone != "":
		e.state, e.why = effectNotDone, end.NotDone
	case end.Lost != "":
		e.state, e.why = effectLost, end.Lost
	default:
		e.state, e.output = effectEnded, slices.Clone(end.Output)
	}
	return &e
}

func (m *machine) setEffect(x *fact, e *effect) {
	if m.effects == nil {
		m.effects = map[string]map[string]*effect{}
	}
	of := m.effects[x.Path]
	if of == nil {
		of = map[string]*effect{}
		m.effects[x.Path] = of
	}
	of[x.ID] = e
}

// A frozenEffect is an effect in a snapshot.
type frozenEffect struct {
	Digest string          `json:"digest"`
	State  effectState     `json:"state"`
	Output json.RawMessage `json:"output,omitempty"`
	Why    string          `json:"why,omitempty"`
	Begun  time.Time       `json:"begun"`
	// Approval is the id of the interrupt that approved of it when it was last begun.
	Approval   string          `json:"approval,omitempty"`
	Generation int             `json:"generation,omitempty"`
	At         string          `json:"at,omitempty"`
	Anew       uint64          `json:"anew,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Want       json.RawMessage `json:"want,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Took       time.Duration   `json:"took,omitempty"`
	Resolved   bool            `json:"resolved,omitempty"`
	By         string          `json:"by,omitempty"`
	Reused     string          `json:"reused,omitempty"`
	checkpoint.DeclaredEffect
}

func (e *effect) freeze() frozenEffect {
	return frozenEffect{
		e.digest, e.state, e.output, e.why, e.begun, e.approval, e.generation, e.at, e.anew,
		e.attempt, e.want, e.input, e.took, e.resolved, e.by, e.reused, e.DeclaredEffect,
	}
}

func (z *frozenEffect) thaw() *effect {
	return &effect{
		z.Digest, z.State, z.Output, z.Why, z.Begun, z.Approval, z.Generation, z.At, z.Anew,
		z.Attempt, z.Want, z.Input, z.Took, z.Resolved, z.By, z.Reused, z.DeclaredEffect,
	}
}

func (m *machine) freezeEffects() map[string]map[string]frozenEffect {
	var z map[string]map[string]frozenEffect
	for path, of := range m.effects {
		if z == nil {
			z = make(map[string]map[string]frozenEffect, len(m.effects))
		}
		z[path] = make(map[string]frozenEffect, len(of))
		for key, e := range of {
			z[path][key] = e.freeze()
		}
	}
	return z
}

func (m *machine) thawEffects(z map[string]map[string]frozenEffect) {
	for path, of := range z {
		for key, e := range of {
			m.setEffect(&fact{Path: path, extra: &extra{ID: key}}, e.thaw())
		}
	}
}
