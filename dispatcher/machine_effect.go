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
	if e := m.effects[x.Path][x.ID]; e != nil && (e.state == effectEnded || e.state == effectLost) {
		return fmt.Errorf("effect %q of visit %q has ended and can't begin", x.ID, x.Path)
	}
	m.setEffect(x, &effect{digest: b.Digest, state: effectBegun, begun: b.At})
	return nil
}

// effectEnded records what came of an effect.
func (m *machine) effectEnded(x *fact) error {
	var end checkpoint.EndedEffect
	if err := json.Unmarshal(x.Data, &end); err != nil {
		return err
	}
	begun := m.effects[x.Path][x.ID]
	if begun == nil || begun.state != effectBegun {
		return fmt.Errorf("effect %q of visit %q has not begun and can't end", x.ID, x.Path)
	}
	e := *begun
	switch {
	case end.NotDone != "":
		e.state, e.why = effectNotDone, end.NotDone
	case end.Lost != "":
		e.state, e.why = effectLost, end.Lost
	default:
		e.state, e.output = effectEnded, slices.Clone(end.Output)
	}
	m.setEffect(x, &e)
	return nil
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
}

func (m *machine) freezeEffects() map[string]map[string]frozenEffect {
	var z map[string]map[string]frozenEffect
	for path, of := range m.effects {
		if z == nil {
			z = make(map[string]map[string]frozenEffect, len(m.effects))
		}
		z[path] = make(map[string]frozenEffect, len(of))
		for key, e := range of {
			z[path][key] = frozenEffect{e.digest, e.state, e.output, e.why, e.begun}
		}
	}
	return z
}

func (m *machine) thawEffects(z map[string]map[string]frozenEffect) {
	for path, of := range z {
		for key, e := range of {
			m.setEffect(&fact{Path: path, extra: &extra{ID: key}}, &effect{e.Digest, e.State, e.Output, e.Why, e.Begun})
		}
	}
}
