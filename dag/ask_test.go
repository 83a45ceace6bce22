package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// What the options of a question say is what its visit is asked.
func TestAskOptions(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	for name, c := range map[string]struct {
		options []dag.AskOption
		want    dag.AskCall
	}{
		"none":    {nil, dag.AskCall{}},
		"nothing": {[]dag.AskOption{{}}, dag.AskCall{}},
		"within":  {[]dag.AskOption{dag.Within(time.Hour)}, dag.AskCall{Within: time.Hour}},
		"until":   {[]dag.AskOption{dag.Until(until)}, dag.AskCall{Until: until.UTC()}},
		"default": {
			[]dag.AskOption{dag.OrDefault(verdict{true, "fine"}), dag.Within(1)},
			dag.AskCall{Within: 1, Default: json.RawMessage(`{"approved":true,"note":"fine"}`)},
		},
	} {
		v := &scripted{answers: map[string]string{"ok": `{"approved":true}`}}
		ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
		if _, err := dag.Ask[verdict](ctx, "ok", "?", c.options...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := v.calls[0]
		if got.Within != c.want.Within || got.Until != c.want.Until || string(got.Default) != string(c.want.Default) || got.Key != "ok" {
			t.Errorf("%s: the visit was asked %+v, want %+v", name, got, c.want)
		}
		if want := name != "none" && name != "nothing"; got.Expires() != want {
			t.Errorf("%s: it expires: %t", name, got.Expires())
		}
	}
}

// A question that can't end as it says is refused before anybody is asked, and the error names
// it and what is wrong.
func TestAskOptionsRefused(t *testing.T) {
	for want, options := range map[string][]dag.AskOption{
		"is given Within: 0s is no time":             {dag.Within(0)},
		"is given Within: -1ns is no time":           {dag.Within(-1)},
		"Until: 0001-01-01 00:00:00 +0000 UTC is no": {dag.Until(time.Time{})},
		"is no instant that can be waited for":       {dag.Until(time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC))},
		"9999-12-31 23:59:59 -0100":                  {dag.Until(time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)))}, // the year 10000 in UTC
		"has Within and Until":                       {dag.Within(1), dag.Until(time.Unix(1, 0))},
		"is given Within twice":                      {dag.Within(1), dag.Within(1)},
		"has a default and never expires":            {dag.OrDefault(verdict{})},
		"OrDefault: ":                                {dag.Within(1), dag.OrDefault("yes")},
		"OrDefault: json":                            {dag.Within(1), dag.OrDefault(func() {})},
	} {
		v := &scripted{}
		ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
		_, err := dag.Ask[verdict](ctx, "ok", "?", options...)
		if err == nil || !strings.Contains(err.Error(), `question "ok" `) || !strings.Contains(err.Error(), want) {
			t.Errorf("Ask returned %v, want %s", err, want)
		}
		if len(v.calls) > 0 {
			t.Errorf("%s: the visit was asked", want)
		}
	}
}

// Reply tells what the visit knows, and outside a run nothing.
func TestReply(t *testing.T) {
	v := &scripted{answers: map[string]string{"ok": "true"}}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	if info, ok := dag.Reply(ctx, "ok"); !ok || info.How != dag.AnswerGiven {
		t.Errorf("Reply = %+v, %t", info, ok)
	}
	if info, ok := dag.Reply(ctx, "other"); ok {
		t.Errorf("of what was not asked Reply = %+v", info)
	}
	if info, ok := dag.Reply(t.Context(), "ok"); ok || info != (dag.AnswerInfo{}) {
		t.Errorf("outside a run Reply = %+v, %t", info, ok)
	}
}

// The errors with which a question ends are told apart.
func TestAskErrors(t *testing.T) {
	all := []error{dag.ErrExpired, dag.ErrSkipped, dag.ErrNoVisit, dag.ErrAsked}
	for i, err := range all {
		if slices.ContainsFunc(all[i+1:], func(other error) bool { return errors.Is(err, other) || errors.Is(other, err) }) {
			t.Errorf("%v is another one", err)
		}
	}
}

// An answer of any type can't be asked for: the error says what can.
func TestAskForAnInterface(t *testing.T) {
	v := &scripted{answers: map[string]string{"ok": `7`}}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	_, err := dag.Ask[any](ctx, "ok", "?")
	if err == nil || !strings.Contains(err.Error(), `answer to "ok": state: any is an interface`) ||
		!strings.Contains(err.Error(), "name a concrete type, or json.RawMessage") || len(v.calls) > 0 {
		t.Errorf("Ask returned %v", err)
	}
	if raw, err := dag.Ask[json.RawMessage](ctx, "ok", "?"); string(raw) != "7" {
		t.Errorf("Ask returned %s, %v", raw, err)
	}
}
