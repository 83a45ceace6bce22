package checkpoint

import (
	"encoding/json"
	"time"
)

// A BegunEffect is the Data of an [EffectBegun] entry, which is durable before the effect is.
// An effect that was begun more often than it ended may have happened: it is in doubt, unless
// it is replayable.
type BegunEffect struct {
	Input  json.RawMessage `json:"input"`
	Digest string          `json:"digest"`           // SHA-256 of Input, in hexadecimal
	Output json.RawMessage `json:"output,omitempty"` // a state.Type: what it returns
	At     time.Time       `json:"at"`
	// Approval is the id of the interrupt that a person has approved of, which is spent by
	// this entry. One that begins again before it was known to have ended has it again.
	Approval string `json:"approval,omitempty"`
	DeclaredEffect
}

// A DeclaredEffect is what the node says of an effect, and nobody checks.
type DeclaredEffect struct {
	Operation  string   `json:"operation,omitempty"`  // what it is called on the other side
	Touches    []string `json:"touches,omitempty"`    // what it changes there
	Access     string   `json:"access,omitempty"`     // reads or writes; "" if nothing is declared
	Replayable bool     `json:"replayable,omitempty"` // it may be done again under the same key
	Reversible bool     `json:"reversible,omitempty"` // what it does can be undone there
	// Doubt is what comes of the visit if the effect is in doubt: asks or fails; "" is that
	// the node is told.
	Doubt string `json:"doubt,omitempty"`
}

// An EndedEffect is the Data of an [EffectEnded] entry. One of Output, NotDone and Lost is
// set.
type EndedEffect struct {
	Output  json.RawMessage `json:"output,omitempty"`
	NotDone string          `json:"not_done,omitempty"` // it did not happen, and this is why
	Lost    string          `json:"lost,omitempty"`     // it happened, and why its output can't be kept
	Took    time.Duration   `json:"took,omitempty"`     // nanoseconds
	// Reused is the run that did the effect, if it was not done here: a fork has taken what
	// it returned there.
	Reused string `json:"reused,omitempty"`
	// Resolved: the effect was in doubt, and somebody has said what happened. By is who, if
	// that was said as well; Interrupt is the id of the one that waited for it, if one did.
	Resolved  bool   `json:"resolved,omitempty"`
	By        string `json:"by,omitempty"`
	Interrupt string `json:"interrupt,omitempty"`
}

// A DoubtQuestion is the Question of an [Interrupt] of kind doubt: what is to be found out
// about an effect that was begun.
type DoubtQuestion struct {
	ID    string          `json:"id"` // the idempotency key that the other side was given
	Input json.RawMessage `json:"input"`
	Begun time.Time       `json:"begun"`           // the last time
	Error string          `json:"error,omitempty"` // what its function returned or panicked with, if that is known
	DeclaredEffect
}

// A Resolution is what somebody says of an effect in doubt, and the answer to an [Interrupt]
// of kind doubt. One of the two is set.
type Resolution struct {
	Happened    json.RawMessage `json:"happened,omitempty"`     // it did, and this is its output
	NotHappened string          `json:"not_happened,omitempty"` // it did not, and this is why
}
