package dag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/state"
)

// An EffectCall is what [Effect] asks of the [Visit] that its context belongs to.
type EffectCall struct {
	Key        string          // tells the effects of one visit apart
	Input      json.RawMessage // what the node does it with
	Output     state.Type      // of what it returns
	Replayable bool
	Access     Access
	Doubt      Doubt
	Reversible bool
	Operation  string                          // what it is called on the other side
	Touches    []string                        // what it changes there
	Run        func(id string) error           // does it, under this idempotency key; "" is that of the visit
	Result     func() (json.RawMessage, error) // encodes what a Run without an error returned

	inDoubt bool // Doubt was said
}

// An EffectOption says what an effect is, and how it may be treated: [Replayable], [InDoubt],
// [Reads], [Writes], [Operation], [Touches], [Reversible].
type EffectOption interface {
	// declare makes the option a part of the call. An error refuses the effect: nothing is done.
	declare(*EffectCall) error
}

// Replayable says that an effect may be done again under the same key without harm: it is
// idempotent, or the other side knows the key. It is never in doubt.
var Replayable EffectOption = replayable{}

type replayable struct{}

func (replayable) declare(call *EffectCall) error {
	call.Replayable = true
	return nil
}

// NotDone, wrapped by the error of an effect's function, says that the effect did not
// happen and did not begin: the other side has refused it, for example. Then it may be
// begun again. Any other error leaves open whether it happened.
var NotDone error = notDone{}

type notDone struct{}

func (notDone) Error() string { return "dag: the effect did not happen" }

type denied struct{}

func (denied) Error() string { return "dag: the effect was rejected, and did not happen" }
func (denied) Unwrap() error { return NotDone }

var (
	// ErrInDoubt: an effect was begun, and nobody knows whether it happened. The error is
	// an [*InDoubtError].
	ErrInDoubt = errors.New("dag: the effect is in doubt")
	// ErrInputChanged: an effect of this key was begun with another input. Nothing was done.
	ErrInputChanged = errors.New("dag: the effect was begun with another input")
	// ErrOutputLost: the effect happened, and what it returned can't be kept. It is not done
	// again.
	ErrOutputLost = errors.New("dag: the output of the effect can't be kept")
	// ErrOutputChanged: the effect happened, and what was kept of it is no output of the type that
	// is wanted now. It is not done again.
	ErrOutputChanged = errors.New("dag: what was kept of the effect is of another type")
	// ErrAsked: the visit waits for the answer to a question, so no effect begins in it.
	ErrAsked = errors.New("dag: the visit waits for an answer, and no effect begins")
	// ErrDenied: a person rejected the effect, which needed an approval. It wraps [NotDone]:
	// nothing was done. A visit that fails with it has failed for good.
	ErrDenied error = denied{}
)

// An InDoubtError tells that an effect was begun and nobody knows whether it happened: the process
// died in it, or its function panicked, called runtime.Goexit, was abandoned, or returned an error
// that does not wrap [NotDone], including one that only says that Policy.Timeout has passed. What
// follows is what the effect declares with [InDoubt]. With [DoubtTells] the visit fails for good if
// the node returns the error; a node that handles it says what happened.
type InDoubtError struct {
	Key   string    // as given to Effect
	Path  string    // of the visit
	ID    string    // the idempotency key that the other side was given
	Begun time.Time // the last time
	Doubt Doubt     // what the effect declares
	Err   error     // what the function returned or panicked with; nil in later attempts
}

// Error says what to do.
func (e *InDoubtError) Error() string {
	text := fmt.Sprintf("dag: effect %q of visit %s is in doubt: it began at %s, and nobody knows whether it happened",
		e.Key, e.Path, e.Begun.UTC().Format(time.RFC3339))
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	text += "; ask the other side for " + e.ID + ", and say with Resolve what happened"
	switch e.Doubt {
	case DoubtAsks:
		text += ": the visit waits for it, so return this error"
	case DoubtFails:
		text += ": the visit fails until somebody does"
	default:
		text += "; or declare the effect dag.Replayable, if doing it again does no harm, " +
			"or handle the error in the node, which errors.As finds as a *dag.InDoubtError"
	}
	if e.Err != nil {
		text += "; and if the effect's function knows that nothing happened, let it wrap dag.NotDone"
	}
	return text
}

// Is reports whether target is [ErrInDoubt].
func (e *InDoubtError) Is(target error) bool { return target == ErrInDoubt }

// Unwrap returns what the function returned or panicked with.
func (e *InDoubtError) Unwrap() error { return e.Err }

// Effect calls fn at most once in a visit for each key, over all attempts, crashes and processes,
// and returns what fn returned that time. The beginning of the effect is durable before fn runs,
// and its output is durable before Effect returns.
//
// In a later attempt an effect that has ended returns the output that was kept, and fn does not
// run. What fn would write to the node's state is lost then: let fn return it, and write it behind
// Effect.
//
// Of the context that fn gets, [Key] returns the idempotency key of the effect, the same in every
// attempt and process and different from that of any other effect of any run. Pass it on to the
// other side, and see that it is heeded there: net/http repeats a request that has a header
// Idempotency-Key by itself if a connection is lost. The key is made of the run's id. A run that is
// deleted and made again under its id, and a copy of the run in another store, therefore have the
// same keys, and the other side takes their effects for those of the first.
//
// Inside fn, [Ask], Effect, [Depends], [Note] and the other functions that make notes return an
// error, because a later attempt that finds the effect done would not repeat them. They can tell by
// the context that fn gets and by nothing else, so fn has to use that one and not the node's.
//
// The effect is in doubt if the process dies in fn, or if fn panics, calls runtime.Goexit, is
// abandoned, or returns an error, including one that only says that Policy.Timeout or the run has
// ended its context. Then nobody knows whether it happened ([*InDoubtError]), and it is not done
// again until somebody has said so. [InDoubt] declares what becomes of the visit meanwhile: the
// node is told, a person is asked, or the visit fails. In two cases there is no doubt:
//
//   - The error wraps [NotDone]: the next attempt does the effect again.
//   - The effect is [Replayable]: it is done again under the same key.
//
// The end of the run's context ends that of fn. An fn that should rather finish calls the other
// side with [context.WithoutCancel], and is waited for as long as a call's grace period.
//
// The same key with another input is [ErrInputChanged]. Inputs are the same if their JSON is, in
// which the fields of a struct have their order. What was kept has to be a value of Out
// ([state.Type.Accepts]); if it is not, because another version of the program renamed or removed a
// member, that is [ErrOutputChanged]. Members that are new are zero.
//
// [Operation], [Touches], [Reversible], [Reads] and [Writes] declare what the effect is. They are
// kept with it, for whoever has to approve it or to say what came of it.
//
// Effect is safe for concurrent use, under different keys. What it returns was decoded from what
// was kept. Nothing begins once ctx is done, or when the visit has asked a question that has no
// answer ([ErrAsked]). A call without a key, or with options that contradict each other, is an
// [*ArgumentError], and nothing is done.
//
// Outside a run Effect calls fn, so that a node can be tested alone, and refuses an input or output
// that a run would refuse, whatever its size. Only ctx tells a run from a test: a node that gives
// Effect a context that is not its own, nor made from it, has an effect that nothing protects.
func Effect[In, Out any](ctx context.Context, key string, in In, fn func(context.Context, In) (Out, error), options ...EffectOption) (Out, error) {
	var out Out
	if fn == nil {
		return out, &ArgumentError{"Effect", fmt.Sprintf("function of effect %q", key), "is nil: give the one that does it"}
	}
	v, err := within(ctx, "Effect")
	if err != nil {
		return out, err
	}
	call, err := newEffectCall[In, Out](key, in)
	if err != nil {
		return out, err
	}
	if err := call.declare(options); err != nil {
		return out, err
	}
	call.Result = func() (raw json.RawMessage, err error) {
		// A panic of out's own MarshalJSON is no doubt: the effect has happened.
		defer func() {
			if p := recover(); p != nil {
				raw, err = nil, fmt.Errorf("%w: effect %q: to encode it panicked: %v", ErrOutputLost, key, p)
			}
		}()
		if raw, err = state.Encode(&out); err != nil {
			return nil, fmt.Errorf("%w: effect %q: %w", ErrOutputLost, key, err)
		}
		return raw, nil
	}
	var kept Out // what every later attempt will get as well
	if v == nil {
		if out, err = fn(ctx, in); err != nil {
			return kept, err
		}
		raw, err := call.Result()
		if err == nil {
			err = decodeKept(key, raw, &kept)
		}
		return kept, err
	}
	call.Run = func(id string) (err error) {
		if id == "" {
			id = v.Key() + "#" + key
		}
		out, err = fn(context.WithValue(ctx, VisitKey{}, Visit(effectVisit{v, id})), in)
		return err
	}
	raw, err := v.Effect(ctx, call)
	if err != nil {
		return kept, err
	}
	err = decodeKept(key, raw, &kept)
	return kept, err
}

func decodeKept[Out any](key string, raw json.RawMessage, kept *Out) error {
	if err := state.Decode(raw, kept); err != nil { // by an unmarshaller of its own
		return outputChanged(fmt.Errorf("effect %q: %w", key, err))
	}
	return nil
}

// Takes returns nil if raw, which was kept of an effect, is an output of this call by
// [state.Type.Accepts], and otherwise an [ErrOutputChanged] that says why it is not.
func (c *EffectCall) Takes(raw json.RawMessage) error {
	if err := c.Output.Accepts(raw); err != nil {
		return outputChanged(err)
	}
	return nil
}

func outputChanged(why error) error {
	return fmt.Errorf("%w: %w: have the node take the type that it was, or go back before it with Rewind or Fork", ErrOutputChanged, why)
}

// newEffectCall refuses what can't be kept before anything is done.
func newEffectCall[In, Out any](key string, in In) (EffectCall, error) {
	call := EffectCall{Key: key}
	if err := named("Effect", "key", key); err != nil {
		return call, err
	}
	if _, err := state.TypeOf[In](); err != nil {
		return call, fmt.Errorf("dag: input of effect %q: %w", key, err)
	}
	var err error
	if call.Output, err = state.TypeOf[Out](); err != nil {
		return call, fmt.Errorf("dag: output of effect %q: %w", key, err)
	}
	if call.Input, err = state.Encode(&in); err != nil {
		return call, fmt.Errorf("dag: input of effect %q: %w", key, err)
	}
	return call, nil
}

// declare makes the options a part of the call.
func (c *EffectCall) declare(options []EffectOption) error {
	for _, o := range options {
		if o == nil {
			return c.refused("is given an option that is nil: leave it out")
		}
		if err := o.declare(c); err != nil {
			return err
		}
	}
	return nil
}

// refused is the error of an effect whose options can't be.
func (c *EffectCall) refused(reason string) error {
	return &ArgumentError{"Effect", fmt.Sprintf("effect %q", c.Key), reason}
}

// An effectVisit is the visit as the function of an effect sees it.
type effectVisit struct {
	Visit
	key string
}

func (v effectVisit) Key() string { return v.key }

// Ask is refused: what fn has done so far would have to be done again with the answer.
func (v effectVisit) Ask(call AskCall) (json.RawMessage, error) {
	return nil, fmt.Errorf("dag: Ask(%q) inside an effect: ask before it begins", call.Key)
}

// Effect is refused: whether it happened would be in doubt with the one around it.
func (v effectVisit) Effect(_ context.Context, call EffectCall) (json.RawMessage, error) {
	return nil, fmt.Errorf("dag: Effect(%q) inside another: do one after the other", call.Key)
}

// Note and Depends are refused: they are durable with the end of an attempt, and the effect before
// that, so the attempt that ends well may be one that finds the effect done and does not call fn.
func (v effectVisit) Note(name string, _ json.RawMessage) error {
	return fmt.Errorf("dag: a note %q inside an effect: make it when the effect has returned", name)
}

func (v effectVisit) Depends(d Dependency) error {
	return fmt.Errorf("dag: Depends(%q) inside an effect: say it when the effect has returned", d.Name)
}

// Answers implements [Replier] if the visit does.
func (v effectVisit) Answers() []Answered {
	if r, ok := v.Visit.(Replier); ok {
		return r.Answers()
	}
	return nil
}
