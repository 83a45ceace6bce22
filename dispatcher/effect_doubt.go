package dispatcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
func (v *visit) inDoubt(call dag.EffectCall, e *effect, err error) *dag.InDoubtError {
	doubt := &dag.InDoubtError{
		Key: call.Key, Path: v.path(), ID: effectID(v.host.id, int(v.turn), v.path(), call.Key, e),
		Begun: e.begun, Doubt: call.Doubt, Err: err,
	}
	switch call.Doubt {
	case dag.DoubtAsks:
		q := checkpoint.DoubtQuestion{ID: doubt.ID, Input: call.Input, Begun: e.begun, DeclaredEffect: declared(&call)}
		if err != nil {
			q.Error = clip(fmt.Sprint(err))
		}
		asks := v.put(&question{AskCall: dag.AskCall{Key: call.Key}, effect: &checkpoint.Interrupt{
			Kind: kindDoubt, Key: call.Key, Question: encode(q), Want: encodeType(&call.Output),
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

// breaks is inDoubt of an effect whose function broke, and keeps that for the attempt, which may
// break by it.
func (v *visit) breaks(call dag.EffectCall, e *effect, u *userError) {
	b := &brokenEffect{userError: *u, doubt: v.inDoubt(call, e, u.placed())}
	for last := &v.does().broke; ; {
		if b.before = last.Load(); last.CompareAndSwap(b.before, b) {
			return
		}
	}
}

// A brokenEffect is an effect whose function broke, which is in doubt by that.
type brokenEffect struct {
	userError
	doubt  *dag.InDoubtError // tells of the break
	before *brokenEffect     // that of another effect of the attempt
}

// broken is the effect by whose break the visit broke, as far as kind and error tell; else, and of
// several, the last one that broke: the visit has survived the others.
func (v *visit) broken() *brokenEffect {
	last := v.has().broke.Load()
	for e := last; e != nil; e = e.before {
		if v.brokeAs(e) {
			return e
		}
	}
	return last
}

// brokeAs reports whether the visit has failed as the function of an effect broke.
func (v *visit) brokeAs(e *brokenEffect) bool {
	return v.failed != nil && v.failed.kind == e.kind && v.failed.Error() == fmt.Sprint(v.blamed().blames(e.err))
}

// blamed is whose code runs in the visit.
func (v *visit) blamed() whose {
	if v.round != nil {
		return v.round.at
	}
	return whose{}
}

// placed is the error, and of a panic that it is one, and where.
func (e *userError) placed() error {
	if e.kind == dag.FailedPanic {
		place := panicPlace(e.stack)
		if place == "" {
			return fmt.Errorf("panic: %w", e.err)
		}
		return fmt.Errorf("panic: %w (%s)", e.err, place)
	}
	return e.err
}

// unsaid reports whether an effect is in doubt of which the node can't say what happened: should
// the visit fail, whoever follows its failure must not go on either.
func (v *visit) unsaid() bool { return v.has().fails.Load() != nil || v.has().asks.Load().doubts() }

// mayNotAsk reports whether an effect is in doubt that lets the visit fail, whatever else it waits
// for. One that would be asked about, but that there are too many questions, is asked about when
// the others are answered.
func (v *visit) mayNotAsk() bool {
	doubt := v.has().fails.Load()
	return doubt != nil && doubt.Doubt == dag.DoubtFails
}

// doubted makes a visit fail in which an effect is in doubt that lets it fail: no other attempt is
// made.
func (v *visit) doubted() {
	doubt := v.has().fails.Load()
	if doubt == nil {
		return
	}
	u := v.failed
	switch broke := v.broken(); {
	case u == nil || u.returned() || u.kind == dag.FailedOutcome:
		v.failed = &userError{kind: dag.FailedInDoubt, err: doubt}
	case !u.broke():
	case broke == nil:
		v.failed = &userError{kind: dag.FailedInDoubt, err: thenBroke(doubt, u), stack: u.stack}
	default:
		v.failed = v.brokeBy(broke)
		if broke.doubt != doubt {
			v.failed.err = thenBroke(doubt, v.failed)
		}
	}
	v.failed.again = false
	if u != nil {
		v.failed.late = u.late
	}
}

// brokeBy is how a visit fails that broke behind the break of an effect: with the doubt, and with
// what it broke by itself, if that is something else. Then both stacks are kept.
func (v *visit) brokeBy(e *brokenEffect) *userError {
	u := v.failed
	if v.brokeAs(e) {
		return &userError{kind: dag.FailedInDoubt, err: v.blamed().blames(e.doubt), stack: e.stack}
	}
	return &userError{kind: dag.FailedInDoubt, err: thenBroke(e.doubt, u), stack: slices.Concat(e.stack, []byte("\n"), u.stack)}
}

// thenBroke tells of an effect in doubt, and of how the visit broke behind it.
func thenBroke(doubt error, u *userError) error { return fmt.Errorf("%w; then %w", doubt, u.placed()) }

// brokeInDoubt has a visit that has failed for good by a break tell that an effect is in doubt, if
// the function of the effect broke too, or it is a panic with the error that Effect returned. Who
// follows the failure would take it for one of something else.
func (v *visit) brokeInDoubt() {
	u, broke := v.failed, v.broken()
	switch {
	case !u.broke():
	case broke != nil:
		*u = *v.brokeBy(broke)
	case errors.Is(u.err, dag.ErrInDoubt):
		u.kind = dag.FailedInDoubt
	}
}
