package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A node can be tested by calling it: outside a run the functions that work on its
// context do something sensible.
func TestOutsideARun(t *testing.T) {
	ctx := t.Context()
	if got := dag.Key(ctx); got != "" {
		t.Errorf("Key = %q", got)
	}
	if got := dag.Attempt(ctx); got != 1 {
		t.Errorf("Attempt = %d, want 1", got)
	}
	if got := dag.Failures(ctx); got != nil {
		t.Errorf("Failures = %v", got)
	}
	_, err := dag.Ask[bool](ctx, "publish", "Publish?")
	if !errors.Is(err, dag.ErrNoVisit) || !strings.Contains(err.Error(), `"publish"`) {
		t.Errorf("Ask: %v, want ErrNoVisit and the key", err)
	}
	if err := dag.Emit(ctx, "token", "a"); err != nil {
		t.Errorf("Emit: %v", err)
	}
	if got := dag.Key(context.WithValue(ctx, dag.VisitKey{}, "no visit")); got != "" {
		t.Errorf("Key of a context with another value = %q", got)
	}
}

// scripted is a visit whose answers are known.
type scripted struct {
	answers  map[string]string
	asked    []string
	wanted   []state.Type
	calls    []dag.AskCall
	failures []dag.Failure
	emitted  []string
	refuses  error
	settings string
	effects  []dag.EffectCall
}

var errWaits = errors.New("the visit waits")

func (*scripted) Key() string               { return "run/review/2/ask" }
func (*scripted) Attempt() int              { return 3 }
func (v *scripted) Failures() []dag.Failure { return v.failures }

func (v *scripted) Settings() json.RawMessage { return json.RawMessage(v.settings) }

func (v *scripted) Ask(call dag.AskCall) (json.RawMessage, error) {
	v.asked = append(v.asked, call.Key+": "+string(call.Question))
	v.wanted = append(v.wanted, call.Want)
	v.calls = append(v.calls, call)
	if a, ok := v.answers[call.Key]; ok {
		return json.RawMessage(a), nil
	}
	return nil, errWaits
}

func (v *scripted) Reply(key string) (dag.AnswerInfo, bool) {
	_, ok := v.answers[key]
	return dag.AnswerInfo{How: dag.AnswerGiven}, ok
}

func (v *scripted) Emit(name string, value json.RawMessage) error {
	v.emitted = append(v.emitted, name+": "+string(value))
	return v.refuses
}

// Effect does it, and keeps what it returned.
func (v *scripted) Effect(_ context.Context, call dag.EffectCall) (json.RawMessage, error) {
	v.effects = append(v.effects, call)
	if v.refuses != nil {
		return nil, v.refuses
	}
	if err := call.Run(""); err != nil {
		return nil, err
	}
	return call.Result()
}

func TestInsideAVisit(t *testing.T) {
	v := &scripted{failures: []dag.Failure{{Path: "library", Attempts: 3, Kind: dag.FailedTimeout, Message: "5s"}}}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	if got := dag.Key(ctx); got != "run/review/2/ask" {
		t.Errorf("Key = %q", got)
	}
	if got := dag.Attempt(ctx); got != 3 {
		t.Errorf("Attempt = %d", got)
	}
	if got := dag.Failures(ctx); len(got) != 1 || got[0] != v.failures[0] {
		t.Errorf("Failures = %v", got)
	}
}

type verdict struct {
	Approved bool   `json:"approved"`
	Note     string `json:"note"`
}

func TestAsk(t *testing.T) {
	v := &scripted{answers: map[string]string{"ok": `{"approved":true,"note":"fine"}`, "bad": `{"approved":"yes"}`}}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)

	got, err := dag.Ask[verdict](ctx, "ok", map[string]int{"pages": 3})
	if want := (verdict{true, "fine"}); err != nil || got != want {
		t.Errorf("Ask = %v, %v, want %v", got, err, want)
	}
	if want := `ok: {"pages":3}`; v.asked[0] != want {
		t.Errorf("asked %s, want %s", v.asked[0], want)
	}
	want, err := state.TypeOf[verdict]()
	if err != nil || fmt.Sprint(v.wanted[0]) != fmt.Sprint(want) {
		t.Errorf("wanted %v, want %v, %v", v.wanted[0], want, err)
	}
	if _, err := dag.Ask[verdict](ctx, "later", "?"); err != errWaits {
		t.Errorf("without an answer Ask: %v, want the error of the visit itself", err)
	}
	if _, err := dag.Ask[verdict](ctx, "bad", "?"); err == nil || !strings.Contains(err.Error(), `answer to "bad"`) {
		t.Errorf("an answer that does not fit: %v", err)
	}

	before := len(v.asked)
	if _, err := dag.Ask[verdict](ctx, "q", func() {}); err == nil || !strings.Contains(err.Error(), `question "q"`) {
		t.Errorf("a question that JSON can't say: %v", err)
	}
	if _, err := dag.Ask[func()](ctx, "q", "?"); err == nil || !strings.Contains(err.Error(), `answer to "q"`) {
		t.Errorf("an answer that JSON can't say: %v", err)
	}
	if len(v.asked) != before {
		t.Error("something was asked that can't be answered")
	}
}

// Emit gives the visit the value as JSON, and returns what the visit says.
func TestEmit(t *testing.T) {
	v := &scripted{}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	for _, value := range []any{"a\n", 3, nil, map[string]int{"of": 7}} {
		if err := dag.Emit(ctx, "token", value); err != nil {
			t.Errorf("Emit(%v) = %v", value, err)
		}
	}
	if err := dag.Emit(ctx, "token", func() {}); err == nil || !strings.Contains(err.Error(), `Emit("token")`) {
		t.Errorf("a value that JSON can't say: %v", err)
	}
	want := []string{`token: "a\n"`, "token: 3", "token: null", `token: {"of":7}`}
	if !slices.Equal(v.emitted, want) {
		t.Errorf("emitted %q, want %q", v.emitted, want)
	}
	v.refuses = dag.ErrVisitOver
	if err := dag.Emit(ctx, "token", 1); !errors.Is(err, dag.ErrVisitOver) {
		t.Errorf("Emit of a visit that is over: %v", err)
	}
}

func ExampleAsk() {
	publish := func(ctx context.Context, q *Inquiry) error {
		ok, err := dag.Ask[bool](ctx, "publish", "Publish the answer?")
		if err != nil {
			return err
		}
		if ok {
			q.Draft.Set("published")
		}
		return nil
	}
	// Outside a run there is nobody to ask.
	fmt.Println(publish(context.Background(), new(Inquiry)))
	// Output: dag: the context belongs to no visit of a run: Ask("publish")
}
