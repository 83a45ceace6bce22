package dispatcher

import (
	"encoding/json"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A pending is an interrupt that has not ended.
type pending struct {
	id     string
	t      *task
	kind   string
	key    string
	ask    checkpoint.Interrupt
	wanted *state.Type // of ask.Want; nil as long as nobody has asked

	decodes func(json.RawMessage) error // see dag.AskCall.Fits; nil also if another process has asked
}

// The kinds of interrupts: see [InterruptKind].
const (
	kindBefore = "before"
	kindAfter  = "after"
	kindAsked  = "asked"
	kindEffect = "effect" // an effect inside the visit needs an approval
	kindDoubt  = "doubt"  // nobody knows what came of an effect inside the visit
)

// want is the type of the answer that an asked interrupt waits for.
func (p *pending) want() (state.Type, error) {
	if p.wanted == nil {
		t, err := parse(p.ask.Want, plainType)
		if err != nil {
			return t, err
		}
		p.wanted = &t
	}
	return *p.wanted, nil
}

// tells is want for callers, who may change what they get; it is the zero Type if nothing is
// wanted.
func (p *pending) tells() state.Type {
	t, err := p.want()
	if err == nil && (t.Key != nil || t.Elem != nil || t.Fields != nil) {
		t = state.Type{}
		err = json.Unmarshal(p.ask.Want, &t)
	}
	if err != nil {
		return state.Type{}
	}
	return t
}
