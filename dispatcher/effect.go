package dispatcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// Effect implements [dag.Visit].
func (v *visit) Effect(ctx context.Context, call dag.EffectCall) (json.RawMessage, error) {
	if limit := v.host.c.opts.Limits.VisitBytes; textBytes(call.Key) > limit {
		return nil, &LimitError{"visit bytes", limit, "the key of an effect of " + v.path()}
	}
	if v.over() { // what an effect has returned is for the attempt that asked, too
		return nil, v.effectError(call, dag.ErrVisitOver)
	}
	sum := sha256.Sum256(call.Input)
	digest := hex.EncodeToString(sum[:])
	was, claim, err := v.claim(call, digest)
	if err != nil {
		return nil, v.effectError(call, err)
	}
	switch was.state {
	case effectEnded:
		if err := call.Takes(was.output); err != nil {
			return nil, v.effectError(call, err)
		}
		return slices.Clone(was.output), nil
	case effectLost:
		return nil, v.effectError(call, fmt.Errorf("%w: %s: handle this error in the node, or go back before it with Rewind or Fork", dag.ErrOutputLost, was.why))
	}
	a := effectAttempt{v: v, call: call, is: was}
	returned := false
	defer func() { // fn may panic, and the node survive that without being told what it means
		v.known().CompareAndSwap(call.Key, claim, a.is)
		switch {
		case a.is.state != effectBegun || call.Replayable:
		case returned:
			_ = v.inDoubt(call, a.is, nil)
		default:
			how := broken(nil) // also if the text of what it panicked with calls Goexit
			defer func() { v.breaks(call, a.is, how) }()
			if p := recover(); p != nil {
				how = panicked(p)
				panic(p)
			}
		}
	}()
	output, err := a.do(ctx, digest)
	returned = true
	return output, err
}

// claim makes the caller the only one that does the effect, or tells what came of it. Of an
// effect that nothing is known of it returns the zero effect.
func (v *visit) claim(call dag.EffectCall, digest string) (was, claim *effect, err error) {
	claim = &effect{digest: digest} // of no state: under way
	for {
		found, known := v.known().LoadOrStore(call.Key, claim)
		if !known {
			return &effect{}, claim, nil
		}
		switch was = found.(*effect); {
		case was.state == 0 && was.digest != "":
			return nil, nil, errors.New("dag: an effect of this key is under way")
		case was.state != 0 && was.digest != digest:
			return nil, nil, fmt.Errorf("%w: give it the one that it had, or go back before it with Rewind or Fork", dag.ErrInputChanged)
		case was.state == effectEnded, was.state == effectLost:
			return was, nil, nil
		case was.state == effectBegun && !call.Replayable:
			return nil, nil, v.inDoubt(call, was, nil)
		}
		if v.known().CompareAndSwap(call.Key, found, claim) {
			return was, claim, nil
		}
	}
}

// mayBegin reports why an effect can't begin now.
func (v *visit) mayBegin(ctx context.Context, call dag.EffectCall) error {
	err := v.couldBegin(ctx, call)
	if err == nil && v.has().asks.Load() != nil {
		err = dag.ErrAsked
	}
	return err
}

// couldBegin reports why an effect can't begin now, even if the visit waited for nobody.
func (v *visit) couldBegin(ctx context.Context, call dag.EffectCall) error {
	switch {
	case v.host.c.store == nil:
		return ErrNoStore
	case v.over():
		return dag.ErrVisitOver
	}
	if doubt := v.has().fails.Load(); doubt != nil { // nothing that the visit does counts
		return doubt
	}
	if err := v.host.c.opts.Limits.allow(call.Input, "the input of effect ", call.Key); err != nil {
		return err
	}
	return v.effectContext(ctx)
}

// effectContext returns the error of the context that was given to Effect, or else that of
// the attempt.
func (v *visit) effectContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.Err()
}

// An effectAttempt is one time that an effect is done.
type effectAttempt struct {
	v    *visit
	call dag.EffectCall
	is   *effect // as far as it is durable
}

// do does the effect, unless a fork has its output.
func (a *effectAttempt) do(ctx context.Context, digest string) (json.RawMessage, error) {
	if output, done, err := a.reuse(ctx, digest); done {
		return output, err
	}
	if err := a.begin(ctx, digest); err != nil {
		return nil, a.v.effectError(a.call, err)
	}
	began := time.Now()
	if err := a.call.Run(effectID(a.v.host.id, int(a.v.turn), a.v.path(), a.call.Key, a.is)); err != nil {
		return nil, a.failed(err)
	}
	return a.happened(time.Since(began))
}

// begin makes it durable that the effect begins, unless it can't begin now.
func (a *effectAttempt) begin(ctx context.Context, digest string) error {
	if err := a.v.couldBegin(ctx, a.call); err != nil {
		return err
	}
	approval, err := a.approved() // several effects may be asked about at once
	if err != nil {
		return err
	}
	if err := a.v.mayBegin(ctx, a.call); err != nil {
		return err
	}
	e := &effect{
		digest: digest, state: effectBegun, begun: a.v.host.c.opts.Now().UTC(),
		approval: approval, generation: int(a.v.generation),
	}
	again := a.is.state == effectBegun
	if again { // the other side may have done it, and knows it by that key
		e.generation = a.is.generation
	}
	err = a.v.record(checkpoint.EffectBegun, a.call.Key, encodeBegun(&checkpoint.BegunEffect{
		Input: a.call.Input, Digest: e.digest, Output: encodeType(&a.call.Output), At: e.begun,
		Approval: approval, DeclaredEffect: declared(&a.call),
	}))
	if err != nil {
		return err
	}
	a.is = e
	if a.v.grants != nil {
		a.v.grants.Delete(a.call.Key) // it is spent
	}
	err = a.v.effectContext(ctx)
	if err != nil && !again { // the store took its time, and nothing has begun
		return a.notDone(err)
	}
	return err
}

// failed says what an error of the function means.
func (a *effectAttempt) failed(err error) error {
	switch {
	case errors.Is(err, dag.NotDone):
		return a.notDone(err)
	case a.call.Replayable:
		return err
	}
	return a.v.inDoubt(a.call, a.is, err)
}

// notDone makes it durable that the effect did not happen, and returns why.
func (a *effectAttempt) notDone(why error) error {
	end := checkpoint.EndedEffect{NotDone: clip(fmt.Sprint(why))}
	if end.NotDone == "" {
		end.NotDone = "an error without a text"
	}
	if err := a.end(end, effect{state: effectNotDone, why: end.NotDone}); err != nil {
		return errors.Join(err, why)
	}
	return why
}

// happened makes what the function returned durable.
func (a *effectAttempt) happened(took time.Duration) (json.RawMessage, error) {
	output, lost := a.call.Result()
	if over := a.v.host.c.opts.Limits.allow(output, "the output of effect ", a.call.Key); lost == nil && over != nil {
		lost = fmt.Errorf("%w: %w", dag.ErrOutputLost, over)
	}
	if lost != nil {
		why := clip(strings.TrimPrefix(plain(lost), plain(dag.ErrOutputLost)+": ")) // which a later attempt says itself
		if err := a.end(checkpoint.EndedEffect{Lost: why, Took: took}, effect{state: effectLost, why: why}); err != nil {
			return nil, err
		}
		return nil, a.v.effectError(a.call, lost)
	}
	if err := a.end(checkpoint.EndedEffect{Output: output, Took: took}, effect{state: effectEnded, output: output}); err != nil {
		return nil, err
	}
	return slices.Clone(output), nil
}

// end makes it durable how the effect ended.
func (a *effectAttempt) end(end checkpoint.EndedEffect, is effect) error {
	if err := a.v.record(checkpoint.EffectEnded, a.call.Key, encodeEnded(&end)); err != nil {
		return a.v.effectError(a.call, err)
	}
	is.digest, is.begun, is.approval, is.generation = a.is.digest, a.is.begun, a.is.approval, a.is.generation
	a.is = &is
	return nil
}

// effectError says which effect err is about, unless it does so itself.
func (v *visit) effectError(call dag.EffectCall, err error) error {
	if errors.Is(err, dag.ErrInDoubt) {
		return err
	}
	return fmt.Errorf("dispatcher: effect %q of visit %s: %w", call.Key, v.path(), err)
}

// known is what the attempt knows of the effects of its visit, by key.
func (v *visit) known() *sync.Map {
	did := v.does()
	if m := did.effects.Load(); m != nil {
		return m
	}
	did.effects.CompareAndSwap(nil, new(sync.Map))
	return did.effects.Load()
}

// learn tells the attempt what is known of the effects of its visit when it begins.
func (v *visit) learn(effects map[string]*effect) {
	for key, e := range effects {
		v.known().Store(key, e)
	}
}
