package checkpoint

import "fmt"

// kindNames are what is stored: a name never changes its meaning and none is reused.
var kindNames = [...]string{
	Opened:          "opened",
	Entered:         "entered",
	Done:            "done",
	AttemptFailed:   "attempt_failed",
	EffectBegun:     "effect_begun",
	EffectEnded:     "effect_ended",
	Interrupted:     "interrupted",
	Answered:        "answered",
	Edited:          "edited",
	Voided:          "voided",
	Superstep:       "superstep",
	Resumed:         "resumed",
	Cancelled:       "cancelled",
	TimedOut:        "timed_out",
	Failed:          "failed",
	Completed:       "completed",
	TurnBegun:       "turn_begun",
	SettingsChanged: "settings_changed",
	Noted:           "noted",
	Migrated:        "migrated",
	Trimmed:         "trimmed",
	Waiting:         "waiting",
	Tagged:          "tagged",
	Rewound:         "rewound",
}

var kindsByName = func() map[string]Kind {
	kinds := make(map[string]Kind, len(kindNames))
	for k, name := range kindNames {
		if name != "" {
			kinds[name] = Kind(k)
		}
	}
	return kinds
}()

// String returns the stored name of k, or kind(n) if there is none.
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// MarshalText returns the stored name of k; a kind without one is an error.
func (k Kind) MarshalText() ([]byte, error) {
	if !k.known() {
		return nil, fmt.Errorf("checkpoint: unknown entry %s", k)
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText sets k to the kind of the stored name text; any other text is an error.
func (k *Kind) UnmarshalText(text []byte) error {
	known, ok := kindsByName[string(text)]
	if !ok {
		return fmt.Errorf("checkpoint: unknown entry kind %.40q", text)
	}
	*k = known
	return nil
}

func (k Kind) known() bool { return k >= 1 && int(k) < len(kindNames) }
