package continuation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// A node that waits is tested alone: with a script that says how its wait ended, or that it has
// not.
func TestScriptedWaits(t *testing.T) {
	wait := continuation.Wait{Kind: continuation.KindApproval, OnDeny: continuation.Feed}
	script := func(r continuation.Reply[string]) map[string]any {
		answer, err := continuation.Script(r)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"ok": answer}
	}
	for name, c := range map[string]struct {
		visit *dagtest.Visit
		want  continuation.Reply[string]
		err   error
	}{
		"answered": {
			&dagtest.Visit{Answers: script(continuation.Reply[string]{Payload: "yes", Kind: continuation.KindApproval, Actor: ann})},
			continuation.Reply[string]{Payload: "yes", Kind: continuation.KindApproval, Actor: ann}, nil,
		},
		"denied": {
			&dagtest.Visit{Answers: script(continuation.Reply[string]{Kind: continuation.KindApproval, Denied: true, Reason: "no"})},
			continuation.Reply[string]{Kind: continuation.KindApproval, Denied: true, Reason: "no"}, nil,
		},
		"unanswered":             {&dagtest.Visit{}, continuation.Reply[string]{}, dagtest.ErrUnanswered},
		"expired":                {&dagtest.Visit{Answers: map[string]any{"ok": dag.ErrExpired}}, continuation.Reply[string]{}, dag.ErrExpired},
		"skipped":                {&dagtest.Visit{Answers: map[string]any{"ok": dag.ErrSkipped}}, continuation.Reply[string]{}, dag.ErrSkipped},
		"after a failed attempt": {&dagtest.Visit{Attempt: 2, Answers: script(continuation.Reply[string]{Payload: "yes", Kind: continuation.KindApproval})}, continuation.Reply[string]{}, dagtest.ErrUnanswered},
	} {
		got, err := continuation.Await[string](dagtest.Context(t.Context(), c.visit), "ok", wait)
		if !errors.Is(err, c.err) || got.Payload != c.want.Payload || got.Kind != c.want.Kind || got.Actor != c.want.Actor ||
			got.Denied != c.want.Denied || got.Reason != c.want.Reason {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
	parts := &dagtest.Visit{Answers: map[string]any{
		"ok/1": script(continuation.Reply[string]{Payload: "yes", Kind: continuation.KindApproval})["ok"],
		"ok/2": script(continuation.Reply[string]{Payload: "no", Kind: continuation.KindApproval})["ok"],
	}}
	got, err := continuation.Await[string](dagtest.Context(t.Context(), parts), "ok", continuation.All(wait, wait))
	if err != nil || len(got.Parts) != 2 || got.Parts[0].Payload != "yes" || got.Parts[1].Payload != "no" {
		t.Errorf("all of two: %+v, %v", got, err)
	}
	if _, err := continuation.Await[string](t.Context(), "ok", wait); !errors.Is(err, dag.ErrNoVisit) {
		t.Errorf("outside a run: %v", err)
	}
}

// Outside a run nobody can wait, and the error says who tried.
func TestAwaitOutsideARun(t *testing.T) {
	var none context.Context
	for _, ctx := range []context.Context{t.Context(), none} {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		if !errors.Is(err, dag.ErrNoVisit) || !strings.Contains(err.Error(), `Await("answer")`) {
			t.Errorf("outside a run: %v", err)
		}
	}
}
