package dispatcher

import (
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An EventKind says what became true.
type EventKind uint8

const (
	RunStarted        EventKind = iota + 1 // the run was opened
	RunResumed                             // a call goes on with it
	FrameEntered                           // Path: of the frame
	VisitStarted                           // an attempt began; not in the log
	VisitDone                              // Outcome, Duration of the attempt
	AttemptFailed                          // Err, Duration of the attempt, Final
	VisitInterrupted                       // Outcome: before, after or asked; ID
	InterruptAnswered                      // ID
	VisitsVoided                           // what they did does not count
	SuperstepEnded                         // Path: of the frame; Step; Duration since it began
	RunRested                              // Status, and Err if it failed
	Appended                               // entries became durable: Entries, Bytes, Duration; not in the log
)

// An Event is a thing that became true. Those that the log holds are sent when they are
// durable.
type Event struct {
	Kind     EventKind
	Run      string
	Graph    string
	Path     string // of the visit or frame: compose-loop/2/validate
	Node     string // its node path: compose-loop/validate
	Step     int    // of the visit's frame
	Attempt  int
	Outcome  string
	ID       string // of an interrupt
	Status   checkpoint.Status
	Failure  dag.FailureKind // AttemptFailed
	Final    bool            // AttemptFailed: the visit has failed
	Err      error
	Entries  int
	Bytes    int
	Duration time.Duration
	At       time.Time
}

var eventNames = [...]string{
	RunStarted: "run started", RunResumed: "run resumed", FrameEntered: "frame entered",
	VisitStarted: "visit started", VisitDone: "visit done", AttemptFailed: "attempt failed",
	VisitInterrupted: "visit interrupted", InterruptAnswered: "interrupt answered",
	VisitsVoided: "visits voided", SuperstepEnded: "superstep ended", RunRested: "run rested",
	Appended: "appended",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// String tells the event on one line, without times.
func (e Event) String() string {
	s := fmt.Sprintf("%s: %s", e.Run, e.Kind)
	if e.Path != "" {
		s += " " + e.Path
	}
	switch e.Kind {
	case VisitDone, VisitInterrupted:
		if e.Outcome != "" {
			s += " (" + e.Outcome + ")"
		}
	case SuperstepEnded:
		s += fmt.Sprintf("@%d", e.Step)
	case RunRested:
		s += " " + string(e.Status)
	}
	if e.Attempt > 1 {
		s += fmt.Sprintf(" attempt %d", e.Attempt)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
