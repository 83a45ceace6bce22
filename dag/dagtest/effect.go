package dagtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// An Effect is one call of dag.Effect.
type Effect struct {
	Key    string
	Input  json.RawMessage
	Output json.RawMessage // nil if there is an error
	Err    error           // what dag.Effect returned
	Ran    bool            // its function was called
	// What the node declares of it.
	Operation  string
	Touches    []string
	Access     dag.Access
	Doubt      dag.Doubt
	Replayable bool
	Reversible bool
}

// Effects returns the effects that the node has asked for so far, in the order in which they ended.
func (v *Visit) Effects() []Effect {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.effects)
}

// kept is what the attempt knows of an effect.
type kept struct {
	input    json.RawMessage
	output   json.RawMessage
	underWay bool
	notDone  bool
	lost     error
}

func (s visit) Effect(ctx context.Context, call dag.EffectCall) (json.RawMessage, error) {
	e := Effect{
		Key: call.Key, Input: slices.Clone(call.Input),
		Operation: call.Operation, Touches: slices.Clone(call.Touches), Access: call.Access,
		Doubt: call.Doubt, Replayable: call.Replayable, Reversible: call.Reversible,
	}
	e.Output, e.Ran, e.Err = s.effect(ctx, call)
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	s.v.effects = append(s.v.effects, e)
	return slices.Clone(e.Output), e.Err
}

// effect does what a run would do: the script stands for the attempts before this one, and
// for the other side.
func (s visit) effect(ctx context.Context, call dag.EffectCall) (output json.RawMessage, ran bool, err error) {
	k, output, err := s.claim(ctx, call)
	if k == nil {
		return output, false, err
	}
	began, ended := false, false
	defer func() { // fn may panic, and the node survive that
		if began && !ended && !call.Replayable {
			_ = s.inDoubt(call, nil)
		}
		s.v.mu.Lock()
		defer s.v.mu.Unlock()
		k.underWay = false
		k.notDone = ended && errors.Is(err, dag.NotDone)
	}()
	scripted, ok := s.v.Script[call.Key]
	failure, fails := scripted.(error)
	switch {
	case fails && errors.Is(failure, dag.ErrInDoubt) && call.Replayable:
		ok = false // begun before, and may be done again
	case fails && errors.Is(failure, dag.ErrInDoubt):
		return nil, false, s.inDoubt(call, nil)
	case fails:
		ended = true
		return nil, false, s.failed(call, failure)
	}
	if ok {
		if output, err = encode(scripted); err == nil {
			err = call.Output.Accepts(output)
		}
		if err != nil {
			return nil, false, fmt.Errorf("dagtest: output of effect %q: %w", call.Key, err)
		}
		k.output = output
		return output, false, nil
	}
	began = true
	if err = call.Run(""); err != nil {
		ended = true
		return nil, true, s.failed(call, err)
	}
	output, err = call.Result()
	ended = true
	k.output, k.lost = output, err
	return output, true, err
}

// claim makes the caller the one that does the effect, or tells what came of it.
func (s visit) claim(ctx context.Context, call dag.EffectCall) (k *kept, output json.RawMessage, err error) {
	s.v.mu.Lock()
	defer s.v.mu.Unlock()
	if s.v.kept == nil {
		s.v.kept = map[string]*kept{}
	}
	was := s.v.kept[call.Key]
	switch {
	case was != nil && was.underWay:
		return nil, nil, fmt.Errorf("dagtest: effect %q is under way", call.Key)
	case was != nil && !bytes.Equal(was.input, call.Input):
		return nil, nil, fmt.Errorf("dagtest: effect %q: %w", call.Key, dag.ErrInputChanged)
	case was != nil && was.lost != nil:
		return nil, nil, was.lost
	case was != nil && was.output != nil:
		if err := call.Takes(was.output); err != nil {
			return nil, nil, fmt.Errorf("dagtest: effect %q: %w", call.Key, err)
		}
		return nil, was.output, nil
	case was != nil && !was.notDone && !call.Replayable:
		return nil, nil, s.inDoubt(call, nil)
	}
	if !s.settled(call) {
		if err = ctx.Err(); err == nil {
			err = s.gate(call, was)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("dagtest: effect %q: %w", call.Key, err)
	}
	k = &kept{input: slices.Clone(call.Input), underWay: true}
	s.v.kept[call.Key] = k
	return k, nil, nil
}

// settled reports whether the script says that the effect happened before, or that nobody knows:
// then it does not begin.
func (s visit) settled(call dag.EffectCall) bool {
	scripted, ok := s.v.Script[call.Key]
	failure, fails := scripted.(error)
	return ok && !fails || fails && errors.Is(failure, dag.ErrInDoubt) && !call.Replayable
}

// failed says what an error of the function means.
func (s visit) failed(call dag.EffectCall, err error) error {
	if call.Replayable || errors.Is(err, dag.NotDone) {
		return err
	}
	return s.inDoubt(call, err)
}

func (s visit) inDoubt(call dag.EffectCall, err error) error {
	doubt := &dag.InDoubtError{Key: call.Key, Path: "node", ID: s.Key() + "#" + call.Key, Doubt: call.Doubt, Err: err}
	if call.Doubt == dag.DoubtTells {
		return doubt
	}
	for {
		was := s.v.doubt.Load()
		if was != nil && was.Doubt >= call.Doubt || s.v.doubt.CompareAndSwap(was, doubt) {
			return doubt
		}
	}
}

// Doubted returns the first effect in doubt that decides what comes of the visit, whatever the node
// returns; nil if there is none. With dag.DoubtFails the visit fails. If no effect has that, one
// with dag.DoubtAsks has the visit wait for a person.
func (v *Visit) Doubted() *dag.InDoubtError { return v.doubt.Load() }
