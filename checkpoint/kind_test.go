package checkpoint_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// The names are in every log: this list may grow, and nothing else.
func TestKindsAreStoredByName(t *testing.T) {
	names := []string{
		"opened", "entered", "done", "attempt_failed", "effect_begun", "effect_ended",
		"interrupted", "answered", "edited", "voided", "superstep", "resumed", "cancelled",
		"timed_out", "failed", "completed", "turn_begun", "settings_changed", "noted", "migrated",
		"trimmed", "waiting", "tagged", "rewound",
	}
	if got := len(names); got != int(checkpoint.Rewound) {
		t.Fatalf("there are %d names for %d kinds", got, checkpoint.Rewound)
	}
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for i, name := range names {
		k := checkpoint.Kind(i + 1)
		if k.String() != name || !word.MatchString(name) {
			t.Errorf("kind %d is %q, want %q", k, k, name)
		}
		text, err := json.Marshal(k)
		if err != nil || string(text) != `"`+name+`"` {
			t.Errorf("kind %d is stored as %s, %v", k, text, err)
		}
		var back checkpoint.Kind
		if err := json.Unmarshal(text, &back); err != nil || back != k {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
	}
}

func TestUnknownKindsAreRefused(t *testing.T) {
	for _, k := range []checkpoint.Kind{0, checkpoint.Rewound + 1, 255} {
		if text, err := k.MarshalText(); err == nil {
			t.Errorf("kind %d is stored as %s", uint8(k), text)
		}
	}
	if got := checkpoint.Kind(99).String(); got != "kind(99)" {
		t.Errorf("an unknown kind prints as %q", got)
	}
	for _, text := range []string{"", "Done", "done ", "kind(3)", "resting"} {
		k := checkpoint.Done
		if err := k.UnmarshalText([]byte(text)); err == nil || k != checkpoint.Done {
			t.Errorf("%q is read as %v, %v", text, k, err)
		}
	}
}

func TestStatusAfterEveryKind(t *testing.T) {
	for k := checkpoint.Opened; k <= checkpoint.Waiting; k++ {
		for _, s := range []checkpoint.Status{checkpoint.StatusRunning, checkpoint.StatusFailed} {
			next := s.After(k)
			if next == "" || next.Resting() && next != s && k != checkpoint.Waiting &&
				k != checkpoint.Cancelled && k != checkpoint.TimedOut && k != checkpoint.Failed {
				t.Errorf("after %v a run that was %s is %q", k, s, next)
			}
		}
	}
}
