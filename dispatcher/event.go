package dispatcher

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An Event is something that became true.
//
// Every entry of a run's log is one event, told when the entry is durable; their numbers count from
// 1 without gaps. Beside them there are live notices, which no log holds: they are for whoever
// looks at the moment, and are never told again.
//
// The event of an entry is the same for an observer of the live run and for a reader of the log,
// except for some fields. Err and Duration are whole only for an observer (but the Duration of
// EffectEnded is in the entry). At is the observer's own clock. Delta and State are for readers who
// ask for them.
type Event struct {
	Kind  EventKind
	Run   string
	Graph string
	// Seq is the number of the entry in the run's log. A live notice has the number of the last
	// durable entry before it, and 0 without a store.
	Seq  uint64
	Live bool // no entry of a log

	Turn        int               // of the run, counted from 1
	Correlation string            // of the run
	Labels      map[string]string // of the run; must not be changed

	Path    string // of the visit or frame: compose-loop/2/validate
	Node    string // its node path: compose-loop/validate
	Step    int    // of the visit's frame
	Attempt int    // 0 if the visit runs no function of its own
	Outcome string
	// ID is, by the kind of the event:
	//
	//   - of an interrupt or an effect: its id;
	//   - TurnBegun, of input that was enqueued: the [Message] under which it was, or else an id
	//     that was made up;
	//   - Noted: the Message of the note, or that of the input that was refused or sent again.
	ID string
	// Name is, by the kind of the event:
	//
	//   - Emitted: the name of the value;
	//   - VisitInterrupted: the key of the question, or who asks before the visit;
	//   - EffectBegun: the operation;
	//   - RunRewound, and RunStarted of a fork: the address from which the run goes on;
	//   - Noted, CheckpointTagged: the name of the note, or of the checkpoint.
	Name string
	// Effect is what the node declares of an effect that begins (EffectBegun). It must not be
	// changed.
	Effect *checkpoint.DeclaredEffect
	// Phase is how far an effect is with this event: PhaseBegun for EffectBegun; PhaseEnded,
	// PhaseNotDone or PhaseLost for EffectEnded.
	Phase EffectPhase

	By      string            // who did it, if somebody has said so
	Status  checkpoint.Status // RunRested
	Failure dag.FailureKind   // AttemptFailed
	Final   bool              // AttemptFailed: the visit has failed
	// Cause is why, as the log tells it. AttemptFailed, RunRested, StateEdited, RunRewound,
	// RunStarted and InterruptAnswered have it. For EffectEnded it is "not done: " and the reason
	// if the effect has not happened, and "done, and its output is lost: " and the reason if it has
	// happened and what it returned can't be kept.
	Cause string
	// Err is the Cause of AttemptFailed and RunRested as an error; for an observer of the live run
	// it is the error itself. JSON has Cause alone.
	Err error `json:"-"`

	// Value is, by the kind of the event, what Emit was given; the question of an interrupt; its
	// answer; what an effect was given or has returned; the paths of the visits that were voided,
	// also by an edit; or which interceptors gave a visit its result. For other kinds it is what
	// the Data of the entry has and no other field tells, if there is such.
	Value json.RawMessage `json:",omitempty"`
	Delta json.RawMessage `json:",omitempty"` // VisitDone, StateEdited: what was written
	State json.RawMessage `json:",omitempty"` // SuperstepEnded of the run's own frame: the state then

	Entries  int // Appended
	Bytes    int // Appended
	Dropped  int // Lagged: notices that were not kept
	Duration time.Duration
	At       time.Time
}

// String tells the event on one line, without times: the run, @ and the number of an entry, and
// what became true. It cuts long values short.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Run)
	if !e.Live {
		fmt.Fprintf(&b, "@%d", e.Seq)
	}
	fmt.Fprintf(&b, ": %s", e.Kind)
	switch {
	case e.Kind == SuperstepEnded:
		fmt.Fprintf(&b, " %s@%d", e.Path, e.Step)
	case e.Path != "":
		b.WriteString(" " + e.Path)
	}
	e.writeDetail(&b)
	if e.By != "" {
		b.WriteString(" by " + e.By)
	}
	if e.Attempt > 1 {
		fmt.Fprintf(&b, " attempt %d", e.Attempt)
	}
	if e.Cause != "" {
		b.WriteString(": " + e.Cause)
	}
	return b.String()
}

func (e *Event) writeDetail(b *strings.Builder) {
	switch e.Kind {
	case VisitDone, SuperstepEnded:
		if e.Outcome != "" {
			b.WriteString(" (" + e.Outcome + ")")
		}
		if len(e.Value) > 0 {
			fmt.Fprintf(b, " %s", e.Value)
		}
	case AttemptFailed:
		final := ""
		if e.Final {
			final = ", final"
		}
		fmt.Fprintf(b, " (%s%s)", e.Failure, final)
	case VisitInterrupted:
		b.WriteString(" (" + e.Outcome + ")")
		if e.Name != "" {
			fmt.Fprintf(b, " %s %s", e.Name, brief(e.Value))
		}
	case RunStarted:
		if e.Name != "" {
			b.WriteString(" as a fork of " + e.Name)
		}
	case RunRewound:
		b.WriteString(" to " + e.Name)
	case CheckpointTagged:
		if e.Name != "" {
			fmt.Fprintf(b, " %s at %s", e.Name, e.Value)
		}
	case Emitted:
		fmt.Fprintf(b, " %s %s", e.Name, brief(e.Value))
	case EffectBegun, EffectEnded:
		b.WriteString("#" + e.ID)
		if e.Outcome != "" {
			b.WriteString(" (" + e.Outcome + ")")
		}
		e.writeDeclared(b)
	case InterruptAnswered:
		if e.Outcome != checkpoint.AnswerGiven {
			b.WriteString(" (" + e.Outcome + ")")
		}
		if len(e.Value) > 0 {
			fmt.Fprintf(b, " %s", brief(e.Value))
		}
	case Noted:
		if e.Name != "" {
			b.WriteString(" " + e.Name)
		}
		if len(e.Value) > 0 {
			fmt.Fprintf(b, " %s", brief(e.Value))
		}
	case VisitsVoided, SettingsChanged:
		if len(e.Value) > 0 {
			fmt.Fprintf(b, " %s", brief(e.Value))
		}
	case StateEdited:
		if len(e.Value) > 0 {
			fmt.Fprintf(b, " (voids %s)", brief(e.Value))
		}
	case RunRested:
		b.WriteString(" " + string(e.Status))
	case Lagged:
		fmt.Fprintf(b, " by %d", e.Dropped)
	case Appended:
		fmt.Fprintf(b, " %d", e.Entries)
	}
}

// writeDeclared tells what a node says of an effect.
func (e *Event) writeDeclared(b *strings.Builder) {
	d := e.Effect
	if d == nil {
		return
	}
	var words []string
	for _, w := range []struct {
		said bool
		word string
	}{
		{d.Operation != "", d.Operation}, {d.Access != "", d.Access}, {len(d.Touches) > 0, "touches " + strings.Join(d.Touches, ", ")},
		{d.Replayable, "replayable"}, {d.Reversible, "reversible"}, {d.Doubt != "", "in doubt it " + d.Doubt},
	} {
		if w.said {
			words = append(words, w.word)
		}
	}
	if words != nil {
		fmt.Fprintf(b, " (%s)", strings.Join(words, "; "))
	}
}

// brief is the beginning of a value.
func brief(value []byte) string {
	const most = 200
	if len(value) <= most {
		return string(value)
	}
	return strings.ToValidUTF8(string(value[:most]), "") + "…"
}
