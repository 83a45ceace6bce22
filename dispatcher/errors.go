package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

var (
	// ErrInterrupted: the run waits for an answer or a resume.
	ErrInterrupted = errors.New("dispatcher: run is interrupted")
	// ErrBusy: the run is live. A *checkpoint.BusyError names its owner. A call that only says
	// something of a run, such as Answer or Edit, has it for a moment, and other calls wait for
	// that. A call that is to go on with the run waits up to half of Options.Grace, or 127 ms if
	// that is more, and never longer than Grace.
	ErrBusy = checkpoint.ErrBusy
	// ErrNotFound: there is no such run.
	ErrNotFound = checkpoint.ErrNotFound
	// ErrRunID: the run id is empty, too long, not UTF-8, or holds control characters; or it begins
	// with pawl.record/, as the logs of a record.Ledger do.
	ErrRunID = checkpoint.ErrRunID
	// ErrCommitUnknown: nobody can know whether the last step became durable. The next Run or
	// Resume finds out.
	ErrCommitUnknown = checkpoint.ErrCommitUnknown
	// ErrExists: a run of this id exists.
	ErrExists = checkpoint.ErrExists
	// ErrCompleted: the run is completed.
	ErrCompleted = errors.New("dispatcher: run is completed")
	// ErrNotCompleted: the run is not completed, so no turn can begin. If an earlier input came to
	// rest, the error holds the [*Rest] that tells how.
	ErrNotCompleted = errors.New("dispatcher: run is not completed")
	// ErrStaleCursor: the cursor is no longer the head of the run. The run has gone on, or was
	// answered, edited, tagged, noted or trimmed.
	ErrStaleCursor = errors.New("dispatcher: cursor is no longer the head of the run")
	// ErrStillRunning: a node or a store call that an earlier call of this Dispatcher abandoned has
	// not returned. The text names it, as Result.Abandoned did, or names the dispatcher if that was
	// still at work. To other Dispatchers the run is ErrBusy until then.
	ErrStillRunning = errors.New("dispatcher: what an earlier call abandoned has not returned")
	// ErrStuck: user code or a store call did not return within the grace period, and the run could
	// not be brought to rest. The next Run or Resume goes on from its log.
	ErrStuck = errors.New("dispatcher: did not return within the grace period")
	// ErrNoStore: the dispatcher has no store, and the call needs one.
	ErrNoStore = errors.New("dispatcher: needs a store: give New one")
	// ErrDrain, as the cause of a context's cancel, stops a run and leaves it Running without an
	// owner, for recovery, or Pending if the call has opened it and nothing of it has begun.
	// [Drain] does the same, but lets what runs finish.
	ErrDrain = errors.New("dispatcher: draining")
	// ErrTimeout: an attempt took longer than its Policy.Timeout. See [NodeError].
	ErrTimeout = errors.New("dispatcher: attempt timed out")
	// ErrNested: the state of the frame has another type than the one asked for.
	ErrNested = errors.New("dispatcher: state of another type")
)

// Moved reports whether a call with [From] was refused because the run no longer stands there. Then
// the call has done nothing, but perhaps written what waited to be heard, such as a note: read the
// run again, and decide again.
//
// The error is ErrStaleCursor if the run has an entry more. It is checkpoint.ErrCursor if another
// run has the id meanwhile and does not stand at such a cursor, so Moved can't tell that from a
// cursor that never was the run's: give From one that was read from the run.
//
// User code may return these errors too. What a node returned ([*Rest]), a hook ([*FaultError]) or
// Options.Revalidate ([*StaleError]) says nothing of the cursor, and Moved is false.
func Moved(err error) bool {
	var rest *Rest
	var fault *FaultError
	var stale *StaleError
	return (errors.Is(err, ErrStaleCursor) || errors.Is(err, checkpoint.ErrCursor)) &&
		!errors.As(err, &rest) && !errors.As(err, &fault) && !errors.As(err, &stale)
}

// Is finds ErrInterrupted, context.Canceled and context.DeadlineExceeded by the status alone,
// whatever the cause holds. It finds anything else in the cause.
func (e *Rest) Is(target error) bool {
	switch target {
	case ErrInterrupted:
		return e.Status == checkpoint.StatusInterrupted
	case context.Canceled:
		return e.Status == checkpoint.StatusCancelled
	case context.DeadlineExceeded:
		return e.Status == checkpoint.StatusTimedOut
	}
	return errors.Is(e.Cause, target)
}

// As finds what the cause holds.
func (e *Rest) As(target any) bool { return errors.As(e.Cause, target) }

// ofContext reports whether target is a context's error. Those speak of a run's status only: one
// that somebody's code returned is of something else.
func ofContext(target error) bool {
	return target == context.Canceled || target == context.DeadlineExceeded
}

// A NodeError tells how a visit failed for good.
//
// errors.Is and errors.As look into Err, but never find a context's error there: a node's own
// time-out is no deadline of the run.
type NodeError struct {
	Run     string
	Path    string // of the visit
	Attempt int    // of the last attempt
	Kind    dag.FailureKind
	Budget  time.Duration // FailedTimeout: the Policy.Timeout that passed
	Stack   []byte        // of code that panicked or called runtime.Goexit
	// Err is what the function returned or panicked with. After a restart only its text
	// is left.
	Err error
}

func (e *NodeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dispatcher: visit %s failed", e.Path)
	if e.Attempt > 1 {
		fmt.Fprintf(&b, " (attempt %d)", e.Attempt)
	}
	switch e.Kind {
	case dag.FailedPanic:
		b.WriteString(": panic")
	case dag.FailedTimeout:
		fmt.Fprintf(&b, ": timed out after %v", e.Budget)
	}
	if e.Err != nil && (e.Kind != dag.FailedTimeout || !errors.Is(e.Err, context.DeadlineExceeded)) {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Is reports whether Err is target. Besides it finds ErrTimeout if the attempt timed out,
// dag.ErrInDoubt if an effect is in doubt, and dag.ErrExpired or dag.ErrSkipped if a question ended
// so.
func (e *NodeError) Is(target error) bool {
	if ofContext(target) {
		return false
	}
	switch e.Kind { // after a restart it is all that is left of the error
	case dag.FailedTimeout:
		if target == ErrTimeout {
			return true
		}
	case dag.FailedInDoubt:
		if target == dag.ErrInDoubt {
			return true
		}
	case dag.FailedExpired:
		if target == dag.ErrExpired {
			return true
		}
	case dag.FailedSkipped:
		if target == dag.ErrSkipped {
			return true
		}
	}
	return errors.Is(e.Err, target)
}

// As finds what Err holds.
func (e *NodeError) As(target any) bool { return errors.As(e.Err, target) }

// A LimitError says which limit a run has reached.
type LimitError struct {
	Limit string // supersteps, state bytes, visit bytes, value bytes, merged bytes, decode bytes, depth, items
	Max   int
	Where string // the frame, the cell, or the visit of an Each
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("dispatcher: limit %d of %s reached", e.Max, e.Limit)
	if e.Where != "" {
		text += " by " + e.Where
	}
	if set := limitNames[e.Limit]; set != "" {
		text += " (" + set + ")"
	}
	return text
}

// limitNames are what sets limits, or is one.
var limitNames = map[string]string{
	"supersteps":   "Options.Limits.Supersteps",
	"state bytes":  "Options.Limits.StateBytes",
	"visit bytes":  "Options.Limits.VisitBytes",
	"value bytes":  "Options.Limits.ValueBytes",
	"decode bytes": "Options.Limits.DecodeBytes",
	"items":        "Options.Limits.Items",
	"depth":        "state.MaxDepth",
}

// A FaultError is a failure of a run of which no visit is the cause: of its input, of a merge, of
// the state's Check, of a hook, of a migration. The call that meets a conflict or a limit has a
// *state.ConflictError or a [*LimitError] instead; when the run is read after a restart these are a
// FaultError too.
//
// errors.Is and errors.As look into Err, but never find a context's error there, as with a
// [*NodeError].
type FaultError struct {
	// Kind is conflict, limit, input, edit, revalidate, items, merge, check, hook, migration,
	// observer, answer, call
	Kind    string
	Message string
	Stack   []byte // of user code that panicked or called runtime.Goexit
	Err     error  // what user code returned or panicked with; nil after a restart
}

// Is reports whether Err is target.
func (e *FaultError) Is(target error) bool { return !ofContext(target) && errors.Is(e.Err, target) }

// As finds what Err holds.
func (e *FaultError) As(target any) bool { return errors.As(e.Err, target) }

func (e *FaultError) Error() string { return "dispatcher: " + e.Kind + ": " + e.Message }

// An AnswerError says why an answer was refused. Nothing has changed.
type AnswerError struct {
	Run, Interrupt string
	Reason         string
	Err            error // ErrNotAwaited, ErrAmbiguous, ErrAnswerType, dag.ErrExpired or a *LimitError
}

func (e *AnswerError) Error() string {
	if e.Interrupt == "" { // it was to be the only one that waits
		return fmt.Sprintf("dispatcher: run %q: answer refused: %s", e.Run, e.Reason)
	}
	return fmt.Sprintf("dispatcher: run %q: answer to %q refused: %s", e.Run, e.Interrupt, e.Reason)
}

func (e *AnswerError) Unwrap() error { return e.Err }

var (
	// ErrNotAwaited: nobody waits for this answer. The interrupt is unknown, another run's, or has
	// ended.
	ErrNotAwaited = errors.New("dispatcher: answer is not awaited")
	// ErrAmbiguous: the answer does not say which of several interrupts it is for.
	ErrAmbiguous = errors.New("dispatcher: answer is for one of several interrupts")
	// ErrAnswerType: the answer is not of the type that was asked for.
	ErrAnswerType = errors.New("dispatcher: answer is of the wrong type")
)

// A GraphChangedError says that a run was made by another graph than the dispatcher's, and why this
// graph can't go on with it, or can't read it.
type GraphChangedError struct {
	Run     string
	Stored  string // digest of the graph that the run was made by, or went on with last
	Current string // digest of the dispatcher's
	// Migration is the name of the migration that was tried, "" if none was.
	Migration string
	// Changes are what stands in the way, each naming a visit or a cell: of an Each there may be
	// one for every item that is open. The text of the error has one for all that are alike but for
	// the numbers of iterations and items, and eight at most.
	Changes []string
}

func (e *GraphChangedError) Error() string {
	if len(e.Changes) > 0 && strings.HasPrefix(e.Changes[0], otherName) { // whatever else is in the way follows from that
		return fmt.Sprintf("dispatcher: run %q is of another graph: %s: use a dispatcher of that one, or another run id, "+
			"or, if it was renamed, a Migration whose From is %s", e.Run, e.Changes[0], e.Stored)
	}
	open := func(s string) bool { return strings.HasSuffix(s, notMerged) } // of that no State is asked
	retyped := slices.ContainsFunc(e.Changes, func(s string) bool { return strings.HasPrefix(s, ofCell) && !open(s) })
	tried, todo := "", ": use the graph that made it, or a Migration"
	switch {
	case slices.Equal(e.Changes, []string{noGraph}):
		todo = ": use the graph that made it"
	case e.Migration != "":
		tried, todo = fmt.Sprintf(", and migration %q does not fit", e.Migration), ""
		if retyped {
			todo = ": its State says what cells of another type hold, and may return what it gets if that fits"
		} else if slices.ContainsFunc(e.Changes, open) {
			todo = ": no Migration changes that: let the graph that made it go on until it is merged, " +
				"or give the node another name, and have Nodes forget this one, so that its visit begins anew"
		}
	case retyped:
		todo += " with a State, which may return what it gets if that fits the new types"
	}
	return fmt.Sprintf("dispatcher: run %q: its graph has changed from %s to %s%s: %s%s",
		e.Run, short(e.Stored), short(e.Current), tried, e.inBrief(), todo)
}

// inBrief tells the changes: the first of those that are alike, and how many these are. An Each may
// have thousands of items open.
func (e *GraphChangedError) inBrief() string {
	const most = 8
	var all []string
	kinds := make([]string, 0, len(e.Changes))
	alike := make(map[string]int, len(e.Changes))
	for _, change := range e.Changes {
		words := strings.Split(change, " ")
		for i, w := range words {
			if strings.Contains(w, "/") {
				words[i] = nodePath(strings.TrimRight(w, ",:")) + "/" // what is in no iteration is another one
			}
		}
		kind := strings.Join(words, " ")
		if alike[kind]++; alike[kind] == 1 {
			kinds, all = append(kinds, kind), append(all, change)
		}
	}
	var b strings.Builder
	for i, kind := range kinds[:min(len(kinds), most)] {
		if i > 0 {
			b.WriteString("; ")
		}
		if b.WriteString(all[i]); alike[kind] > 1 {
			fmt.Fprintf(&b, " (and %d more like it)", alike[kind]-1)
		}
	}
	if more := len(kinds) - most; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// noGraph is the change of a run that nobody but the graph that made it can read: a migration
// neither.
const noGraph = "the graph that it was made by is not in the store"

// What a change begins with that is one of the graph's name, which is the first, or of a cell; and
// ends with if that was written to and is not merged.
const (
	otherName = "its graph is "
	ofCell    = "cell "
	notMerged = " to it is not merged yet"
)

// ofOtherName is the change of a run of a graph of another name.
func ofOtherName(was, is string) string {
	return fmt.Sprintf(otherName+"%q, and the dispatcher's is %q", was, is)
}

// A storeless is [ErrNoStore] of what a node calls, or of an option.
type storeless string

func (s storeless) Error() string { return "dispatcher: " + string(s) + " " + plain(ErrNoStore) }

func (storeless) Unwrap() error { return ErrNoStore }

func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19]
	}
	return digest
}

// An ItemsChangedError says that an Each no longer has the items with which the run began it: its
// function items returns others for the same state. Nothing has changed.
type ItemsChangedError struct {
	Path    string // of the visit of the Each
	Was, Is checkpoint.Items
}

func (e *ItemsChangedError) Error() string {
	if e.Was.Count != e.Is.Count {
		return fmt.Sprintf("dispatcher: the items of %s have changed: there were %d, there are %d: %s",
			e.Path, e.Was.Count, e.Is.Count, itemsAnew)
	}
	return fmt.Sprintf("dispatcher: the items of %s have changed: their digest was %s, is %s: %s",
		e.Path, short(e.Was.Digest), short(e.Is.Digest), itemsAnew)
}

// itemsAnew is what to do about items that have changed.
const itemsAnew = "an Edit that names it in EditOptions.Void has it begin anew"

// An OptionError says which option New, or a call, can't accept. Nothing has happened.
type OptionError struct {
	Option, Reason string
}

func (e *OptionError) Error() string { return "dispatcher: " + e.Option + " " + e.Reason }

// A refusal is why a call did nothing, or could not go on. Its text names the run once.
type refusal struct {
	run string
	err error
}

func (c *core) refuse(run string, err error) error {
	if err == nil {
		return nil
	}
	return &refusal{run, err}
}

func (e *refusal) Error() string {
	text := plain(e.err)
	if strings.Contains(text, fmt.Sprintf("run %q", e.run)) {
		return "dispatcher: " + text
	}
	return fmt.Sprintf("dispatcher: run %q: %s", e.run, text)
}

func (e *refusal) Unwrap() error { return e.err }

// A passedOn is an error of another package, told under the name of this one alone.
type passedOn struct{ err error }

func (e *passedOn) Error() string { return "dispatcher: " + plain(e.err) }

func (e *passedOn) Unwrap() error { return e.err }

// ofRecords begins the ids under which package record keeps the logs of a Ledger, in the store that
// has the logs of runs too. A run of such an id would stand where a record belongs, and no
// dispatcher has the graph of a record.
const ofRecords = "pawl.record/"

// checkID refuses what can't be the id of a run.
func checkID(id string) error {
	err := checkpoint.CheckRunID(id)
	if err == nil && strings.HasPrefix(id, ofRecords) {
		err = fmt.Errorf("%w: %.64q begins with %s, as the logs of a record.Ledger do: give another one", ErrRunID, id, ofRecords)
	}
	if err != nil {
		return &passedOn{err}
	}
	return nil
}

// plain is the text of an error without the package that it comes from.
func plain(err error) string {
	text := fmt.Sprint(err)
	for _, prefix := range []string{"dispatcher: ", "checkpoint: ", "dag: ", "state: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
