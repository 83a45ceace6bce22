package dag

import "time"

// A Policy says how the attempts of a visit are made. The zero Policy is one attempt
// without a time limit. On an [Each] it is the policy of each of its items.
type Policy struct {
	// Attempts is how many attempts a visit has before it fails. Zero means 1.
	Attempts int
	// Timeout is when the context of an attempt ends: an error that the function then returns is a
	// failed attempt of kind [FailedTimeout]. A function that ignores its context is waited for,
	// since what it does beside a second attempt would be done twice, and if it returns nil it is
	// done. What bounds a call in any case is its own context, with dispatcher.Options.Grace. Zero
	// means no limit.
	Timeout time.Duration
	// Backoff is the wait between attempts. Zero means none. Without Attempts there is one, and no
	// wait.
	Backoff Backoff
	// Retry says which errors that the function returned are worth another attempt. It is not asked
	// about a panic, a runtime.Goexit, an outcome that is not declared and a value that can't be
	// stored: with a Retry these are final. Whatever it says, what another attempt would find again
	// is final: an effect is in doubt, denied or refused, or what was kept of it is of another
	// type, the visit is denied, or a question has expired or was skipped. Nil means every other
	// failure is worth one. Without Attempts there is one attempt, whatever it says.
	Retry func(error) bool
	// Parallel is how many items of an [Each] or [EachGraph] may be at work at once. One
	// between two attempts is at work, one that waits for a person is not. Zero means all
	// of them. Other nodes have none.
	Parallel int
	// Errors says what comes of an [Each] or [EachGraph] one of whose items has failed. One that
	// has begun keeps what it began with, whatever a later version of the program says: an Edit
	// that names it in Void, or a Rewind to before it, has it begin anew. Zero means [Stop]. Other
	// nodes have none.
	Errors Errors
	// Access is what the function does to the world outside the run, its effects apart: they
	// declare their own. Zero declares nothing, and counts as [Writes].
	Access Access
}

// Errors says what comes of an [Each] one of whose items has failed for good.
type Errors uint8

const (
	// Stop: no further item begins, those that have begun finish, and the Each fails. If that is
	// followed, what the items before the first failed one wrote counts, and nothing of those
	// behind it, whether they have finished or not: it does not depend on which was quicker. What
	// these did outside is done, so whoever has to make up for it collects.
	Stop Errors = iota
	// Collect: all other items run, and the Each ends well. What follows it learns of the
	// failures from [Failures].
	Collect
)
