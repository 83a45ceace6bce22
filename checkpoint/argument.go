package checkpoint

import (
	"context"

	"github.com/pawlgo/pawl/internal/misuse"
)

// An ArgumentError says which argument a call can't do without. Nothing has happened.
type ArgumentError struct {
	// Call is Export, Import, Verify, Runs, List, Acquire, Append, Fork, Trim, NewKey, NewKeyring,
	// badgerstore.Open or "a call of a store"
	Call     string
	Argument string
	Reason   string // what is wrong with it, and what to give
}

func (e *ArgumentError) Error() string {
	return "checkpoint: " + e.Call + ": the " + e.Argument + " " + e.Reason
}

// CheckContext returns the error of a ctx that is done, and an [*ArgumentError] for one that is
// nil: what a store checks before a call begins.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return &ArgumentError{aCall, "context", misuse.NoContext}
	}
	return ctx.Err()
}

// aCall is one that may be any of a store's.
const aCall = "a call of a store"

// needs refuses what Export and Import can't do without. way is the reader or the writer.
func needs(ctx context.Context, call string, s Store, argument string, way any) error {
	switch {
	case ctx == nil:
		return &ArgumentError{call, "context", misuse.NoContext}
	case misuse.Missing(s):
		return &ArgumentError{call, "store", "is nil: open one"}
	case misuse.Missing(way):
		return &ArgumentError{call, argument, "is nil: open a file"}
	}
	return nil
}
