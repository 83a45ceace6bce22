package state_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/state"
)

type looped struct {
	*looped
	Text string
	Raw  json.RawMessage
}

type hidden string

// A value whose JSON has \ufffd in it is looked through for text that is not UTF-8, but only for
// what JSON has of it: what points to itself, is not exported, or is no text, is no reason to
// refuse it.
func TestTextThatJSONLeavesOut(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`"\ufffd"`)
	itself := looped{Text: "a", Raw: raw}
	itself.looped = &itself
	for name, v := range map[string]any{
		"itself": itself,
		"hidden": struct {
			hidden
			Raw json.RawMessage
		}{"\xff", raw},
		"bytes": struct {
			Bytes []byte
			Raw   json.RawMessage
		}{[]byte("\xff"), raw},
	} {
		if enc, err := state.Encode(&v); err != nil {
			t.Errorf("%s: %s, %v", name, enc, err)
		}
	}
	type base struct{ Text string }
	for name, v := range map[string]any{
		"embedded": struct {
			base
			Raw json.RawMessage
		}{base{"\xff"}, raw},
		"behind itself": func() any { v := itself; v.Text = "\xff"; return v }(),
	} {
		if enc, err := state.Encode(&v); !errors.Is(err, state.ErrUTF8) {
			t.Errorf("%s: %s, %v", name, enc, err)
		}
	}
}

type (
	chain struct {
		Next *chain `json:",omitempty"`
		Text string
	}
	chainOfTwo struct {
		Next **chainOfTwo `json:",omitempty"`
		Text string
	}
	link struct {
		Next *chainEmbedded `json:",omitempty"`
		Text string
	}
	chainEmbedded struct{ *link }
)

// Text that is not UTF-8 is found as deep as a value may be, however many pointers lead there.
func TestInvalidUTF8IsFoundAtTheGreatestDepth(t *testing.T) {
	t.Parallel()
	one, two, embedded := &chain{Text: "\xff"}, &chainOfTwo{Text: "\xff"}, &chainEmbedded{&link{Text: "\xff"}}
	for range state.MaxDepth - 1 {
		next := two
		one, two, embedded = &chain{Next: one}, &chainOfTwo{Next: &next}, &chainEmbedded{&link{Next: embedded}}
	}
	for name, v := range map[string]any{"pointers": one, "pointers to pointers": two, "embedded pointers": embedded} {
		if enc, err := state.Encode(&v); !errors.Is(err, state.ErrUTF8) {
			t.Errorf("%s: %d bytes, %v", name, len(enc), err)
		}
	}
	if enc, err := state.Encode(&chain{Next: one}); !errors.Is(err, state.ErrDepth) {
		t.Errorf("one deeper: %d bytes, %v", len(enc), err)
	}
}
