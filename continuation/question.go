package continuation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// version of questions and envelopes.
const version = 1

// A question is what the interrupt of a wait keeps of it: the Question of a checkpoint.Interrupt.
// In every version it is known by Version and Of: a node may ask something of its own that has a
// number as its member continuation.
type question struct {
	Version     int             `json:"continuation"`
	Name        string          `json:"name"`
	Attempt     int             `json:"attempt"`       // of the visit
	Level       int             `json:"level"`         // it has expired so often, and once more is this
	Levels      int             `json:"levels"`        // how often it is asked at most
	Ask         json.RawMessage `json:"ask,omitempty"` // what is asked of people
	Of          []alternative   `json:"of"`            // what ends it
	MaxFailures int             `json:"maxFailures"`
}

// An alternative is one of the triggers that end a wait.
type alternative struct {
	Kind      Kind          `json:"kind"`
	Key       string        `json:"key,omitempty"` // "" is the id of the wait
	Authority dag.Authority `json:"authority"`
	Within    time.Duration `json:"within,omitempty"` // nanoseconds; only if it ends before the wait does
	Until     time.Time     `json:"until,omitzero"`   // the same as an instant
	Safe      bool          `json:"safe,omitempty"`
	Feeds     bool          `json:"feeds,omitempty"` // a denial, to the node
}

// about is what a trigger is for: what was asked of people, and what may end the wait. In another
// program, or by another clock, its bounds may be other ones.
func (q *question) about() any {
	type trigger struct {
		Kind Kind   `json:"kind"`
		Key  string `json:"key,omitempty"`
	}
	about := struct {
		Ask json.RawMessage `json:"ask,omitempty"`
		Of  []trigger       `json:"of"`
	}{Ask: q.Ask}
	for i := range q.Of {
		about.Of = append(about.Of, trigger{q.Of[i].Kind, q.Of[i].Key})
	}
	return about
}

// digest is that of what a trigger is for, however JSON says it.
func (q *question) digest() string {
	raw, _ := json.Marshal(q.about()) // of what was decoded
	sum := sha256.Sum256(value(raw))
	return hex.EncodeToString(sum[:16])
}

// about is the digest of what a trigger for the ask is for, "" if the log does not tell.
func (a *ask) about() string {
	if a.lost {
		return a.letter.Trigger.Of.About
	}
	return a.q.digest()
}

// same reports whether a trigger for one of the asks would be one for the other, as far as anybody
// knows.
func (a *ask) same(b *ask) bool {
	x, y := a.about(), b.about()
	return x == y || x == "" || y == ""
}

// question is what is asked at a level, in an attempt of the visit.
func (w *Wait) question(name string, attempt, level int) (*question, error) {
	q := &question{Version: version, Name: name, Attempt: attempt, Level: level, Levels: w.levels(), MaxFailures: w.failures()}
	asked := w.at(level)
	if w.Question != nil {
		raw, err := state.Encode(&w.Question)
		if err != nil {
			return nil, &ArgumentError{"wait " + name, "has a question that JSON can't say: " + err.Error()}
		}
		q.Ask = raw
	}
	members := asked.members()
	for i := range members {
		m := &members[i]
		a := alternative{
			Kind: m.kind(), Key: m.Key, Authority: m.authority(), Safe: m.SafeToAutoExecute, Feeds: m.OnDeny == Feed,
		}
		if w.parts != nil && m.kind() != KindTimer {
			a.Within = m.Within
			if !m.Until.IsZero() {
				a.Until = m.Until.UTC().Round(0)
			}
		}
		q.Of = append(q.Of, a)
	}
	return q, nil
}

// parseQuestion reads the question of an interrupt. ok is false if no wait asked it.
func parseQuestion(raw json.RawMessage) (q *question, ok bool, err error) {
	var head struct {
		Version *int `json:"continuation"`
		Of      []struct {
			Kind Kind `json:"kind"`
		} `json:"of"`
	}
	if json.Unmarshal(raw, &head) != nil || head.Version == nil || len(head.Of) == 0 || head.Of[0].Kind == "" {
		return nil, false, nil // a node has asked it, which may use the word for something of its own
	}
	if *head.Version != version {
		return nil, false, fmt.Errorf("%w: a wait of version %d, and this program knows %d", checkpoint.ErrVersion, *head.Version, version)
	}
	q = &question{}
	if json.Unmarshal(raw, q) != nil {
		return nil, false, nil
	}
	return q, true, nil
}

// An Actor is who pulls a trigger.
type Actor struct {
	ID        string        `json:"id,omitempty"`
	Authority dag.Authority `json:"authority"`
}

// A Decision is what an approval comes to.
type Decision string

// The decisions.
const (
	Approved Decision = "approved"
	Denied   Decision = "denied"
)

// taken is the trigger that a wait was ended by, as the answer of its interrupt keeps it.
type taken struct {
	ID       string    `json:"id,omitempty"` // "" if the dispatcher did it: a wake, or a default
	Kind     Kind      `json:"kind"`
	Key      string    `json:"key,omitempty"`
	Actor    Actor     `json:"actor,omitzero"`
	At       time.Time `json:"at,omitzero"`
	Decision Decision  `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Feeds    bool      `json:"feeds,omitempty"`
	Missed   time.Time `json:"missed,omitzero"` // of a wake: from here on it is missed
	Of       whose     `json:"of,omitzero"`     // of a trigger
}

// A whose says which wait a trigger has ended: a log that was trimmed may have lost what it asked.
type whose struct {
	Wait        string `json:"wait"`
	Path        string `json:"path"`
	Name        string `json:"name"`
	MaxFailures int    `json:"maxFailures"`
	About       string `json:"about,omitempty"`   // the digest of what the trigger is for; not in logs of old
	Attempt     int    `json:"attempt,omitempty"` // of the visit, that has asked for it; not in logs of old
}

// An envelope is the answer of an interrupt of which a node wants an A.
type envelope[A any] struct {
	Trigger taken `json:"trigger"`
	Payload A     `json:"payload,omitempty"`
}

// A letter is an envelope whose payload is not read.
type letter struct {
	Trigger taken           `json:"trigger"`
	Payload json.RawMessage `json:"payload,omitempty"`
}
