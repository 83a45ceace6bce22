package dag

import "time"

// A Policy says how the attempts of a visit are made. The zero Policy is one attempt
// without a time limit. On an [Each] it is the policy of each of its items.
type Policy struct {
	// Attempts is how many attempts a visit has before it fails. Zero means 1.
	Attempts int
	// Timeout is how long an attempt may take: then its context ends, and an error that the
	// function returns after that is a failed attempt of kind [FailedTimeout]. If the function
	// returns nil, it is done. A function that ignores its context is waited for, since a second
	// attempt beside it would do things twice. What bounds a call in any case is its own context,
	// with dispatcher.Options.Grace. Zero means no limit.
	Timeout time.Duration
	// Backoff is the wait between attempts. Zero means none. Without Attempts there is only one
	// attempt, and no wait.
	Backoff Backoff
	// Retry says which errors of the function are worth another attempt. Nil means every one that
	// is not final. Without Attempts there is one attempt, whatever Retry says.
	//
	// These are final, whatever Retry says, because another attempt would find the same:
	//
	//   - an effect in doubt, denied or refused, or whose kept output is of another type;
	//   - a visit that is denied;
	//   - a question that has expired or was skipped.
	//
	// A Retry is not asked about a panic, a runtime.Goexit, an outcome that is not declared and a
	// value that can't be stored; with a Retry that is not nil these are final too.
	Retry func(error) bool
	// Parallel is how many items of an [Each] or [EachGraph] may be at work at once. An item
	// between two attempts is at work; one that waits for a person is not. Zero means all of them.
	// For other nodes it has to be zero.
	Parallel int
	// Errors says what becomes of an [Each] or [EachGraph] when an item has failed. Zero means
	// [Stop]. A node that has begun keeps the value it began with, even under a later version of
	// the program, until an Edit that names it in Void or a Rewind to before it has it begin anew.
	// For other nodes it has to be zero.
	Errors Errors
	// Access is what the function does to the world outside the run, its effects apart: they
	// declare their own. Zero declares nothing, and counts as [Writes].
	Access Access
}

// Errors says what comes of an [Each] one of whose items has failed for good.
type Errors uint8

const (
	// Stop: no further item begins, those that have begun finish, and the Each fails. If somebody
	// follows that failure, the writes of the items before the first failed one count. Nothing of
	// the items behind it counts, finished or not, so that it does not matter which was quicker.
	// What those did outside has been done; if something has to make up for it, use Collect.
	Stop Errors = iota
	// Collect: all other items run, and the Each ends well. What follows it learns of the failures
	// from [Failures]; if nothing follows it, events alone tell of them.
	Collect
)
