package record

import (
	"fmt"
	"reflect"
	"strings"
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

// missing reports whether there is nothing, or a nil pointer, behind an interface.
func missing(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}
