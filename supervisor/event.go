package supervisor

import (
	"fmt"
	"slices"
	"time"
)

// An EventKind says what became true.
type EventKind uint8

// The kinds of events.
const (
	Queued    EventKind = iota + 1 // a run waits for its turn, however shortly
	Joined                         // a run was submitted that waits or is at work already
	Refused                        // a submission was not taken: Err is ErrQueueFull, ErrDraining or, if it is there and can't be joined, dispatcher.ErrBusy
	Began                          // a run is at work: Waited
	Ended                          // the work on a run is over: Duration, Err
	Dropped                        // a run that waited will not begin: the supervisor drains, or, with Err, it was withdrawn
	Drained                        // a Drain has ended: Duration, Err
	Recovered                      // a run went on that had been left, and rests; of one that could not go on Err says why
	PutBack                        // a run waits for its turn again, which comes when the store has room: Err is why it did not go on
)

var eventNames = [...]string{
	Queued: "queued", Joined: "joined", Refused: "refused", Began: "began", Ended: "ended",
	Dropped: "dropped", Drained: "drained", Recovered: "recovered",
	PutBack: "put back",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// MarshalText returns the kind's name, as JSON has it; of a kind that there isn't it is an error.
func (k EventKind) MarshalText() ([]byte, error) {
	if int(k) >= len(eventNames) || eventNames[k] == "" {
		return nil, fmt.Errorf("supervisor: there is no %s", k)
	}
	return []byte(eventNames[k]), nil
}

// UnmarshalText sets k to the kind of this name; any other text is an error.
func (k *EventKind) UnmarshalText(name []byte) error {
	i := slices.Index(eventNames[:], string(name))
	if i < 1 {
		return fmt.Errorf("supervisor: no event is called %.40q", name)
	}
	*k = EventKind(i)
	return nil
}

// An Event is a thing that became true of a run in the supervisor; its dispatcher tells what
// becomes true inside the run. A run is Queued, then Began, then Ended. Besides:
//
//   - A run may be joined or dropped while its Queued, or its PutBack, is being told. Then Joined
//     or Dropped may be told before that.
//   - A run that is gone on with for those who have joined it (see [Submit]) is Queued, Began and
//     Ended once more. Who submits a run whenever it has Ended has no end of that.
//   - A run that Recover brings back is Recovered as soon as it rests. Nobody has submitted it, so
//     it is neither Joined nor Refused. Each event is told once, however many calls of Recover meet
//     it.
//   - Where the store has no room PutBack comes in place of Ended. Behind it come Began, or
//     Dropped, once more.
type Event struct {
	Kind     EventKind
	Run      string // "" if Kind is Drained
	Graph    string
	Key      string        // whose turn it is
	Waited   time.Duration // Began: for its turn
	Duration time.Duration // Ended: of the work on the run; Drained: of the Drain
	Err      error         `json:"-"` // why; what the kinds that have one say of it
}

// String tells the event on one line, without times.
func (e Event) String() string {
	s := "supervisor: " + e.Kind.String()
	if e.Run != "" {
		s = fmt.Sprintf("%s: %s", e.Run, e.Kind)
		if e.Graph != "" { // else nobody knows it
			s += " of " + e.Graph
		}
		if e.Key != "" {
			s += " for " + e.Key
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// tell gives an event to the observer. One that panics has seen it.
func (s *Supervisor) tell(e Event) {
	if s.options.Observe == nil {
		return
	}
	defer func() { _ = recover() }()
	s.options.Observe(e)
}
