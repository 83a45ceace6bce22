package dagtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
	"github.com/pawlgo/pawl/state"
)

func TestZeroVisit(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"zero": dagtest.Context(t.Context(), &dagtest.Visit{}),
		"nil":  dagtest.Context(t.Context(), nil),
	} {
		if got := dag.Key(ctx); got != "run/node" {
			t.Errorf("%s: Key = %q", name, got)
		}
		if got := dag.Attempt(ctx); got != 1 {
			t.Errorf("%s: Attempt = %d, want 1", name, got)
		}
		if got := dag.Failures(ctx); len(got) != 0 {
			t.Errorf("%s: Failures = %v", name, got)
		}
		if _, err := dag.Ask[bool](ctx, "publish", "?"); !errors.Is(err, dagtest.ErrUnanswered) {
			t.Errorf("%s: Ask: %v, want ErrUnanswered", name, err)
		}
	}
}

func TestScriptedVisit(t *testing.T) {
	failure := dag.Failure{Path: "library", Attempts: 3, Kind: dag.FailedTimeout, Message: "5s"}
	v := &dagtest.Visit{Key: "r/pay", Attempt: 2, Failures: []dag.Failure{failure}}
	ctx := dagtest.Context(t.Context(), v)
	if got := dag.Key(ctx); got != "r/pay" {
		t.Errorf("Key = %q", got)
	}
	if got := dag.Attempt(ctx); got != 2 {
		t.Errorf("Attempt = %d", got)
	}
	got := dag.Failures(ctx)
	if len(got) != 1 || got[0] != failure {
		t.Fatalf("Failures = %v", got)
	}
	got[0].Path = "changed"
	if dag.Failures(ctx)[0] != failure {
		t.Error("a node has changed what the script says")
	}
}

type approval struct {
	Approved bool   `json:"approved"`
	Note     string `json:"note,omitempty"`
}

// An answer is a value, or JSON; the questions are remembered whether or not they have one.
func TestAnswers(t *testing.T) {
	v := &dagtest.Visit{Answers: map[string]any{
		"value": approval{true, "fine"},
		"json":  json.RawMessage(`{"approved":true,"note":"fine"}`),
	}}
	ctx := dagtest.Context(t.Context(), v)
	for _, key := range []string{"value", "json"} {
		got, err := dag.Ask[approval](ctx, key, map[string]int{"pages": 3})
		if want := (approval{true, "fine"}); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", key, got, err, want)
		}
	}
	_, err := dag.Ask[bool](ctx, "later", "Is it good?")
	if !errors.Is(err, dagtest.ErrUnanswered) || !strings.Contains(err.Error(), `"later"`) {
		t.Errorf("without an answer: %v", err)
	}
	asked := v.Asked()
	if len(asked) != 3 {
		t.Fatalf("asked %v", asked)
	}
	if q := asked[0]; q.Key != "value" || string(q.Question) != `{"pages":3}` || !q.Answered || q.Want.Kind != "object" {
		t.Errorf("first question %+v", q)
	}
	if q := asked[2]; q.Key != "later" || string(q.Question) != `"Is it good?"` || q.Answered || q.Want.Kind != "bool" {
		t.Errorf("last question %+v", q)
	}
}

// An answer that a run would refuse is refused.
func TestAnswersOfTheWrongType(t *testing.T) {
	for name, answer := range map[string]any{
		"another type":    "yes",
		"a missing field": json.RawMessage(`{}`),
		"no JSON":         json.RawMessage(`{`),
		"no value":        func() {},
		"null":            nil,
	} {
		v := &dagtest.Visit{Answers: map[string]any{"sure": answer}}
		_, err := dag.Ask[bool](dagtest.Context(t.Context(), v), "sure", "?")
		if err == nil || errors.Is(err, dagtest.ErrUnanswered) || !strings.Contains(err.Error(), `"sure"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The context is the test's: a node sees when it is cancelled.
func TestContextDescends(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	node := dagtest.Context(ctx, &dagtest.Visit{})
	cancel()
	if !errors.Is(node.Err(), context.Canceled) {
		t.Errorf("Err = %v", node.Err())
	}
}

// A node reads the settings that the script gives it.
func TestSettingsAreScripted(t *testing.T) {
	type limits struct{ Most int }
	for _, given := range []any{limits{3}, map[string]any{"Most": 3, "Other": "x"}, json.RawMessage(`{"Most":3}`)} {
		got, err := dag.Settings[limits](dagtest.Context(t.Context(), &dagtest.Visit{Settings: given}))
		if err != nil || got.Most != 3 {
			t.Errorf("Settings of %v = %v, %v", given, got, err)
		}
	}
	got, err := dag.Settings[limits](dagtest.Context(t.Context(), nil))
	if err != nil || got.Most != 0 {
		t.Errorf("no Settings = %v, %v", got, err)
	}
}

// An answer, an output of a script or settings of text that is not UTF-8 are refused, as in a run.
func TestTextThatIsNotUTF8IsRefused(t *testing.T) {
	v := &dagtest.Visit{Answers: map[string]any{"word": "a\xff"}}
	if word, err := dag.Ask[string](dagtest.Context(t.Context(), v), "word", "?"); !errors.Is(err, state.ErrUTF8) {
		t.Errorf("the answer is %q, %v", word, err)
	}
}
