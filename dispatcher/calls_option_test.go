package dispatcher_test

import (
	"errors"
	"strings"
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

// What Continue refuses whatever the run is, CheckOptions does as well, with the same error, and
// needs no run for that. Of what a run has it knows nothing.
func TestCallsOptionsAreCheckedWithoutARun(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsGraph(t, new(witness).sees(nil)), store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 10}})
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]dispatcher.RunOption{
		"Labels":                    {dispatcher.Labels(map[string]string{"": "x"})},
		"a Correlation":             {dispatcher.Correlation("")},
		"Settings that are no JSON": {dispatcher.Settings(func() {}, "me")},
		"Settings that are large":   {dispatcher.Settings("12345678901", "me")},
		"Labels that tell secrets":  {dispatcher.Labels(map[string]string{"password": "hunter2hunter2"})},
		"one twice":                 {dispatcher.Correlation("a"), dispatcher.Correlation("a")},
		"one of Turn":               {dispatcher.OrStart()},
		"one of Enqueue":            {dispatcher.Message("m")},
	} {
		_, called := d.Continue(t.Context(), "r", options...)
		err := d.CheckOptions(options...)
		if err == nil || !strings.HasSuffix(called.Error(), strings.TrimPrefix(err.Error(), "dispatcher: ")) {
			t.Errorf("%s: CheckOptions = %v, Continue %v", name, err, called)
		}
	}
	for name, o := range map[string]dispatcher.RunOption{
		"other Labels":         dispatcher.Labels(map[string]string{"other": "x"}),
		"another Correlation":  dispatcher.Correlation("other"),
		"Settings of nobody":   dispatcher.Settings(1, ""),
		"a cursor of nothing":  dispatcher.From(checkpoint.Cursor{}),
		"no such question":     dispatcher.Expire("once#ok"),
		"the zero RunOption":   {},
		"an answer to nothing": dispatcher.Answering("once#ok", true),
	} {
		if err := d.CheckOptions(o); err != nil {
			t.Errorf("%s: CheckOptions = %v", name, err)
		}
	}
	var o *dispatcher.OptionError
	if err := new(dispatcher.Dispatcher[Tale]).CheckOptions(); !errors.As(err, &o) {
		t.Errorf("CheckOptions of no dispatcher = %v", err)
	}
}
