package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// An EventKind says what became true.
type EventKind uint8

// Kinds of events of entries, and of live notices.
const (
	RunStarted        EventKind = iota + 1 // the run was opened
	RunResumed                             // a call goes on with it
	FrameEntered                           // Path: of the frame
	VisitStarted                           // an attempt begins, unless its observer ends the run; a live notice
	VisitDone                              // Outcome; Duration of the attempt
	AttemptFailed                          // Failure, Final, Cause; Duration of the attempt
	VisitInterrupted                       // Outcome: an InterruptKind; ID
	InterruptAnswered                      // ID, Outcome (answered, skipped, expired or default), Value, By, Cause
	VisitsVoided                           // what they did does not count; Value: their paths
	SuperstepEnded                         // Path: of the frame; Step; Duration since it began
	RunRested                              // Status, and Cause; of a cancel By
	Appended                               // entries became durable: Entries, Bytes, Duration; a live notice
	Emitted                                // a node called dag.Emit: Name, Value; a live notice
	// Lagged: notices were dropped, since they were not taken in time: Dropped; a live notice
	Lagged
	TurnBegun        // a completed run was given new input
	SettingsChanged  // Value
	EffectBegun      // an effect of a visit: ID
	EffectEnded      // an effect of a visit: ID, Phase
	StateEdited      // a person changed the state: By, Cause
	Noted            // a note (Name, Value, By), or a post that changed nothing: Value
	GraphMigrated    // the run goes on with another graph
	LogTrimmed       // what lies before is gone
	Warned           // Hooks.OnEnd went wrong, and nothing changes: Cause; a live notice
	CheckpointTagged // a checkpoint was given a name: Name; Value: the number of its entry
	RunRewound       // the run goes on from an earlier checkpoint: Value
)

var eventNames = [...]string{
	RunStarted: "run started", RunResumed: "run resumed", FrameEntered: "frame entered",
	VisitStarted: "visit started", VisitDone: "visit done", AttemptFailed: "attempt failed",
	VisitInterrupted: "visit interrupted", InterruptAnswered: "interrupt answered",
	VisitsVoided: "visits voided", SuperstepEnded: "superstep ended", RunRested: "run rested",
	Appended: "appended", Emitted: "emitted", Lagged: "lagged", TurnBegun: "turn begun",
	SettingsChanged: "settings changed", EffectBegun: "effect begun", EffectEnded: "effect ended",
	StateEdited: "state edited", Noted: "noted", GraphMigrated: "graph migrated",
	LogTrimmed: "log trimmed", Warned: "warned",
	CheckpointTagged: "checkpoint tagged", RunRewound: "run rewound",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// MarshalText returns the kind's name, as JSON has it. A kind that does not exist is an error.
func (k EventKind) MarshalText() ([]byte, error) {
	if int(k) >= len(eventNames) || eventNames[k] == "" {
		return nil, fmt.Errorf("dispatcher: there is no %s", k)
	}
	return []byte(eventNames[k]), nil
}

// UnmarshalText sets k to the kind of this name; any other text is an error.
func (k *EventKind) UnmarshalText(name []byte) error {
	i := slices.Index(eventNames[:], string(name))
	if i < 1 || eventNames[i] == "" {
		return fmt.Errorf("dispatcher: no event is called %.40q", name)
	}
	*k = EventKind(i)
	return nil
}

// A Channel is a set of kinds of events, by who needs them. Channels are added with |.
type Channel uint8

const (
	Control  Channel = 1 << iota // a person or a supervisor may have to act
	Progress                     // how far the run is
	Monitor                      // how it gets there
)

// String returns the names of the channels: control|progress.
func (c Channel) String() string {
	var names []string
	for i, name := range [...]string{"control", "progress", "monitor"} {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Channel returns the channel to which events of the kind belong.
func (k EventKind) Channel() Channel {
	switch k {
	case RunStarted, RunResumed, RunRested, VisitInterrupted, InterruptAnswered,
		TurnBegun, SettingsChanged, StateEdited, GraphMigrated, RunRewound, Lagged, Warned:
		return Control
	case FrameEntered, VisitStarted, VisitDone, SuperstepEnded, EffectBegun, EffectEnded, Emitted:
		return Progress
	}
	return Monitor
}

// eventKinds tells which event an entry is.
var eventKinds = [...]EventKind{
	checkpoint.Opened: RunStarted, checkpoint.Entered: FrameEntered, checkpoint.Done: VisitDone,
	checkpoint.AttemptFailed: AttemptFailed, checkpoint.EffectBegun: EffectBegun,
	checkpoint.EffectEnded: EffectEnded, checkpoint.Interrupted: VisitInterrupted,
	checkpoint.Answered: InterruptAnswered, checkpoint.Edited: StateEdited,
	checkpoint.Voided: VisitsVoided, checkpoint.Superstep: SuperstepEnded,
	checkpoint.Resumed: RunResumed, checkpoint.Cancelled: RunRested,
	checkpoint.TimedOut: RunRested, checkpoint.Failed: RunRested,
	checkpoint.Completed: RunRested, checkpoint.TurnBegun: TurnBegun,
	checkpoint.SettingsChanged: SettingsChanged, checkpoint.Noted: Noted,
	checkpoint.Migrated: GraphMigrated, checkpoint.Trimmed: LogTrimmed,
	checkpoint.Waiting: RunRested, checkpoint.Tagged: CheckpointTagged,
	checkpoint.Rewound: RunRewound,
}

// eventKind is the kind of event that an entry of kind k is, 0 if there is none.
func eventKind(k checkpoint.Kind) EventKind {
	if int(k) < len(eventKinds) {
		return eventKinds[k]
	}
	return 0
}
