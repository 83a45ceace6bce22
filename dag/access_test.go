package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

// An Access is told and stored as a word, and no other word is one.
func TestAccessAsText(t *testing.T) {
	for access, want := range map[dag.Access]string{0: "undeclared", dag.Reads: "reads", dag.Writes: "writes"} {
		if got := access.String(); got != want {
			t.Errorf("%d is called %q, want %q", access, got, want)
		}
		raw, err := json.Marshal(access)
		var back dag.Access
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		if err != nil || string(raw) != `"`+want+`"` || back != access {
			t.Errorf("%s is stored as %s, %v, and read as %s", want, raw, err, back)
		}
	}
	if _, err := json.Marshal(dag.Access(7)); err == nil || dag.Access(7).Declared() || dag.Access(7).String() != "access(7)" {
		t.Errorf("an unknown access is %s, %v", dag.Access(7), err)
	}
	var a dag.Access
	if err := json.Unmarshal([]byte(`"write"`), &a); err == nil || !strings.Contains(err.Error(), "write") {
		t.Errorf("the access write is read as %s, %v", a, err)
	}
}

// accessVisit is a visit that remembers what an effect was declared as.
type accessVisit struct {
	dag.Visit
	calls []dag.EffectCall
}

func (*accessVisit) Key() string { return "run/node" }

func (v *accessVisit) Effect(_ context.Context, call dag.EffectCall) (json.RawMessage, error) {
	v.calls = append(v.calls, call)
	return json.RawMessage("0"), nil
}

// Options of an effect are a part of its call; those that can't be refuse it, before the
// visit hears of it.
func TestAccessOfEffects(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []dag.EffectOption
		want    dag.Access
		wrong   string // what the error says
	}{
		{name: "undeclared", options: []dag.EffectOption{dag.Replayable}},
		{name: "reads", options: []dag.EffectOption{dag.Reads, dag.Replayable, dag.Reads}, want: dag.Reads},
		{name: "writes", options: []dag.EffectOption{dag.Writes}, want: dag.Writes},
		{name: "both", options: []dag.EffectOption{dag.Reads, dag.Writes}, wrong: "both"},
		{name: "zero", options: []dag.EffectOption{dag.Access(0)}, wrong: "undeclared"},
		{name: "unknown", options: []dag.EffectOption{dag.Access(9)}, wrong: "access(9)"},
		{name: "nil", options: []dag.EffectOption{nil}, wrong: "nil"},
	} {
		v := &accessVisit{}
		ctx := context.WithValue(t.Context(), dag.VisitKey{}, dag.Visit(v))
		_, err := dag.Effect(ctx, "charge", 3, func(context.Context, int) (int, error) {
			t.Errorf("%s: it was done", test.name)
			return 0, nil
		}, test.options...)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) || !strings.Contains(err.Error(), `"charge"`) || v.calls != nil {
				t.Errorf("%s: %v, the visit was asked %d times", test.name, err, len(v.calls))
			}
			continue
		}
		if err != nil || len(v.calls) != 1 || v.calls[0].Access != test.want {
			t.Errorf("%s: %+v, %v", test.name, v.calls, err)
		}
	}
}

// The policy of a node that runs a function may declare its access, and of no other; what is
// not known is refused.
func TestAccessInPolicies(t *testing.T) {
	for _, access := range []dag.Access{dag.Reads, dag.Access(9)} {
		body := dag.New[Notes]("body")
		dag.Step(body, "inside", step)
		inner, err := body.Build()
		if err != nil {
			t.Fatal(err)
		}
		b := dag.New[Notes]("g")
		first := dag.Step(b, "step", step).With(dag.Policy{Access: access})
		dag.Loop(b, "loop", inner, func(*Notes) bool { return true }, 2, first).With(dag.Policy{Access: access})
		_, err = b.Build()
		if err == nil || !strings.Contains(err.Error(), `node "loop": Policy.Access belongs to the nodes of its graph`) {
			t.Errorf("a loop of access %s: %v", access, err)
		}
		known := access == dag.Reads
		if complains := strings.Contains(err.Error(), `node "step": Policy.Access`); complains == known {
			t.Errorf("a step of access %s: %v", access, err)
		}
	}
}

// A rejected effect did not happen.
func TestDeniedIsNotDone(t *testing.T) {
	if !errors.Is(dag.ErrDenied, dag.NotDone) || errors.Is(dag.NotDone, dag.ErrDenied) || errors.Is(dag.ErrDenied, dag.ErrInDoubt) {
		t.Errorf("%v is told apart wrongly", dag.ErrDenied)
	}
}
