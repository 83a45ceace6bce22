package dag

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a visit decides, learns, is blocked by and takes for granted is said by the functions below.
// They make notes (see [Note]) of these names, from which package record makes the record of a run.
// Saying something again under an id replaces what was said before.
const (
	NoteDecision  = "record.decision"
	NoteLearning  = "record.learning"
	NoteBlocker   = "record.blocker"
	NoteInvariant = "record.invariant"
)

func reserved(name string) bool {
	return strings.HasPrefix(name, "pawl.") || strings.HasPrefix(name, "record.")
}

// A DecisionStatus says how firm a decision is.
type DecisionStatus string

const (
	Tentative DecisionStatus = "tentative" // it may change soon
	Accepted  DecisionStatus = "accepted"  // it holds
	Rejected  DecisionStatus = "rejected"  // it was considered, and does not hold
	Contested DecisionStatus = "contested" // authors disagree
)

// An Authority is a kind of author.
type Authority string

const (
	Human  Authority = "human"  // a person
	Agent  Authority = "agent"  // a program that decides, such as a language model
	System Authority = "system" // a program that follows rules
)

// A Decision is a choice that was made, and why.
type Decision struct {
	ID          string         `json:"id"`
	Description string         `json:"description"`
	Rationale   string         `json:"rationale,omitempty"`
	Status      DecisionStatus `json:"status,omitempty"`     // zero means Accepted
	Confidence  float64        `json:"confidence,omitempty"` // 0 to 1; zero means that nothing is said
	// Alternatives are what was not chosen.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	Affects      []string      `json:"affects,omitempty"` // ids of goals, paths of nodes
	// OverridableBy says who may choose otherwise later; none means nobody.
	OverridableBy []Authority `json:"overridableBy,omitempty"`
}

// An Alternative is what was not chosen, and why not.
type Alternative struct {
	Description string `json:"description"`
	Reason      string `json:"reason,omitempty"`
}

// A Learning is something that was found out.
type Learning struct {
	ID         string  `json:"id"`
	Content    string  `json:"content"`
	Source     string  `json:"source,omitempty"`     // where it comes from
	Confidence float64 `json:"confidence,omitempty"` // 0 to 1; zero means that nothing is said
}

// A Blocker is an obstacle to the task.
type Blocker struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Severity    string `json:"severity,omitempty"`
	Needs       string `json:"needs,omitempty"` // what would remove it
	Resolved    bool   `json:"resolved,omitempty"`
}

// An Invariant is what has to stay true while the task goes on.
type Invariant struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Check       string `json:"check,omitempty"` // how somebody can find out
}

// Decide notes a decision of the visit.
func Decide(ctx context.Context, d Decision) error {
	d.Status = cmp.Or(d.Status, Accepted)
	about := fmt.Sprintf("decision %q", d.ID)
	known := []DecisionStatus{Tentative, Accepted, Rejected, Contested}
	if !slices.Contains(known, d.Status) {
		return &ArgumentError{"Decide", about, fmt.Sprintf("has a status of %q: give it one of %q", d.Status, known)}
	}
	for _, a := range d.OverridableBy {
		if !slices.Contains([]Authority{Human, Agent, System}, a) {
			return &ArgumentError{"Decide", about, fmt.Sprintf("can be overridden by %q: name human, agent or system", a)}
		}
	}
	further := append([]string{d.Rationale}, d.Affects...)
	for _, a := range d.Alternatives {
		further = append(further, a.Description, a.Reason)
	}
	if err := said("Decide", about, d.ID, d.Description, d.Confidence, further...); err != nil {
		return err
	}
	return note(ctx, "Decide", NoteDecision, d)
}

// Learn notes something that the visit has found out.
func Learn(ctx context.Context, l Learning) error {
	if err := said("Learn", fmt.Sprintf("learning %q", l.ID), l.ID, l.Content, l.Confidence, l.Source); err != nil {
		return err
	}
	return note(ctx, "Learn", NoteLearning, l)
}

// Block notes an obstacle, or, with Resolved, that one is gone.
func Block(ctx context.Context, b Blocker) error {
	if err := said("Block", fmt.Sprintf("blocker %q", b.ID), b.ID, b.Description, 0, b.Severity, b.Needs); err != nil {
		return err
	}
	return note(ctx, "Block", NoteBlocker, b)
}

// Require notes what has to stay true from here on.
func Require(ctx context.Context, i Invariant) error {
	if err := said("Require", fmt.Sprintf("invariant %q", i.ID), i.ID, i.Description, 0, i.Check); err != nil {
		return err
	}
	return note(ctx, "Require", NoteInvariant, i)
}

// said checks what every such note has. Further texts may be empty.
func said(call, about, id, text string, confidence float64, further ...string) error {
	switch {
	case slices.ContainsFunc(append(further, id, text), func(s string) bool { return !utf8.ValidString(s) }):
		return &ArgumentError{call, about, "holds a text that is no UTF-8: encode it, if it is no text"}
	case id == "":
		return &ArgumentError{call, about, "has no id: give it one"}
	case text == "":
		return &ArgumentError{call, about, "says nothing"}
	case !(confidence >= 0 && confidence <= 1):
		return &ArgumentError{call, about, fmt.Sprintf("has a confidence of %v: give it one from 0 to 1", confidence)}
	}
	return nil
}
