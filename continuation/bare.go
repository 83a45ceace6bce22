package continuation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/dag"
)

// A choosy visit asks for what ends a wait: an answer that is none of its triggers does not fit. So
// the dispatcher refuses it when it is given, as far as it knows what fits; and a visit that finds
// one in the log, of an earlier build perhaps, asks again. The type of the answer stays what it
// was: with another one all that was answered before would be asked again.
type choosy struct {
	dag.Visit
	of    []alternative
	ended bool // it asks nothing: what has ended under the key is to be the question's end
}

// errElse: what has ended under the key of a question was another one.
var errElse = errors.New("continuation: something else was asked there")

// choosing is ctx with its visit being choosy, if it has one.
func choosing(ctx context.Context, of []alternative, ended bool) context.Context {
	if v, ok := ctx.Value(dag.VisitKey{}).(dag.Visit); ok {
		return context.WithValue(ctx, dag.VisitKey{}, dag.Visit(choosy{v, of, ended}))
	}
	return ctx
}

// Ask implements [dag.Visit].
func (v choosy) Ask(call dag.AskCall) (json.RawMessage, error) {
	decodes := call.Fits
	call.Fits = func(raw json.RawMessage) error {
		var l letter
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		if reason := l.Trigger.strange(v.of); reason != "" {
			return fmt.Errorf("it is no trigger of the wait: %s: a Runtime's Trigger is, and what Script writes", reason)
		}
		if decodes != nil {
			return decodes(raw)
		}
		return nil
	}
	if v.ended && v.endedElse(call) {
		return nil, errElse
	}
	return v.Visit.Ask(call)
}

// endedElse reports whether what has ended under the key of the call was another question, behind
// whose trigger an attempt has failed. Behind a denial none has that counts, nor behind what was no
// trigger: the place of that is free for another question.
func (v choosy) endedElse(call dag.AskCall) bool {
	knows, ok := v.Visit.(dag.Foreseer)
	if !ok {
		return false
	}
	counts, fits := true, call.Fits
	call.Fits = func(raw json.RawMessage) error {
		var l letter
		err := fits(raw)
		counts = json.Unmarshal(raw, &l) == nil && l.Trigger.Decision != Denied && (err == nil || l.Trigger.Of.Wait != "")
		return err
	}
	return !knows.Ended(call) && counts
}

// strange says why an answer is none of the triggers that end a wait, "" if it is one. Those that a
// Runtime has given are: it has looked at more.
func (t *taken) strange(of []alternative) string {
	kind, fits, unheard := false, false, false
	keys := map[string]bool{}
	for i := range of {
		a := &of[i]
		if a.Kind != t.Kind {
			continue
		}
		kind, keys[a.Key] = true, true
		if t.Key == "" || a.Key == "" || a.Key == t.Key { // without a key of its own it has the id of the wait, which no visit knows
			fits, unheard = true, unheard || a.Feeds
		}
	}
	switch {
	case !kind:
		return fmt.Sprintf("it is of the kind %q", t.Kind)
	case !fits:
		return fmt.Sprintf("it is for the key %q", t.Key)
	case t.Key == "" && len(keys) > 1:
		return "it has no key, and the wait takes several"
	case (t.Kind == KindApproval) != (t.Decision == Approved || t.Decision == Denied), t.Kind != KindApproval && t.Decision != "":
		return fmt.Sprintf("it has the decision %q: an approval has %q or %q, and nothing else has one", t.Decision, Approved, Denied)
	case t.Decision == Denied && !t.Feeds && unheard && t.Of.Wait == "": // a Runtime's was given by what the wait said then
		return "the wait feeds a denial to its node, and it does not say feeds"
	}
	return ""
}
