package record

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/misuse"
)

var (
	// ErrNotFound: there is no such record, version, or item of a record.
	ErrNotFound = checkpoint.ErrNotFound
	// ErrExists: there is a record of this id.
	ErrExists = checkpoint.ErrExists
	// ErrConflict: the record has a newer version. See [ConflictError].
	ErrConflict = checkpoint.ErrConflict
	// ErrAuthority: whoever did this may not. See [RefusedError].
	ErrAuthority = errors.New("record: not authorized")
	// ErrSettled: it was answered, approved, denied or decided before, and stays so. See
	// [RefusedError].
	ErrSettled = errors.New("record: settled before")
	// ErrBlocked: a question is open that has to be answered or skipped before. See [RefusedError].
	ErrBlocked = errors.New("record: a question is open")
	// ErrExpired: the answer comes too late. See [RefusedError].
	ErrExpired = errors.New("record: expired")
	// ErrNotApproved: nobody has approved of the resume point. See [RefusedError].
	ErrNotApproved = errors.New("record: not approved")
	// ErrProof: a proof does not show what it was asked for.
	ErrProof = errors.New("record: the proof does not hold")
)

// An InvalidError tells all that is wrong with a record at once. Nothing has changed.
type InvalidError struct {
	ID       string // "" if it could not be read
	Problems []string
}

func (e *InvalidError) Error() string {
	if e.ID == "" {
		return "record: this is no record: " + strings.Join(e.Problems, "; ")
	}
	return fmt.Sprintf("record: record %q is not valid: %s", e.ID, strings.Join(e.Problems, "; "))
}

func (r *Record) invalid(problems ...string) error {
	e := &InvalidError{Problems: problems}
	if r != nil {
		e.ID = r.ID
	}
	return e
}

// An ArgumentError says which argument a call can't do without. Nothing has happened.
type ArgumentError struct {
	Call, Argument string
	Reason         string // what is wrong with it, and what to give
}

func (e *ArgumentError) Error() string {
	return "record: " + e.Call + ": the " + e.Argument + " " + e.Reason
}

// A ConflictError says that a change was made to a version that is not the last one. Nothing has
// changed. errors.Is finds [ErrConflict].
type ConflictError struct {
	ID     string
	Parent string  // the content hash that was given
	Head   *Record // the last version, to decide again on
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("record: record %q is at %.12s, not at %.12s: look at Head, and decide again",
		e.ID, e.Head.ContentHash, e.Parent)
}

func (e *ConflictError) Unwrap() error { return ErrConflict }

// A RefusedError says what can't be done to an item of a record. Nothing has changed.
type RefusedError struct {
	ID     string
	Item   string // "question q", "decision d", "resume point p"
	Reason string // and the way out
	Err    error  // ErrAuthority, ErrSettled, ErrBlocked, ErrExpired, ErrNotApproved or ErrNotFound
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("record: record %q: %s: %s", e.ID, e.Item, e.Reason)
}

func (e *RefusedError) Unwrap() error { return e.Err }

func (r *Record) refuse(item string, err error, format string, args ...any) error {
	return &RefusedError{ID: r.ID, Item: item, Reason: fmt.Sprintf(format, args...), Err: err}
}

// A BrokenError says that the versions of a record are not whole, so that nothing can be built
// on them. Nothing has changed. errors.Is finds checkpoint.ErrCorrupt.
type BrokenError struct {
	ID      string
	Version int // the earliest one that is broken, counted from 1; 0 if that is not known
	Reason  string
}

func (e *BrokenError) Error() string {
	at := ""
	if e.Version > 0 {
		at = fmt.Sprintf(" at version %d", e.Version)
	}
	return fmt.Sprintf("record: record %q is broken%s: %s: go on from a copy, or create another from a version before",
		e.ID, at, e.Reason)
}

func (e *BrokenError) Unwrap() error { return checkpoint.ErrCorrupt }

// A MergeError tells what has to be decided before two records can be merged. Nothing has changed.
type MergeError struct {
	Conflicts []Conflict
}

func (e *MergeError) Error() string {
	told := make([]string, 0, 3)
	for _, c := range e.Conflicts[:min(len(e.Conflicts), 3)] {
		told = append(told, c.String())
	}
	if more := len(e.Conflicts) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	conflicts := "conflicts"
	if len(e.Conflicts) == 1 {
		conflicts = "conflict"
	}
	return fmt.Sprintf("record: %d %s: %s: prefer one of the two, or change one",
		len(e.Conflicts), conflicts, strings.Join(told, "; "))
}

// called refuses what no call can do without.
func (l *Ledger) called(ctx context.Context, call string) error {
	switch {
	case l == nil || l.store == nil:
		return &ArgumentError{call, "Ledger", "is nil or the zero Ledger: make it with NewLedger"}
	case ctx == nil:
		return &ArgumentError{call, "context", misuse.NoContext}
	}
	return nil
}
