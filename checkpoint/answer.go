package checkpoint

import (
	"encoding/json"
	"time"
)

// An Answer is the Data of an [Answered] entry: how an interrupt ended that waited for one.
type Answer struct {
	// Value is the answer: of an asked interrupt what the node gets, of any other "approve" or
	// "reject". There is none if the question was skipped, or expired without a default.
	Value json.RawMessage `json:"value,omitempty"`
	How   string          `json:"how"`          // answered, skipped, expired or default
	By    string          `json:"by,omitempty"` // who did it, if somebody has said so
	// At is when it was given, which is not later than the entry. If nobody did in time it is when
	// the question ended, by the clock that says until when it waits.
	At time.Time `json:"at"`
	// Reason is why, if somebody has said so.
	Reason string `json:"reason,omitempty"`
	// Message is the id under which it was given, if it has one: the run takes one answer under it.
	Message string `json:"message,omitempty"`
	// Unfollowed is that of a [FailedAttempt], if the answer rejects a visit before it runs again.
	Unfollowed bool `json:"unfollowed,omitempty"`
}

// How an interrupt was answered.
const (
	AnswerGiven   = "answered" // somebody gave the value
	AnswerSkipped = "skipped"  // somebody said that there will be none
	AnswerExpired = "expired"  // nobody did in time, and the question has no default
	AnswerDefault = "default"  // nobody did in time, and the value is the question's default
)

// Known reports whether the answer is one that this version knows.
func (a *Answer) Known() bool {
	switch a.How {
	case AnswerGiven, AnswerDefault:
		return len(a.Value) > 0
	case AnswerSkipped, AnswerExpired:
		return len(a.Value) == 0
	}
	return false
}
