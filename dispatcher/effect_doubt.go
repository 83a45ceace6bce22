package dispatcher

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// declared is what the log keeps of what a node says of an effect.
func declared(call *dag.EffectCall) checkpoint.DeclaredEffect {
	d := checkpoint.DeclaredEffect{
		Operation: call.Operation, Touches: call.Touches,
		Replayable: call.Replayable, Reversible: call.Reversible,
	}
	if call.Access.Declared() {
		d.Access = call.Access.String()
	}
	if call.Doubt != dag.DoubtTells {
		d.Doubt = call.Doubt.String()
	}
	return d
}

// effectID is the idempotency key of an effect: that under which it began.
func effectID(run string, turn int, path, key string, e *effect) string {
	return keyOf(run, turn, e.generation) + cmp.Or(e.at, path) + "#" + key
}

// inDoubt says that nobody knows what came of an effect, and sees to it that what the effect
// declares for that comes of the visit.
func (v *visit) inDoubt(call dag.EffectCall, e *effect, err error) error {
	doubt := &dag.InDoubtError{
		Key: call.Key, Path: v.path(), ID: effectID(v.host.id, int(v.turn), v.path(), call.Key, e),
		Begun: e.begun, Doubt: call.Doubt, Err: err,
	}
	v.leave(call)
	switch call.Doubt {
	case dag.DoubtAsks:
		q := checkpoint.DoubtQuestion{ID: doubt.ID, Input: call.Input, Begun: e.begun, DeclaredEffect: declared(&call)}
		if err != nil {
			q.Error = clip(fmt.Sprint(err))
		}
		asks := v.put(&question{AskCall: dag.AskCall{Key: call.Key}, effect: &checkpoint.Interrupt{
			Kind: kindDoubt, Key: call.Key, Question: encode(q), Want: encode(call.Output),
		}})
		if asks != nil { // unless something else is asked, behind which it is asked when the visit runs again, it fails
			doubt.Err = errors.Join(err, asks)
			v.does().fails.CompareAndSwap(nil, doubt)
		}
	case dag.DoubtFails:
		v.does().fails.CompareAndSwap(nil, doubt)
	}
	return doubt
}

// leave keeps that an effect is in doubt, if it declares that the node has no say in it: should
// the visit fail, also by a panic, whoever follows its failure must not go on either.
func (v *visit) leave(call dag.EffectCall) {
	if call.Doubt != dag.DoubtTells {
		v.does().unsaid.Store(true)
	}
}

// mayNotAsk reports whether an effect is in doubt that lets the visit fail, whatever else it waits for. One that would be asked
// about, but that there are too many questions, is asked about when the others are answered.
func (v *visit) mayNotAsk() bool {
	doubt := v.has().fails.Load()
	return doubt != nil && doubt.Doubt == dag.DoubtFails
}

// doubted makes a visit fail in which an effect is in doubt that lets it fail. What broke
// stays what it is; no other attempt is made.
func (v *visit) doubted() {
	doubt := v.has().fails.Load()
	if doubt == nil {
		return
	}
	if v.failed == nil || v.failed.returned() || v.failed.kind == dag.FailedOutcome {
		v.failed = &userError{kind: dag.FailedInDoubt, err: doubt}
	}
	v.failed.again = false
}
