package dispatcher

import (
	"encoding/json"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A pending is an interrupt that has not ended.
type pending struct {
	id   string
	t    *task
	kind string
	key  string
	ask  checkpoint.Interrupt
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
	var t state.Type
	err := json.Unmarshal(p.ask.Want, &t)
	return t, err
}
