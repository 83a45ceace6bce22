package dag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// A Visit is what the context of a running node carries. Dispatchers implement it, and
// test contexts; node code calls [Key], [Attempt], [Ask], [Emit] and [Failures] instead.
type Visit interface {
	// Key is the visit's idempotency key: the same for every attempt, in every process.
	Key() string
	// Attempt counts the attempts of the visit from 1, over crashes and resumes.
	Attempt() int
	// Failures tells what failed among the nodes whose failure this visit follows.
	Failures() []Failure
	// Settings returns the run's settings as they were when the attempt began, as JSON that
	// the caller may not change. Nothing means that there are none.
	Settings() json.RawMessage
	// Ask returns the answer to a question. It returns an error that is ErrExpired or ErrSkipped if
	// the question ended without an answer, and the error that the node has to return if it has not
	// ended yet.
	Ask(call AskCall) (json.RawMessage, error)
	// Reply tells how the question of this key ended, if it has.
	Reply(key string) (AnswerInfo, bool)
	// Emit shows a value to whoever looks at the run now. It keeps value, and is safe for
	// concurrent use. ErrVisitOver once the attempt has ended.
	Emit(name string, value json.RawMessage) error
	// Effect does what the call says as [Effect] documents it, and returns the output that
	// is kept. It is safe for concurrent use.
	Effect(ctx context.Context, call EffectCall) (json.RawMessage, error)
}

// VisitKey is the context key under which a running node's [Visit] is found.
type VisitKey struct{}

func visitOf(ctx context.Context, call string) Visit {
	need(ctx != nil, call, "context", "pass on the one that the node was given")
	v, _ := ctx.Value(VisitKey{}).(Visit)
	return v
}

// A Failure tells how a visit failed for good: the same live and after a restart.
type Failure struct {
	Path     string      `json:"path"`     // of the visit
	Attempts int         `json:"attempts"` // made in all
	Kind     FailureKind `json:"kind"`
	Message  string      `json:"message"`
}

// FailureKind says in which way a visit failed.
type FailureKind string

const (
	FailedError   FailureKind = "error"   // its function returned an error
	FailedPanic   FailureKind = "panic"   // user code panicked
	FailedGoexit  FailureKind = "goexit"  // user code called runtime.Goexit
	FailedTimeout FailureKind = "timeout" // Policy.Timeout passed
	FailedOutcome FailureKind = "outcome" // an outcome was chosen, by it or in its place, that is not declared
	// FailedState: what it wrote cannot be stored, or is beyond a limit, as the items of an Each
	FailedState    FailureKind = "state"
	FailedRejected FailureKind = "rejected" // a person rejected its interrupt
	FailedDenied   FailureKind = "denied"   // an interceptor did not let it begin or be kept; or ErrDenied
	FailedEnd      FailureKind = "end"      // a dag.Fail was reached
	FailedInDoubt  FailureKind = "in_doubt" // its function returned an InDoubtError, or that of an effect broke
	FailedExpired  FailureKind = "expired"  // its function returned ErrExpired
	FailedSkipped  FailureKind = "skipped"  // its function returned ErrSkipped
)

// Key returns the idempotency key of the visit that ctx belongs to: the same for every attempt, in
// every process. It is made of the run's id, so a run that is deleted and made again under its id
// has the same keys. Outside a run it returns "". Like [Attempt], [Failures], [Answers] and
// [Reply], which have no error to return, it panics if ctx is nil.
func Key(ctx context.Context) string {
	if v := visitOf(ctx, "Key"); v != nil {
		return v.Key()
	}
	return ""
}

// Attempt returns which attempt of the visit this is, counted from 1 over crashes and resumes.
// Outside a run it returns 1.
//
// An attempt that a crash has cut off is not counted, so a node that kills its process is tried
// again for ever. An attempt that has asked and is run again with its answer is still the same
// attempt.
func Attempt(ctx context.Context) int {
	if v := visitOf(ctx, "Attempt"); v != nil {
		return v.Attempt()
	}
	return 1
}

// Failures tells what failed among the nodes whose failure this visit follows, in
// declaration order. Outside a run it returns nil.
func Failures(ctx context.Context) []Failure {
	if v := visitOf(ctx, "Failures"); v != nil {
		return v.Failures()
	}
	return nil
}

// ErrVisitOver is returned by the functions that a node calls, if the attempt to which the context
// belongs has ended, as for a goroutine that the node has left behind. Nothing has happened.
var ErrVisitOver = errors.New("dag: the attempt of the visit has ended")

// Emit shows a value of a running node, such as a token, a line, or how far it is, to whoever looks
// at the run at the moment: readers of its events at once, observers when the node returns. The
// value is not part of the run: it is not durable and never told again. Emit never waits for
// anybody; a reader that does not take the value in time misses it. It is safe for concurrent use.
//
// value may be anything that JSON can say, and name can't be empty. Outside a run nobody looks:
// Emit returns nil, or the error with which a run would refuse the name or value.
func Emit(ctx context.Context, name string, value any) error {
	v, err := within(ctx, "Emit")
	if err != nil {
		return err
	}
	if err := named("Emit", "name", name); err != nil {
		return err
	}
	raw, err := inJSON(value)
	if err != nil {
		return fmt.Errorf("dag: Emit(%q): %w", name, err)
	}
	if v == nil {
		return nil
	}
	return v.Emit(name, raw)
}
