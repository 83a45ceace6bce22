package supervisor

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDraining: the supervisor takes no runs any more, or has not begun this one.
	ErrDraining = errors.New("supervisor: draining: submit it in the next process")
	// ErrQueueFull: too many runs wait already. See [QueueError].
	ErrQueueFull = errors.New("supervisor: queue is full")
	// ErrUnknownGraph: none of the supervisor's runners is of the run's graph, or takes it by a
	// migration.
	ErrUnknownGraph = errors.New("supervisor: no runner of this graph")
	// ErrOtherStore: the dispatcher has no store, or another one than the supervisor.
	ErrOtherStore = errors.New("supervisor: the dispatcher has another store: make both with the same one")
	// ErrWithdrawn: the run was withdrawn before it had its turn. See [Task.Withdraw].
	ErrWithdrawn = errors.New("supervisor: withdrawn")
	// ErrStuck: a Drain has ended, and runs are still at work, or have left nodes that had not
	// returned.
	ErrStuck = errors.New("supervisor: runs did not end in time")
)

// A QueueError says why a run was not queued. errors.Is finds [ErrQueueFull].
type QueueError struct {
	Run, Key string
	Waiting  int // runs that wait: of the key if PerKey, else all
	PerKey   bool
}

func (e *QueueError) Error() string {
	if e.PerKey {
		return fmt.Sprintf("supervisor: run %q: queue is full: %d runs of %q wait: come again later, or raise Options.PerKey",
			e.Run, e.Waiting, e.Key)
	}
	return fmt.Sprintf("supervisor: run %q: queue is full: %d runs wait: come again later, or raise Options.Queue",
		e.Run, e.Waiting)
}

func (e *QueueError) Unwrap() error { return ErrQueueFull }

// An OptionError says what [New], or another call, can't accept: a nil dispatcher, say.
type OptionError struct {
	Option, Reason string
}

func (e *OptionError) Error() string { return "supervisor: " + e.Option + " " + e.Reason }

// A RunError says why a run could not be recovered, and is still in the store as it was; why a
// submission was refused; or why the result of a submission is not that of its run. Err is, or
// wraps:
//
//   - dispatcher.ErrBusy: the run waits or is at work already, as one of Graph;
//   - [ErrOtherStore]: the dispatcher has another store or none;
//   - [ErrUnknownGraph]: no runner is of Graph;
//   - what the dispatcher refuses the options of a submission with, whatever the run is, as a
//     *dispatcher.OptionError;
//   - of a call of [Go] that worked on another run, an error that names that and wraps nothing;
//   - of a run that could not be recovered, whatever kept it from going on.
type RunError struct {
	Run, Graph string
	Err        error
}

func (e *RunError) Error() string {
	if e.Graph == "" { // as of a run that is damaged
		return fmt.Sprintf("supervisor: run %q: %s", e.Run, plain(e.Err))
	}
	return fmt.Sprintf("supervisor: run %q of graph %q: %s", e.Run, e.Graph, plain(e.Err))
}

func (e *RunError) Unwrap() error { return e.Err }

// A passedOn is an error of another package, told under the name of this one alone.
type passedOn struct{ err error }

func (e *passedOn) Error() string { return "supervisor: " + plain(e.err) }

func (e *passedOn) Unwrap() error { return e.err }

// plain is the text of an error without the package that it comes from.
func plain(err error) string {
	text := fmt.Sprint(err)
	for _, prefix := range []string{"supervisor: ", "dispatcher: ", "checkpoint: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
