package continuation

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/dag"
)

var (
	// ErrNotFound: there is no such wait. See [NotFoundError].
	ErrNotFound = errors.New("continuation: no such wait")
	// ErrTerminal: the wait has ended. See [TerminalError].
	ErrTerminal = errors.New("continuation: wait has ended")
	// ErrTaken: another trigger was accepted. See [TakenError].
	ErrTaken = errors.New("continuation: wait has its trigger")
)

// An ArgumentError says which argument can't be. Nothing has happened.
type ArgumentError struct {
	What, Reason string
}

func (e *ArgumentError) Error() string { return "continuation: " + e.What + " " + e.Reason }

// A NotFoundError says that no wait is addressed so, or not yet, or that there is no run of this
// id. Nothing has changed.
type NotFoundError struct {
	Address string // what was looked for
	Run     string // the id, if it is the run that there is not
}

func (e *NotFoundError) Error() string {
	if e.Run != "" {
		return fmt.Sprintf("continuation: there is no run %q of this graph", e.Run)
	}
	return fmt.Sprintf("continuation: there is no wait of %s: List tells what there is", e.Address)
}

// Is finds [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// A TerminalError says that a wait has ended, and how. Nothing has changed.
type TerminalError struct {
	Wait, Run string // Wait is "" if the run as a whole is meant
	Status    Status
	Reason    Reason
}

func (e *TerminalError) Error() string {
	if e.Wait == "" {
		return fmt.Sprintf("continuation: run %q is %s (%s): begin a new one", e.Run, e.Status, e.Reason)
	}
	then := "begin a new run, or a turn of it"
	if e.Status == StatusSuperseded {
		then = "List tells what has come instead"
	}
	return fmt.Sprintf("continuation: wait %s of run %q is %s (%s): %s", e.Wait, e.Run, e.Status, e.Reason, then)
}

// Is finds [ErrTerminal].
func (e *TerminalError) Is(target error) bool { return target == ErrTerminal }

// An ExpiredError says that a trigger came too late: the wait has expired, once, whoever was the
// first to see it; or its timer has woken; or the part of an [Any] that the trigger is for is over,
// and the wait goes on for the others. errors.Is finds dag.ErrExpired.
type ExpiredError struct {
	Wait, Run string
	Until     time.Time // from here on it was too late
	// Kind and Key are those of that part, or of that timer. Kind is "" if the wait has expired as
	// a whole.
	Kind Kind
	Key  string
}

func (e *ExpiredError) Error() string {
	what, at := fmt.Sprintf("wait %s of run %q", e.Wait, e.Run), e.Until.UTC().Format(time.RFC3339Nano)
	switch e.Kind {
	case "":
		return fmt.Sprintf("continuation: %s has expired at %s", what, at)
	case KindTimer:
		return fmt.Sprintf("continuation: the trigger came too late: the timer of %s has woken at %s", what, at)
	}
	return fmt.Sprintf("continuation: the part of %s that waits for %s with the key %q has expired at %s, and the others go on", what, e.Kind, e.Key, at)
}

func (e *ExpiredError) Unwrap() error { return dag.ErrExpired }

// A MismatchError says that a trigger is not the one that a wait is for. Nothing has changed, and
// no attempt was used up.
type MismatchError struct {
	Wait, Run string
	Reason    string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("continuation: the trigger does not match wait %s of run %q: %s", e.Wait, e.Run, e.Reason)
}

// An AuthorityError says that whoever pulled the trigger may not. Nothing has changed.
type AuthorityError struct {
	Wait, Run string
	Needs     dag.Authority
	Actor     Actor
}

func (e *AuthorityError) Error() string {
	return fmt.Sprintf("continuation: wait %s of run %q needs the authority %q, and %q has %q", e.Wait, e.Run, e.Needs, e.Actor.ID, e.Actor.Authority)
}

// An AttemptsError says that the wait was resumed as often as it may be. Nothing has changed.
type AttemptsError struct {
	Wait, Run string // Wait is "" if a trim has dropped what the run has waited for
	Max       int
}

func (e *AttemptsError) Error() string {
	if e.Wait == "" {
		return fmt.Sprintf("continuation: run %q, of which a trim has dropped what it waited for, was resumed in vain %d times: look at the run, then Stop it, or go on with the dispatcher's Resume",
			e.Run, e.Max)
	}
	return fmt.Sprintf("continuation: wait %s of run %q was resumed in vain %d times: look at the run, then Stop it, or go on with the dispatcher's Resume",
		e.Wait, e.Run, e.Max)
}

// A TakenError says that another trigger was accepted for a wait. Nothing has changed.
type TakenError struct {
	Wait, Run string
	// Trigger is the id of that one; "" if the log does not tell it, or the wait was answered by
	// the dispatcher's Answer
	Trigger string
}

func (e *TakenError) Error() string {
	if e.Trigger == "" {
		return fmt.Sprintf("continuation: wait %s of run %q has its trigger", e.Wait, e.Run)
	}
	return fmt.Sprintf("continuation: wait %s of run %q has its trigger, %q", e.Wait, e.Run, e.Trigger)
}

// Is finds [ErrTaken].
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// A PayloadError says that what came with a trigger is not what the node wants. Nothing has
// changed.
type PayloadError struct {
	Wait, Run string
	Err       error
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("continuation: the payload for wait %s of run %q is refused: %s", e.Wait, e.Run, plain(e.Err))
}

func (e *PayloadError) Unwrap() error { return e.Err }

// A DeliveryError says that a follow-up could not be brought. [Runtime.Serve] tells of it; the log
// keeps it.
type DeliveryError struct {
	Run, Key string
	Tries    int  // with this one
	Final    bool // it is not tried again
	Err      error
}

func (e *DeliveryError) Error() string {
	then := "it is tried again"
	if e.Final {
		then = "it was the last try"
	}
	return fmt.Sprintf("continuation: the follow-up %s of run %q failed, try %d, %s: %v", e.Key, e.Run, e.Tries, then, e.Err)
}

func (e *DeliveryError) Unwrap() error { return e.Err }

// An Ended is what [Await] returns of a wait that ended without a trigger to go on with. A node
// handles it or returns it: then the visit fails, without another attempt, and its failure can be
// followed. errors.Is finds dag.ErrExpired, dag.ErrDenied, or dag.ErrSkipped for any other reason.
type Ended struct {
	Name   string
	Reason Reason
	Why    string // what was said about it
}

func (e *Ended) Error() string {
	text := fmt.Sprintf("continuation: wait %q ended: %s", e.Name, e.Reason)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

func (e *Ended) Unwrap() error {
	switch e.Reason {
	case Expired:
		return dag.ErrExpired
	case ApprovalDenied:
		return dag.ErrDenied
	}
	return dag.ErrSkipped
}
