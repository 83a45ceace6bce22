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
	"github.com/pawlgo/pawl/state"
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

// A question is asked again under its key if it is the same, or about the same, and wants the same.
func TestAskRepeats(t *testing.T) {
	asks := func(question, about, want string) dag.AskCall {
		return dag.AskCall{Key: "k", Question: json.RawMessage(question), About: json.RawMessage(about), Want: state.Type{Kind: want}}
	}
	first, about := asks(`"how many?"`, "", "int"), asks(`"how many?"`, `"apples"`, "int")
	for name, c := range map[string]struct {
		first, again dag.AskCall
		repeats      bool
	}{
		"the same":                {first, first, true},
		"other words":             {first, asks(`"how much?"`, "", "int"), false},
		"another answer":          {first, asks(`"how many?"`, "", "string"), false},
		"other words about it":    {about, asks(`"tell me"`, `"apples"`, "int"), true},
		"about something else":    {about, asks(`"how many?"`, `"pears"`, "int"), false},
		"another answer about it": {about, asks(`"how many?"`, `"apples"`, "string"), false},
		"now about something":     {first, about, false},
		"about nothing any more":  {about, first, false},
	} {
		err := c.again.Repeats(&c.first)
		if refused := (*dag.ArgumentError)(nil); (err == nil) != c.repeats || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fussy decodes from no text but "yes", of its own.
type fussy struct{}

func (*fussy) UnmarshalText(text []byte) error {
	if string(text) != "yes" {
		return errors.New("it is not yes")
	}
	return nil
}

func (fussy) MarshalText() ([]byte, error) { return []byte("yes"), nil }

// The default of a question whose answer decodes itself is tried, also if only its keys do.
func TestAskDefaultIsDecoded(t *testing.T) {
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, &scripted{answers: map[string]string{}})
	_, err := dag.Ask[fussy](ctx, "k", "?", dag.Within(time.Hour), dag.OrDefault("no"))
	_, keys := dag.Ask[map[fussy]int](ctx, "k", "?", dag.Within(time.Hour), dag.OrDefault(map[string]int{"no": 1}))
	for _, err := range []error{err, keys} {
		if refused := (*dag.ArgumentError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "it is not yes") {
			t.Errorf("Ask returns %v", err)
		}
	}
}
