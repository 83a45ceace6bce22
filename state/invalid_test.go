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

// A value whose JSON has \ufffd in it is looked through for text that is not UTF-8, but only for what JSON has of it:
// what points to itself, is not exported, or is no text, is no reason to refuse it.
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
