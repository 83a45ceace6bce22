package checkpoint

import (
	"context"
	"reflect"
)

// An ArgumentError says which argument a call can't do without. Nothing has happened.
type ArgumentError struct {
	Call     string // Export, Import, Verify, Fork, Trim, Append, NewKey, NewKeyring or badgerstore.Open
	Argument string
	Reason   string // what is wrong with it, and what to give
}

func (e *ArgumentError) Error() string {
	return "checkpoint: " + e.Call + ": the " + e.Argument + " " + e.Reason
}

// needs refuses what Export and Import can't do without. way is the reader or the writer.
func needs(ctx context.Context, call string, s Store, argument string, way any) error {
	switch {
	case ctx == nil:
		return &ArgumentError{call, "context", "is nil: use context.Background() if nothing is to end the call"}
	case missing(s):
		return &ArgumentError{call, "store", "is nil: open one"}
	case missing(way):
		return &ArgumentError{call, argument, "is nil: open a file"}
	}
	return nil
}

// missing reports whether there is nothing, or a nil pointer, behind an interface.
func missing(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}
