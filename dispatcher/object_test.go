package dispatcher

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// What is written by hand is what encode makes of the same values.
func TestObjectsAreWhatEncodeWrites(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 120_000, time.UTC)
	until := at.Add(time.Hour)
	for _, text := range []string{
		"", "plain", `"quoted" \ back`, "a\nline\x01", "<b>&amp;</b>", "größer, 日本語", "\u2028", "\xff broken", "\x7f",
	} {
		for _, raw := range []string{"", "true", `"yes"`, `{"a": [1, 2], "b":	" spaced "}`, `"<\u003c"`} {
			value := json.RawMessage(raw)
			a := checkpoint.Answer{Value: value, How: checkpoint.AnswerGiven, By: text, At: at, Reason: text}
			same(t, encodeAnswer(&a), encode(a))
			p := postedAnswers{Replies: []reply{{"one", "answered", value}, {"two" + text, "skipped", nil}}, By: text, Reason: text}
			same(t, p.encode(), encode(p))
			p = postedAnswers{Replies: p.Replies[:1]}
			same(t, p.encode(), encode(p))
			p.At = at
			same(t, p.encode(), encode(p))
			for _, i := range []checkpoint.Interrupt{
				{Kind: kindBefore},
				{Kind: kindAsked, Key: text, Question: value, Want: value},
				{Kind: kindAsked, Key: text, Question: value, Until: until, Wait: time.Hour, Default: value},
				{Kind: kindEffect, Key: text, Question: value, By: text, Reason: text, Default: value},
			} {
				same(t, encodeInterrupt(&i), encode(i))
			}
			if raw == "" {
				value = json.RawMessage("null") // an effect has an input
			}
			for _, does := range []checkpoint.DeclaredEffect{
				{}, {Operation: text, Access: "writes", Doubt: "asks"}, {Touches: []string{text, "b"}, Replayable: true}, {Reversible: true},
			} {
				b := checkpoint.BegunEffect{Input: value, Digest: text, Output: json.RawMessage(raw), At: at, Approval: text, DeclaredEffect: does}
				same(t, encodeBegun(&b), encode(b))
			}
			for _, end := range []checkpoint.EndedEffect{
				{}, {Output: json.RawMessage(raw), Took: time.Second, Reused: text}, {NotDone: text, Resolved: true}, {Lost: text, By: text, Interrupt: text},
			} {
				same(t, encodeEnded(&end), encode(end))
			}
		}
	}
	text, own := state.Type{Kind: "string"}, state.Type{Kind: "own", Name: "<name> \""}
	for _, w := range []state.Type{
		{}, text, own, {Kind: "array", Len: 2, Elem: &text}, {Kind: "ref", Up: 1},
		{Kind: "map", Key: &text, Elem: &text}, {Kind: "object", Fields: []state.Field{{Name: "a", Type: text}}},
		{Kind: "object", Fields: []state.Field{
			{Name: "é<\"", Type: own}, {Name: "b", Type: state.Type{Kind: "list", Elem: &own}, Quoted: true}, {Name: "c"}}},
		{Kind: "pointer", Elem: &state.Type{Kind: "array", Elem: &state.Type{Kind: "object"}}},
	} {
		same(t, encodeType(&w), encode(w))
	}
}

func same(t *testing.T, is, want json.RawMessage) {
	t.Helper()
	if string(is) != string(want) {
		t.Errorf("written: %s, want %s", is, want)
	}
}

// Space in texts is none between values, which raw JSON is not written with.
func TestSpaceBetweenValues(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"a b":"c d"}`: false, `{"a" :1}`: true, `["\" ","\\"]`: false, `["\\" ]`: true, `["\\", "\""]`: true, ` 1`: true, "1\n": true, `"\\ \""`: false, `1`: false,
	} {
		if is := spaced([]byte(raw)); is != want {
			t.Errorf("%s has space: %t, want %t", raw, is, want)
		}
	}
}

// What is read by hand is what json.Unmarshal makes of it, whatever is wrong with it.
func TestWhatIsReadByHandIsWhatUnmarshalReads(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 120_000, time.UTC)
	var plain int
	for _, text := range []string{"", "plain", `"quoted" \ back`, "größer", "a\nline", "\x7f"} {
		for _, raw := range []string{
			"", "true", "false", "null", "0", "-1.5e+3", `""`, `"yes"`, `"a, b"`, `"\""`, `"größer"`, `[1,2]`, `{"how":"x"}`,
		} {
			value := json.RawMessage(raw)
			readsAs(t, encodeAnswer(&checkpoint.Answer{Value: value, How: checkpoint.AnswerGiven, By: text, At: at, Reason: text}), plainAnswer, &plain)
			for _, want := range []string{"", `{"kind":"bool"}`, `{"kind":"own","name":"x"}`, "null", "{}"} {
				readsAs(t, encodeInterrupt(&checkpoint.Interrupt{Kind: kindAsked, Key: text, Question: value, Want: json.RawMessage(want)}), plainInterrupt, &plain)
			}
		}
		for _, o := range []checkpoint.Opening{
			{Graph: text, Digest: text, Correlation: text}, {Graph: "g", Digest: text, Labels: map[string]string{"a": "b"}}, {Graph: "g", Trimmed: 1},
			{Graph: "g", Digest: "d", Labels: map[string]string{text: "b", "c": text, "d": ""}, Correlation: "c"},
		} {
			readsAs(t, encode(o), plainOpening, &plain)
		}
		readsAs(t, encode(state.Type{Kind: text}), plainType, &plain)
		readsAs(t, encode(state.Type{Kind: text, Name: text}), plainType, &plain)
	}
	if plain < 44 {
		t.Errorf("%d were read by hand, want most of what is plain", plain)
	}
}

// readsAs compares parse and json.Unmarshal for data, and for all that a byte more, less, or
// another one makes of it. It counts in plain what is read by hand as it is.
func readsAs[T any](t *testing.T, data []byte, by func([]byte) (T, bool), plain *int) {
	t.Helper()
	if _, ok := by(data); ok {
		*plain++
	}
	alike := func(data []byte) {
		t.Helper()
		var want T
		wantErr := json.Unmarshal(data, &want)
		lent := bytes.Clone(data)
		is, err := parse(lent, by)
		clear(lent) // what was read keeps nothing of it
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(is, want) {
			t.Errorf("%s is read as %+v, %v, want %+v, %v", data, is, err, want, wantErr)
		}
	}
	alike(data)
	for i := range data {
		alike(data[:i])
		for _, c := range []byte("\"\\,:{}[]x0 \x01\xff") {
			changed := bytes.Clone(data)
			changed[i] = c
			alike(changed)
			alike(slices.Insert(bytes.Clone(data), i, c))
		}
	}
}

// An answer under another id is another one, though it says the same: its sender is not told that
// it was taken.
func TestAnswerUnderAnotherMessageIsAnotherOne(t *testing.T) {
	x := reply{Interrupt: "i", How: checkpoint.AnswerGiven, Value: json.RawMessage(`1`)}
	a := &postedAnswers{Replies: []reply{x}, Message: "m"}
	for message, want := range map[string]bool{"m": true, "n": false, "": false} {
		b := &postedAnswers{Replies: []reply{x}, Message: message}
		e := checkpoint.Entry{Kind: checkpoint.Answered, ID: "i", Data: encodeAnswer(&checkpoint.Answer{Value: x.Value, How: x.How, Message: message})}
		if a.says(b) != want || x.counted(&e, a) != want {
			t.Errorf("under %q it is the same: %t, and counts: %t; want %t", message, a.says(b), x.counted(&e, a), want)
		}
	}
}
