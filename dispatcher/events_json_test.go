package dispatcher_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// Events go to a browser as JSON and back: kinds by their names, which stay when there are further
// ones, and errors as what the log tells of them.
func TestEventsAreJSON(t *testing.T) {
	var store memory.Store
	d := process(t, callsTalk(t, nil), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, hear("one"))
	completes(t, res, err)
	failed := false
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if name := `"Kind":"` + e.Kind.String() + `"`; !strings.Contains(string(text), name) || strings.Contains(string(text), `"Err"`) {
			t.Errorf("%s is %s", e, text)
		}
		var back dispatcher.Event
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if back.String() != e.String() || back.Cause != e.Cause {
			t.Errorf("%s comes back as %s", e, back)
		}
		failed = failed || back.Kind == dispatcher.AttemptFailed && back.Cause == "what?"
		if e.Kind == dispatcher.RunRested && e.Status == checkpoint.StatusCompleted {
			break
		}
	}
	if !failed {
		t.Error("no attempt has failed")
	}
	for _, kind := range []dispatcher.EventKind{0, dispatcher.RunRewound + 1, 255} {
		if text, err := kind.MarshalText(); err == nil {
			t.Errorf("kind %d is %q", kind, text)
		}
	}
	for _, text := range []string{"", "event 3", "Run started", "runstarted"} {
		kind := dispatcher.Noted
		if err := kind.UnmarshalText([]byte(text)); err == nil || kind != dispatcher.Noted {
			t.Errorf("%q is taken for %s, %v", text, kind, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"Kind":"run finished"}`), new(dispatcher.Event)); err == nil {
		t.Errorf("a kind that there isn't: %v", err)
	}
}

// Items of a stream are JSON too, also the last one, which has no event.
func TestItemsAreJSON(t *testing.T) {
	var store memory.Store
	var last string
	for item, err := range process(t, callsTalk(t, nil), &store, dispatcher.Options{}).Stream(t.Context(), run, hear("one"), dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		last = string(text)
		if of := item.Event.Kind.String(); item.Result == nil && !strings.HasPrefix(last, `{"Event":{"Kind":"`+of) {
			t.Errorf("an item of %s is %s", of, last)
		}
	}
	if !strings.HasPrefix(last, `{"Result":{"Run":"`+run) {
		t.Errorf("the last item is %s", last)
	}
}
