package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// approved returns the approval under which an effect begins, "" if it needs none. If it
// needs one that it does not have, a person is asked for it when the visit has returned, and
// nothing begins.
func (a *effectAttempt) approved() (approval string, err error) {
	v, key := a.v, a.call.Key
	if a.is.state == effectBegun && a.is.approval != "" {
		return a.is.approval, nil // nobody knows how what was approved ended: it goes on
	}
	if v.grants == nil && v.host.c.gates == nil {
		return "", nil
	}
	action := Action{
		Run: v.host.id, Path: v.path(), Node: nodePath(v.path()),
		Effect: key, Operation: a.call.Operation, Access: a.call.Access, Input: a.call.Input, Kind: v.t.node.Kind,
		Touches: a.call.Touches, Reversible: a.call.Reversible, Replayable: a.call.Replayable,
	}
	asked := encode(action)
	if g, ok := v.granted(key); ok && g.of(asked) {
		if !g.Rejected {
			return g.ID, nil
		}
		return "", g.denial()
	}
	if v.host.c.gates == nil {
		return "", nil
	}
	reason := v.host.effectGate(action)
	if reason == "" {
		return "", nil
	}
	if err := v.host.c.opts.Limits.allow(asked, "the question whether effect "+key+" may begin"); err != nil {
		return "", err
	}
	if err := v.put(&question{AskCall: dag.AskCall{Key: key}, effect: &checkpoint.Interrupt{
		Kind: kindEffect, Key: key, Question: asked, By: byGate, Reason: reason,
	}}); err != nil {
		return "", err
	}
	return "", fmt.Errorf("it needs an approval: return this error: %w", dag.ErrAsked)
}

// effectGate says why an effect needs an approval, "" if it needs none. What Gates.If panics with
// goes through the node, and says whose it is.
func (h *host) effectGate(a Action) string {
	defer func() {
		if p := recover(); p != nil {
			panic(whose{option: "Gates.If"}.blames(panicked(p).err))
		}
	}()
	return h.c.gates.effect(a)
}

// of reports whether a grant is of the action that a question is about. An approval is of that and
// of nothing else. A rejection is of the input, whatever the effect is declared as since: more is
// rejected rather than done.
func (g *grant) of(question json.RawMessage) bool {
	if g.Rejected {
		return sameAction(g.Question, question, "operation", "access")
	}
	return sameAction(g.Question, question)
}

// sameAction reports whether two questions of gates to one visit are about the same action, but for
// some fields. A migration may have given its node another name since the first was asked: what it
// is called is no part of it.
func sameAction(a, b json.RawMessage, but ...string) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	for _, name := range append(but, "path", "node") {
		delete(x, name)
		delete(y, name)
	}
	return maps.EqualFunc(x, y, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// denial is what the node is told of a rejection: by whom, and why, as far as that is known.
func (g *grant) denial() error {
	err := dag.ErrDenied
	if g.By != "" {
		err = fmt.Errorf("%w: by %s", err, g.By)
	}
	if g.Reason != "" {
		err = fmt.Errorf("%w: %s", err, g.Reason)
	}
	return err
}

// granted returns what was decided about an effect.
func (v *visit) granted(key string) (grant, bool) {
	if v.grants == nil {
		return grant{}, false
	}
	g, ok := v.grants.Load(key)
	if !ok {
		return grant{}, false
	}
	return g.(grant), true
}

// granted is what an attempt is told of what was decided; nil is nothing.
func (o *odd) granted() *sync.Map {
	if len(o.grants) == 0 {
		return nil
	}
	all := new(sync.Map)
	for key, g := range o.grants {
		all.Store(key, g)
	}
	return all
}
