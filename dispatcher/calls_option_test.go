package dispatcher_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A cursor is demanded of Resume alone: a call that may open a run refuses it, and opens
// none. The zero RunOption wishes nothing.
func TestCallsFromIsForResume(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsGraph(t, new(witness).sees(nil)), store, dispatcher.Options{})
	from := dispatcher.From(checkpoint.Cursor{Run: "r", Seq: 1})
	_, err := d.Run(t.Context(), "r", nil, from)
	var o *dispatcher.OptionError
	if !errors.As(err, &o) || o.Option != "From" {
		t.Errorf("Run from a cursor: %v, want an OptionError", err)
	}
	_, err = d.Start(t.Context(), "r", nil, dispatcher.RunOption{}, from)
	if o = nil; !errors.As(err, &o) || o.Option != "From" {
		t.Errorf("Start from a cursor: %v, want an OptionError", err)
	}
	if _, err := store.Stat(t.Context(), "r"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the refused calls left a run: %v", err)
	}
	if _, err := d.Run(t.Context(), "r", nil, dispatcher.RunOption{}); err != nil {
		t.Errorf("the zero RunOption: %v", err)
	}
}

// An option that is given twice is refused: nobody can tell which one is meant.
func TestCallsOptionGivenTwice(t *testing.T) {
	d := process(t, callsGraph(t, new(witness).sees(nil)), new(memory.Store), dispatcher.Options{})
	for name, options := range map[string][]dispatcher.RunOption{
		"Settings":    {dispatcher.Settings(1, "me"), dispatcher.Settings(1, "me")},
		"Labels":      {dispatcher.Labels(nil), dispatcher.Labels(nil)},
		"Correlation": {dispatcher.Correlation("a"), dispatcher.Correlation("b")},
	} {
		_, err := d.Run(t.Context(), "r", nil, options...)
		var o *dispatcher.OptionError
		if !errors.As(err, &o) || o.Option != name {
			t.Errorf("%s twice: %v, want an OptionError", name, err)
		}
	}
}
