package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An explosive says nothing in JSON.
type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }

// valuesAsked is a run that waits for any JSON.
func valuesAsked(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	b := dag.New[Tale]("values")
	dag.Step(b, "ask", func(ctx context.Context, s *Tale) error {
		answer, err := dag.Ask[json.RawMessage](ctx, "k", "which?")
		s.Word.Set(string(answer))
		return err
	})
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
	return d
}

// What a call is given to be kept is refused if it holds text that is not UTF-8, or panics when it
// is to be said in JSON: with the error that the call has for other values that can't be, and
// nothing has changed.
func TestValuesThatCannotBeKept(t *testing.T) {
	var store memory.Store
	d, ctx := valuesAsked(t, &store), t.Context()
	open, err := d.State(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	id := open.Interrupts[0].ID
	var answer *dispatcher.AnswerError
	var option *dispatcher.OptionError
	for name, value := range map[string]any{
		"text": "a\xffb", "key": map[string]int{"\xff": 1}, "inside": []any{map[string]any{"a": "\xff"}},
		"raw": json.RawMessage("\"\xff\""), "panic": explosive{}, "panic inside": map[string]any{"a": explosive{}},
	} {
		says := "UTF-8"
		if strings.HasPrefix(name, "panic") {
			says = "panic: boom"
		}
		unchanged(t, &store, run, func() {
			if err := d.Answer(ctx, run, "", value); !errors.As(err, &answer) || !errors.Is(err, dispatcher.ErrAnswerType) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: Answer: %v", name, err)
			}
			if err := d.Answers(ctx, run, map[string]any{id: value}); !errors.As(err, &answer) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: Answers: %v", name, err)
			}
			if err := d.Note(ctx, run, "shop.note", value); !errors.As(err, &option) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: Note: %v", name, err)
			}
			if _, err := d.Resume(ctx, run, dispatcher.Settings(value, "ann")); !errors.As(err, &option) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: Settings: %v", name, err)
			}
		})
	}
}

// JSON that is none is refused with what is wrong with it; that there is nothing in it says no
// parser.
func TestValuesThatAreNotJSON(t *testing.T) {
	var store memory.Store
	d, ctx := valuesAsked(t, &store), t.Context()
	for value, says := range map[string]string{
		"": "it is an empty json.RawMessage, which is not JSON: give nil for null", `{"a":`: "it is not JSON: unexpected end of JSON input",
		`{a}`: "it is not JSON: invalid character 'a'",
	} {
		unchanged(t, &store, run, func() {
			if err := d.Answer(ctx, run, "", json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("Answer with %q: %v, want %q", value, err, says)
			}
			if _, err := d.Resume(ctx, run, dispatcher.Settings(json.RawMessage(value), "ann")); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("Settings %q: %v, want %q", value, err, says)
			}
		})
	}
}

// Of several answers that can't be kept it is always the same one that is told: the first, in the
// order of the interrupts.
func TestAnswersRefuseTheFirst(t *testing.T) {
	var store memory.Store
	d := valuesAsked(t, &store)
	for range 40 {
		var answer *dispatcher.AnswerError
		err := d.Answers(t.Context(), run, map[string]any{"d": explosive{}, "b": explosive{}, "a": 1, "c": explosive{}})
		if !errors.As(err, &answer) || answer.Interrupt != "b" {
			t.Fatalf("Answers: %v, want the error of b", err)
		}
	}
}

// What only looks like the text that encoding/json writes for such text is kept as it is.
func TestValuesThatLookReplaced(t *testing.T) {
	for _, value := range []any{
		"a\ufffdb", `a\ufffdb`, json.RawMessage(`"\ufffd"`), map[string]any{"a": json.RawMessage(`"\ufffd"`)},
	} {
		var store memory.Store
		d, ctx := valuesAsked(t, &store), t.Context()
		if err := d.Note(ctx, run, "shop.note", value); err != nil {
			t.Errorf("Note of %q: %v", value, err)
		}
		if err := d.Answer(ctx, run, "", value); err != nil {
			t.Errorf("Answer of %q: %v", value, err)
		}
		res, err := d.Resume(ctx, run, dispatcher.Settings(value, "ann"))
		completes(t, res, err)
		var is, want any
		raw, err := json.Marshal(value)
		if err != nil || json.Unmarshal(raw, &want) != nil || json.Unmarshal([]byte(res.State.Word.Get()), &is) != nil {
			t.Fatal(err)
		}
		if is, want := encoded(t, is), encoded(t, want); is != want || string(res.Settings) != want {
			t.Errorf("the answer is %s and the settings are %s, want %s", is, res.Settings, want)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := state.Encode(&v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// What an effect has returned, and what an interceptor asks, is text as well.
func TestValuesOfEffectsAndInterceptors(t *testing.T) {
	var side doubtSide
	var store memory.Store
	d := doubtful(t, &side, &store)
	for _, value := range []any{"a\xffb", explosive{}} {
		unchanged(t, &store, run, func() {
			var refused *dispatcher.ResolutionError
			err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened(value))
			if !errors.As(err, &refused) || !errors.Is(err, dispatcher.ErrAnswerType) {
				t.Errorf("Happened(%T): %v", value, err)
			}
		})
		var w witness
		asks := process(t, line(t, &w, nil), new(memory.Store), hookBefore([]string{"a"}, always(dispatcher.Ask(value))))
		_, err := asks.Run(t.Context(), run, nil)
		var n *dispatcher.NodeError
		if !errors.As(err, &n) || n.Kind != dag.FailedDenied {
			t.Errorf("an interceptor that asks %T: %v", value, err)
		}
	}
}
