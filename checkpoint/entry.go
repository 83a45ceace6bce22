package checkpoint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Kind says what an [Entry] tells. It is stored by name.
type Kind uint8

// The kinds of entries.
const (
	Opened          Kind = iota + 1 // the run exists: Data is an [Opening], Delta its input
	Entered                         // a frame began, with what it was given (Delta); of an Each Data is [Items]
	Done                            // a visit finished: Outcome, Delta; if there is more to say, Data is a [Substitution]
	AttemptFailed                   // an attempt failed: Attempt, Data is a [FailedAttempt]
	EffectBegun                     // an effect of a visit begins: ID, Data is a [BegunEffect]
	EffectEnded                     // it has ended: ID, Data is an [EndedEffect]
	Interrupted                     // a visit waits: ID, Data is an [Interrupt]
	Answered                        // an interrupt was answered: ID, Data is an [Answer]
	Edited                          // somebody changed the state of a frame: Delta, Outer; Data is an [Edit]
	Voided                          // visits of an open superstep don't count: Data is a list of paths
	Superstep                       // a superstep ended: Step; Delta and Outer are merged Folds
	Resumed                         // the run goes on under a new lease: Data is a [Resumption]
	Cancelled                       // the run rests: Data is a [Resting]
	TimedOut                        // the run rests: Data is a [Resting]
	Failed                          // the run rests: Data is a [Resting]
	Completed                       // the run is complete
	TurnBegun                       // a completed run was given new input: Delta, Outer; Data is a [Turn]
	SettingsChanged                 // nodes read others from now on: Data is a [Setting]
	Noted                           // a [Note], a [RefusedInput], or a post that changed nothing: a text
	Migrated                        // the run goes on with another graph: Data is a [Migration]
	Trimmed                         // what lies before is gone: Data is a [Trimming]
	Waiting                         // the run rests, interrupted: nothing else can run
	Tagged                          // a checkpoint was given a name: Data is a [Tag]
	Rewound                         // the run goes on from an earlier checkpoint: Data is a [Rewinding]
)

// An Entry is one fact in a run's log. Which fields mean something depends on Kind.
type Entry struct {
	// Seq is the position in the log, counted from 1 without gaps. At is when the append
	// was made, in milliseconds. Both are set by the store and ignored by Append.
	Seq uint64    `json:"-"`
	At  time.Time `json:"-"`

	Kind    Kind   `json:"kind"`
	Path    string `json:"path,omitempty"`    // of the visit, or of the frame; "" is the run's own frame
	Step    int    `json:"step,omitempty"`    // superstep of the frame, counted from 1
	Attempt int    `json:"attempt,omitempty"` // counted from 1
	// Outcome is how a visit finished that has outcomes. One that may choose several has a
	// JSON array of those that it chose, in the order of their declaration: ["a","b"].
	Outcome string `json:"outcome,omitempty"`
	ID      string `json:"id,omitempty"`   // of an interrupt; the key of an effect
	Post    string `json:"post,omitempty"` // id of the [Post] that this entry drains
	// Claims is for Append, and not kept: nobody has posted what the entry drains. See
	// [Store.Append].
	Claims bool `json:"-"`

	Delta json.RawMessage `json:"delta,omitempty"`
	Outer json.RawMessage `json:"outer,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// An Opening is the Data of an [Opened] entry.
type Opening struct {
	Graph  string            `json:"graph"`  // name
	Digest string            `json:"digest"` // of the graph; its JSON is found by [Store.Graph]
	Labels map[string]string `json:"labels,omitempty"`
	// Correlation joins what belongs together: events, logs, and runs that follow from
	// this one. A run that was opened by a dispatcher has one.
	Correlation string   `json:"correlation,omitempty"`
	Settings    *Setting `json:"settings,omitempty"` // nil: none
	// Origin is where a fork begins; nil if the run is none.
	Origin *Origin `json:"origin,omitempty"`
	// Lineage is from where the origin had gone on, the oldest first.
	Lineage []Ancestor `json:"lineage,omitempty"`
	// Trimmed is the last turn of which entries behind the checkpoint were trimmed, and with them
	// what effects had returned that are not on the shelf; zero if none were.
	Trimmed int `json:"trimmed,omitempty"`
}

// A Turn is the Data of a [TurnBegun] entry.
type Turn struct {
	Number int    `json:"number"` // of the turn, counted from 1: the first that is begun so is 2
	Owner  string `json:"owner"`  // whose call began it
}

// A RefusedInput is the Data of the [Noted] entry that drains input for a turn which could
// not begin with it.
type RefusedInput struct {
	Refused string          `json:"refused"` // why
	Input   json.RawMessage `json:"input"`   // as it was posted
}

// A Note is the Data of a [Noted] entry that a node made, whose path it has then, or somebody
// outside.
type Note struct {
	Name  string          `json:"note"`
	Value json.RawMessage `json:"value,omitempty"`
	By    string          `json:"by,omitempty"` // who made it from outside, if somebody has said so
}

// A Setting is what the nodes of a run can read and is no state: the Data of a
// [SettingsChanged] entry, or a part of an [Opening].
type Setting struct {
	Value  json.RawMessage `json:"value,omitempty"`  // none: there are no settings any more
	Author string          `json:"author,omitempty"` // who gave it
}

// Items is the Data of the [Entered] entry of a node that runs once for each item. The items
// themselves are not stored: they are computed again when the run is resumed.
type Items struct {
	Count  int    `json:"count"`
	Digest string `json:"digest"` // of all of them, in order
	// Collect: items that fail don't make the node fail. It is decided when the node begins.
	Collect bool `json:"collect,omitempty"`
}

// A Migration is the Data of a [Migrated] entry.
type Migration struct {
	Graph string `json:"graph"` // name of the graph that the run goes on with
	From  string `json:"from"`  // digest of the graph before
	To    string `json:"to"`    // digest of the graph from here on
	// Name is that of the migration that the program gave, "" if the change was accepted
	// as it is because the past is the same.
	Name string `json:"name,omitempty"`
	// Nodes says what nodes are called from here on, by node path, as the program's migration
	// did; "" for one that was forgotten. [Migration.Renamed] reads it.
	Nodes map[string]string `json:"nodes,omitempty"`
	// Machine is where the run stands, as a snapshot would say it under the graph To: a
	// replay goes on from it, and asks nobody again.
	Machine json.RawMessage `json:"machine"`
}

// Renamed is the path that a visit or frame has behind the migration, which had this one before it:
// an iteration or item keeps its number, and what is inside a node goes with it. It is not there
// any more if its node, or one around it, was forgotten, or another one has its name now.
func (m *Migration) Renamed(path string) (is string, there bool) {
	if len(m.Nodes) == 0 {
		return path, true
	}
	segments := strings.Split(path, "/")
	given := slices.Collect(maps.Values(m.Nodes))
	var was, now string // node paths, with a slash behind
	there = true
	for i, s := range segments {
		if strings.Trim(s, "0123456789") == "" { // no node has such a name
			continue
		}
		switch to, named := m.Nodes[was+s]; {
		case to != "":
			segments[i] = to[strings.LastIndexByte(to, '/')+1:]
		case named, slices.Contains(given, now+s):
			there = false
		}
		was, now = was+s+"/", now+segments[i]+"/"
	}
	return strings.Join(segments, "/"), there
}

// A FailedAttempt is the Data of an [AttemptFailed] entry.
type FailedAttempt struct {
	Kind    string `json:"kind"` // a dag.FailureKind
	Message string `json:"message"`
	Stack   string `json:"stack,omitempty"`
	// Final: the visit has failed; no further attempt is made.
	Final bool `json:"final,omitempty"`
	// NotBefore is the instant before which the next attempt may not begin, Wait how
	// long that was when it was decided: after a restart the wait is never longer.
	NotBefore time.Time     `json:"not_before,omitzero"`
	Wait      time.Duration `json:"wait,omitempty"` // nanoseconds
	// Origin and Attempts tell, of a visit that failed because the graph it holds did,
	// which visit inside failed first and how many attempts that one made.
	Origin   string `json:"origin,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// By names the interceptor that denied the visit before it began.
	By string `json:"by,omitempty"`
	// Unfollowed: the failure edge of the visit is not taken, nor that of a frame around it,
	// for an effect is in doubt that waits for somebody to say what happened.
	Unfollowed bool `json:"unfollowed,omitempty"`
	// Followed, of a visit that has failed: whether its failure edge is taken when its superstep
	// ends. Nil in logs of earlier builds, which don't say.
	Followed *bool `json:"followed,omitempty"`
}

// A Dependency is something outside the run that a visit has used, as it said itself.
type Dependency struct {
	Name       string        `json:"name"`
	Captured   time.Time     `json:"captured"`
	StaleAfter time.Duration `json:"stale_after"`        // nanoseconds
	OnStale    string        `json:"on_stale,omitempty"` // revalidate, invalidate; "" is only a warning
}

// A Substitution is the Data of a [Done] entry whose result interceptors gave or changed, or
// that depends on something outside.
type Substitution struct {
	Depends  []Dependency `json:"depends,omitempty"`  // in the order of their names
	Instead  string       `json:"instead,omitempty"`  // who ran something in place of the node's function
	Replaced []string     `json:"replaced,omitempty"` // who then changed the result, in this order
}

// An Interrupt is the Data of an [Interrupted] entry.
type Interrupt struct {
	Kind     string          `json:"kind"` // before, after, asked, effect or doubt: a dispatcher.InterruptKind
	Key      string          `json:"key,omitempty"`
	Question json.RawMessage `json:"question,omitempty"`
	Want     json.RawMessage `json:"want,omitempty"` // a state.Type: what an answer must be
	// Until is the instant from which on an answer to a question comes too late, Wait how long
	// that was when it was asked: after a restart the wait is never longer. Zero means never.
	// Default is the answer then; without it the question expires. Asked is when it was asked if
	// Until and Wait don't tell: if that is longer than a duration can say.
	Until   time.Time       `json:"until,omitzero"`
	Wait    time.Duration   `json:"wait,omitempty"` // nanoseconds
	Asked   time.Time       `json:"asked,omitzero"`
	Default json.RawMessage `json:"default,omitempty"`
	// About is what an answer is for, if that is not the question: see dag.About.
	About json.RawMessage `json:"about,omitempty"`
	// By names the interceptor that asks before a visit, or is "gate" if gates want an
	// approval: of the visit, or, of kind effect, of the effect of this key. It needs an answer:
	// such an interrupt does not end with a resume.
	By string `json:"by,omitempty"`
	// Reason is why gates want an approval.
	Reason string `json:"reason,omitempty"`
}

// A Resumption is the Data of a [Resumed] entry.
type Resumption struct {
	Owner string `json:"owner"`
	// Ends: interrupts before and after a visit end with this resume.
	Ends bool `json:"ends,omitempty"`
	// Renews: the run was Cancelled when it had rested as Failed, and goes on as from there. A
	// Failed run does without saying so.
	Renews bool `json:"renews,omitempty"`
}

// A Resting is the Data of the entries with which a run comes to rest.
type Resting struct {
	Cause string `json:"cause,omitempty"`
	By    string `json:"by,omitempty"` // of [Cancelled]: who did it, if somebody has said so
	// Kind is set when the run itself is at fault and no visit: conflict, limit, merge,
	// check or hook.
	Kind  string `json:"kind,omitempty"`
	Stack string `json:"stack,omitempty"` // of user code that panicked
}

// A Status is where a run is in its life.
type Status string

// The statuses of a run.
const (
	StatusPending     Status = "pending"     // opened or rewound, and not run since
	StatusRunning     Status = "running"     // at work, or left behind by an owner that died
	StatusCompleted   Status = "completed"   // every visit has settled
	StatusInterrupted Status = "interrupted" // waits for an answer or a resume
	StatusCancelled   Status = "cancelled"   // its context was, or somebody cancelled it by id
	StatusTimedOut    Status = "timed_out"   // a deadline passed
	StatusFailed      Status = "failed"      // a visit failed and nobody follows that, or a merge did
)

// Resting reports whether a run of this status is at rest with a cursor.
func (s Status) Resting() bool {
	switch s {
	case StatusInterrupted, StatusCancelled, StatusTimedOut, StatusFailed:
		return true
	}
	return false
}

// After returns the status of a run whose status was s once it has an entry of kind k.
func (s Status) After(k Kind) Status {
	switch k {
	case Opened, Rewound:
		return StatusPending
	case Completed:
		return StatusCompleted
	case Waiting:
		return StatusInterrupted
	case Cancelled:
		return StatusCancelled
	case TimedOut:
		return StatusTimedOut
	case Failed:
		return StatusFailed
	case Answered, Edited, Noted, SettingsChanged, Trimmed, Tagged, Migrated, EffectBegun, EffectEnded:
		return s // may be written while the run rests
	}
	return StatusRunning
}
