package dagtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// How a scripted question ends is what Ask and Reply tell, as in a run.
func TestAskEnds(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		answer  any // nil is none
		options []dag.AskOption
		want    string
		err     error
		info    dag.AnswerInfo
	}{
		"unanswered":       {nil, []dag.AskOption{dag.Within(1), dag.OrDefault("none")}, "", dagtest.ErrUnanswered, dag.AnswerInfo{}},
		"answered":         {"this", nil, "this", nil, dag.AnswerInfo{How: dag.AnswerGiven}},
		"raw":              {json.RawMessage(`"this"`), nil, "this", nil, dag.AnswerInfo{How: dag.AnswerGiven}},
		"by somebody":      {dagtest.Answer{"this", "Ada", at}, nil, "this", nil, dag.AnswerInfo{How: dag.AnswerGiven, By: "Ada", At: at}},
		"skipped":          {dag.ErrSkipped, nil, "", dag.ErrSkipped, dag.AnswerInfo{How: dag.AnswerSkipped}},
		"skipped by":       {dagtest.Answer{dag.ErrSkipped, "Ada", at}, nil, "", dag.ErrSkipped, dag.AnswerInfo{How: dag.AnswerSkipped, By: "Ada", At: at}},
		"expired":          {dag.ErrExpired, []dag.AskOption{dag.Within(1)}, "", dag.ErrExpired, dag.AnswerInfo{How: dag.AnswerExpired}},
		"with a default":   {dag.ErrExpired, []dag.AskOption{dag.Until(at), dag.OrDefault("none")}, "none", nil, dag.AnswerInfo{How: dag.AnswerDefault}},
		"default at":       {dagtest.Answer{Value: dag.ErrExpired, At: at}, []dag.AskOption{dag.Until(at), dag.OrDefault("none")}, "none", nil, dag.AnswerInfo{How: dag.AnswerDefault, At: at}},
		"skipped, default": {dag.ErrSkipped, []dag.AskOption{dag.Until(at), dag.OrDefault("none")}, "", dag.ErrSkipped, dag.AnswerInfo{How: dag.AnswerSkipped}},
	} {
		v := &dagtest.Visit{}
		if c.answer != nil {
			v.Answers = map[string]any{"word": c.answer}
		}
		ctx := dagtest.Context(t.Context(), v)
		for range 2 { // asked again it is the same
			got, err := dag.Ask[string](ctx, "word", "which?", c.options...)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%s: Ask = %q, %v, want %q, %v", name, got, err, c.want, c.err)
			}
			if info, ok := dag.Reply(ctx, "word"); info != c.info || ok != (c.answer != nil) {
				t.Errorf("%s: Reply = %+v, %t, want %+v", name, info, ok, c.info)
			}
		}
		if q := v.Asked(); len(q) != 2 || q[0].Answered != (c.answer != nil) || q[0].Key != "word" {
			t.Errorf("%s: asked was %+v", name, q)
		}
	}
}

// One key is one question in an attempt, as in a run. Another attempt may ask another.
func TestAskOneQuestionForEachKey(t *testing.T) {
	v := &dagtest.Visit{Answers: map[string]any{"word": "this"}}
	for _, question := range []string{"which?", "what?"} {
		ctx := dagtest.Context(t.Context(), v)
		if _, err := dag.Ask[string](ctx, "word", question); err != nil {
			t.Errorf("Ask returned %v", err)
		}
		var misuse *dag.ArgumentError
		if _, err := dag.Ask[string](ctx, "word", "how?"); !errors.As(err, &misuse) {
			t.Errorf("of another question Ask returned %v", err)
		}
		if _, err := dag.Ask[int](ctx, "word", question); !errors.As(err, &misuse) {
			t.Errorf("for another type Ask returned %v", err)
		}
	}
	if n := len(v.Asked()); n != 2 {
		t.Errorf("%d questions were asked", n)
	}
}

// Inside an effect the visit has the answers that it has outside of it, as in a run.
func TestAnswersInsideAnEffect(t *testing.T) {
	ctx := dagtest.Context(t.Context(), &dagtest.Visit{Answers: map[string]any{"word": "this", "sure": true}})
	var inside []dag.Answered
	_, err := dag.Effect(ctx, "tell", 1, func(ctx context.Context, _ int) (int, error) {
		inside = dag.Answers(ctx)
		return 0, nil
	})
	if outside := dag.Answers(ctx); err != nil || len(outside) != 2 || !reflect.DeepEqual(inside, outside) {
		t.Errorf("inside it has %+v, outside %+v, %v", inside, outside, err)
	}
}

// What a run would not do is refused: a question that never expires can't have, and an answer
// has to fit. The options of a question are what Asked tells.
func TestAskScriptRefused(t *testing.T) {
	for want, answer := range map[string]any{
		"never does":       dag.ErrExpired,
		"answer to \"word": dagtest.Answer{Value: 7},
		"can't":            errors.New("an error that no question ends with"),
		"can't end":        dagtest.Answer{Value: errors.New("an error that no question ends with"), By: "Ada"},
	} {
		ctx := dagtest.Context(t.Context(), &dagtest.Visit{Answers: map[string]any{"word": answer}})
		if _, err := dag.Ask[string](ctx, "word", "which?"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask returned %v, want %s", err, want)
		}
	}
	v := &dagtest.Visit{}
	node := func(ctx context.Context) error {
		_, err := dag.Ask[int](ctx, "number", "how many?", dag.Within(time.Hour), dag.OrDefault(3))
		return err
	}
	if err := node(dagtest.Context(t.Context(), v)); !errors.Is(err, dagtest.ErrUnanswered) {
		t.Errorf("Ask returned %v", err)
	}
	if q := v.Asked()[0]; q.Within != time.Hour || string(q.Default) != "3" || !q.Until.IsZero() {
		t.Errorf("asked was %+v", q)
	}
}

// Without a context there is none to make: the panic says whose it is to be.
func TestContextOfNil(t *testing.T) {
	defer func() {
		if told := fmt.Sprint(recover()); told != "dagtest: Context: the context is nil: give it that of the test" {
			t.Errorf("Context panicked with %s", told)
		}
	}()
	dagtest.Context(nil, nil) //lint:ignore SA1012 what is tested
}
