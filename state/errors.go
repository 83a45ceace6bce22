package state

import (
	"errors"
	"fmt"
)

var (
	// ErrOverflow: a [Sum] left the range of its type, or became NaN or infinite.
	ErrOverflow = errors.New("state: a sum overflows")
	// ErrUTF8: a string holds invalid UTF-8, which JSON can't bring back.
	ErrUTF8 = errors.New("state: invalid UTF-8")
	// ErrDepth: JSON is nested too deeply: a written value deeper than [MaxDepth].
	ErrDepth = errors.New("state: JSON is nested too deeply")
	// ErrSchema: an image and a delta belong to different schemas.
	ErrSchema = errors.New("state: the delta belongs to another schema")
)

// A ConflictError says that two visits of one superstep wrote to a cell in a way that
// does not merge.
type ConflictError struct {
	Cell   string
	Key    string    // of a Map, or the element of a Set as JSON; "" if the whole cell
	Visits [2]string // in declaration order
}

func (e *ConflictError) Error() string {
	what := fmt.Sprintf("cell %q", e.Cell)
	if e.Key != "" {
		what = fmt.Sprintf("key %q of cell %q", e.Key, e.Cell)
	}
	return fmt.Sprintf("state: %q and %q write to %s in one superstep, and these writes don't merge: "+
		"let one follow the other, or give the cell a type that merges",
		e.Visits[0], e.Visits[1], what)
}

// An EncodeError says that a written value can't be stored. The cell kept the value it
// had before.
type EncodeError struct {
	Cell string
	Err  error
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("state: cell %q: a written value can't be stored: %v", e.Cell, e.Err)
}

func (e *EncodeError) Unwrap() error { return e.Err }

// An AssignError says that a cell, or the struct around it, was assigned to: what was assigned
// is lost.
type AssignError struct {
	Cell string
}

func (e *AssignError) Error() string {
	return fmt.Sprintf("state: cell %q was assigned to: write to it with its methods", e.Cell)
}

// A DecodeError is what a read panics with when the stored JSON does not fit the Go type.
type DecodeError struct {
	Type string // the Go type
	Err  error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("state: a stored value does not fit %s: %v", e.Type, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// An ApplyError says that a delta does not fit the image it was applied to, or that a
// sum overflows.
type ApplyError struct {
	Cell string
	Err  error
}

func (e *ApplyError) Error() string { return fmt.Sprintf("state: cell %q: %v", e.Cell, e.Err) }

func (e *ApplyError) Unwrap() error { return e.Err }

// A ParseError says that JSON is no state, or no delta, of a schema.
type ParseError struct {
	Cell   string // "" if no cell is at fault
	Offset int    // in bytes, of where reading stopped
	Err    error
}

func (e *ParseError) Error() string {
	if e.Cell == "" {
		return fmt.Sprintf("state: at byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("state: cell %q: at byte %d: %v", e.Cell, e.Offset, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }
