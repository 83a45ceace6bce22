package supervisor_test

import (
	"encoding/json"
	"testing"

	"github.com/pawlgo/pawl/supervisor"
)

// Kinds of events are said by name in JSON, which stays when there are further ones.
func TestEventsAreJSON(t *testing.T) {
	for kind := supervisor.Queued; kind <= supervisor.PutBack; kind++ {
		text, err := json.Marshal(supervisor.Event{Kind: kind, Run: "a", Err: errLost})
		if err != nil {
			t.Fatal(err)
		}
		var back supervisor.Event
		if err := json.Unmarshal(text, &back); err != nil || back != (supervisor.Event{Kind: kind, Run: "a"}) {
			t.Errorf("%s comes back as %v, %v", text, back, err)
		}
	}
	for _, kind := range []supervisor.EventKind{0, supervisor.PutBack + 1} {
		if text, err := kind.MarshalText(); err == nil {
			t.Errorf("kind %d is %q", kind, text)
		}
	}
	for _, text := range []string{"", "event 3", "Queued"} {
		kind := supervisor.Began
		if err := kind.UnmarshalText([]byte(text)); err == nil || kind != supervisor.Began {
			t.Errorf("%q is taken for %s, %v", text, kind, err)
		}
	}
}
