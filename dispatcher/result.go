package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A Result tells where a run stands when a call returns.
//
// If a call that was at work on the run can't know that, its Result has Run, the status Running,
// Abandoned, Warnings and an empty state, and nothing else. That is so beside [ErrStuck], and
// beside an error of the store while the run was running. [Dispatcher.State] reads what is durable.
type Result[S any] struct {
	Run string // the id that the call was given
	// Status is "" if the call was refused before the run was read.
	Status checkpoint.Status
	// State is the state at the end of the last superstep of the run's own frame. It is never nil,
	// and the caller may change it.
	State *S
	// Frame is the path of the frame that State is of; "" is the run's own. Only At and StateOf
	// return others.
	Frame string
	// Cursor lists the visits that have still to run or wait: of an Each all items that are not
	// done, whether they are at work or have not begun. (Which are at work is in no log; events of
	// kind VisitStarted tell.) If a frame pauses after a visit these are the ones that come next,
	// or that visit if none does; Interrupts names the visit that is paused after. The cursor is
	// empty if the run is completed.
	Cursor checkpoint.Cursor
	// Superstep is the last one that ended in the run's own frame, 0 if none has. It counts on from
	// turn to turn.
	Superstep int
	// Turn is the turn that the run is in, counted from 1.
	Turn int
	// Interrupts wait for an answer or a resume. A run at rest whose questions were all answered
	// has none, and stays Interrupted until Run or Resume goes on with it.
	Interrupts []Interrupt
	// Finished lists visits of open supersteps that are done and will not run again.
	Finished []string
	// Failures are the visits that failed for good, without anything that follows the failure. The
	// run has failed because of them (or of Fault), or will fail once it goes on, if something else
	// has stopped it first.
	Failures []dag.Failure
	// Fault is why the run has failed if no visit is the cause, such as a conflict or a limit. It
	// is as the log tells it: the same in the call that met it and in any later one. It is nil if
	// the run is not Failed, or visits alone are the cause.
	Fault *FaultError
	// Abandoned names the nodes and store calls that did not return within the grace period. What
	// they still do does not count, except that a trim may still drop what is past.
	Abandoned []string
	// Settings are those that hold, or that held at the position that was asked for, as JSON; nil
	// if there are none.
	Settings json.RawMessage
	// Labels and Correlation are what the run was opened with.
	Labels      map[string]string
	Correlation string
	// Warnings tell what somebody should know and is no failure of the run:
	//
	//   - what went wrong in Hooks.OnEnd or with Options.Retention;
	//   - that the run went on after it had rested for long (Options.StaleAfter), or depends on
	//     something stale (dag.Depends);
	//   - which queued input was refused;
	//   - that the store did not take the run's lease back: nobody else has the run until the
	//     store's leases end or its process does.
	Warnings []string
}

// A Checkpoint is a position in the log of a run at which the state of a frame became another one,
// mostly the end of a superstep. Cause says which.
type Checkpoint struct {
	Run       string
	Seq       uint64 // position in the run's log
	Turn      int    // counted from 1
	Path      string // of the frame; "" is the run's own
	Superstep int    // the last one that had ended
	At        time.Time
	Cause     Cause
	// Abandoned says that the run was rewound to before the checkpoint, or that its frame was
	// voided since. The checkpoint is found by its Address alone.
	Abandoned bool
}

// A Cause is why the state of a frame became another one.
type Cause string

// The causes of checkpoints.
const (
	CauseSuperstep Cause = "superstep" // one ended
	CauseOpened    Cause = "opened"    // the run was opened with its input
	CauseTurn      Cause = "turn"      // a completed run was given new input
	CauseEdited    Cause = "edited"    // somebody changed the state
	CauseRewound   Cause = "rewound"   // the run went back to an earlier checkpoint
)

// Address is the checkpoint's unique address, run@seq.
func (c Checkpoint) Address() string { return c.Run + "@" + strconv.FormatUint(c.Seq, 10) }

// String shows the checkpoint as path@superstep, or as turn/path@superstep if it is of a frame
// inside a later turn. The supersteps of the run's own frame count on from turn to turn.
func (c Checkpoint) String() string {
	shown := c.Path + "@" + strconv.Itoa(c.Superstep)
	if c.Turn > 1 && c.Path != "" {
		return strconv.Itoa(c.Turn) + "/" + shown
	}
	return shown
}

// report is a Result without its type parameter.
type report struct {
	Result[struct{}]
	state any
}

// reports are those of calls that were handed over, empty.
var reports = sync.Pool{New: func() any { return new(report) }}

// handed is typed for what a call returns, of which the report is nobody's any more if the call has
// not failed.
func handed[S any](run string, r *report, err error) *Result[S] {
	out := typed[S](run, r)
	if r != nil && err == nil {
		*r = report{}
		reports.Put(r)
	}
	return out
}

// typed is what a call for a run returns, of which there is no report if it was refused.
func typed[S any](run string, r *report) *Result[S] {
	out := &Result[S]{Run: run, Cursor: checkpoint.Cursor{Run: run}}
	if r != nil {
		out.Status, out.Cursor, out.Superstep = r.Status, r.Cursor, r.Superstep
		out.Interrupts, out.Finished, out.Failures, out.Abandoned = r.Interrupts, r.Finished, r.Failures, r.Abandoned
		out.Turn, out.Frame, out.Fault = r.Turn, r.Frame, r.Fault
		out.Settings, out.Labels, out.Correlation = r.Settings, r.Labels, r.Correlation
		out.Warnings = r.Warnings
		out.State, _ = r.state.(*S)
	}
	if out.State == nil {
		out.State = new(S)
	}
	return out
}

// report reads a machine. The state is a copy that shares nothing that could be changed.
func (m *machine) report(run string, seq uint64) *report {
	r := m.bareReport(run, seq)
	if m.root != nil {
		r.state = m.root.view.Draft().Value()
	}
	return r
}

// lastReport is report of a machine that nobody reads any more: the state is its own.
func (m *machine) lastReport(run string, seq uint64) *report {
	r := m.bareReport(run, seq)
	if m.root != nil {
		r.state = m.root.view.Value()
	}
	return r
}

// bareReport is report without the state.
func (m *machine) bareReport(run string, seq uint64) *report {
	r := reports.Get().(*report)
	r.Run, r.Status = run, m.status
	r.Cursor = checkpoint.Cursor{Run: run, Seq: seq, Visits: m.cursor()}
	m.told.report(r)
	if m.status == checkpoint.StatusFailed && m.fault != nil {
		r.Fault = &FaultError{Kind: m.fault.kind, Message: m.fault.message, Stack: bytes.Clone(m.fault.stack)}
	}
	if m.root == nil {
		return r
	}
	r.Superstep, r.Turn = m.root.step, m.turn
	if len(m.root.open) > 0 {
		r.Superstep--
	}
	r.Finished = m.root.finishedSiblings(nil)
	for _, f := range m.failures() {
		r.Failures = append(r.Failures, *f)
	}
	r.Interrupts = interruptsOf(m.pendings())
	return r
}

// A Rest is the error of a run that came to rest without being completed.
type Rest struct {
	Run        string
	Status     checkpoint.Status
	Cursor     checkpoint.Cursor
	Cause      error // a *NodeError, *LimitError… of a failure; the cause of a cancel; may be nil
	Interrupts []Interrupt
	Failures   []dag.Failure // as Result has them
	By         string        // who has cancelled it, if somebody has said so
}

func (e *Rest) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dispatcher: run %q %s", e.Run, restVerbs[e.Status])
	if e.By != "" {
		fmt.Fprintf(&b, " by %s", e.By)
	}
	b.WriteString(e.places())
	if e.Cause != nil && !ofContext(e.Cause) { // else the status says it
		fmt.Fprintf(&b, ": %s", plain(e.Cause))
	}
	if n, ok := e.Cause.(*NodeError); ok && n.Kind == dag.FailedPanic {
		if place := panicPlace(n.Stack); place != "" {
			fmt.Fprintf(&b, " (%s)", place)
		}
	}
	b.WriteString(e.todo())
	return b.String()
}

// A spot is a visit at which a run rests, and how it stands to that.
type spot struct{ way, path string }

// spots are where the run rests: of one that is interrupted by what waits, since behind a pause
// after a visit the cursor has the visits that come next; of one that failed what did, since the
// cursor has also what it did not come to.
func (e *Rest) spots() (all []spot) {
	switch e.Status {
	case checkpoint.StatusInterrupted:
		for _, i := range e.Interrupts {
			all = append(all, spot{i.Kind.way(), i.Path})
		}
	case checkpoint.StatusFailed:
		for _, f := range e.Failures {
			all = append(all, spot{"at", f.Path})
		}
	}
	if all == nil {
		for _, path := range e.Cursor.Visits {
			all = append(all, spot{"at", path})
		}
	}
	return slices.Compact(all) // one visit may wait for several things
}

// places tell the spots: " at a, b", " before a, after b", " at a, with 2 more still to run".
func (e *Rest) places() string {
	const most = 8 // an Each may have thousands of items to run
	var b strings.Builder
	all := e.spots()
	for k, s := range all[:min(len(all), most)] {
		switch {
		case k == 0:
			fmt.Fprintf(&b, " %s %s", s.way, s.path)
		case s.way == all[k-1].way:
			fmt.Fprintf(&b, ", %s", s.path)
		default:
			fmt.Fprintf(&b, ", %s %s", s.way, s.path)
		}
	}
	if more := len(all) - most; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	if left := e.left(); left > 0 {
		fmt.Fprintf(&b, ", with %d more still to run", left)
	}
	return b.String()
}

// left counts the visits that a run which failed has still to run beside those that failed.
func (e *Rest) left() (n int) {
	if e.Status != checkpoint.StatusFailed || len(e.Failures) == 0 {
		return 0
	}
	failed := make(map[string]bool, len(e.Failures))
	for _, f := range e.Failures {
		failed[f.Path] = true
	}
	for _, path := range e.Cursor.Visits {
		if !failed[path] {
			n++
		}
	}
	return n
}

// todo says what ends the interrupts.
func (e *Rest) todo() string {
	pauses, doubts := 0, 0
	for _, i := range e.Interrupts {
		switch {
		case i.pauses():
			pauses++
		case i.Kind == KindDoubt:
			doubts++
		}
	}
	switch all := len(e.Interrupts); {
	case all == 0 || e.Status != checkpoint.StatusInterrupted:
		return ""
	case doubts == all:
		return ": say with Resolve what happened, and Resume"
	case pauses < all:
		return ": Answer what it waits for, and Resume"
	case pauses > 1:
		return ": Resume ends the pauses"
	}
	return ": Resume ends the pause"
}

// panicPlace is the file and the line of the user's code that panicked, or called what did, without
// directories, by the stack of who recovered; "" if it doesn't tell.
func panicPlace(stack []byte) (place string) {
	panicked := false
	lines := strings.Split(string(stack), "\n")
	for i := 0; i+1 < len(lines); i++ {
		name := lines[i]
		switch {
		case strings.HasPrefix(name, "\t"): // the file of the function before
			continue
		case strings.HasPrefix(name, "panic("):
			panicked = true
			continue
		case !panicked || strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "internal/runtime/"):
			continue
		case slices.ContainsFunc(calls, func(it string) bool { return strings.HasPrefix(name, it) }):
			return place
		}
		users := !slices.ContainsFunc(called, func(it string) bool { return strings.HasPrefix(name, it) })
		if users || place == "" {
			place, _, _ = strings.Cut(path.Base(strings.TrimSpace(lines[i+1])), " ")
		}
		if users {
			return place
		}
	}
	return place
}

const pawl = "github.com/pawlgo/pawl/"

var (
	// called is what the user's code calls, and what panics when that has called it wrongly, or
	// panics again.
	called = []string{pawl + "dispatcher.", pawl + "state.", pawl + "dag.", "encoding/json.", "reflect."}
	// calls is what calls the user's code: none of that is further out.
	calls = []string{pawl + "dispatcher.protect(", pawl + "dispatcher.(*visit).call(", "created by "}
)

var restVerbs = map[checkpoint.Status]string{
	checkpoint.StatusInterrupted: "is interrupted",
	checkpoint.StatusCancelled:   "was cancelled",
	checkpoint.StatusTimedOut:    "timed out",
	checkpoint.StatusFailed:      "failed",
	checkpoint.StatusRunning:     "was left running",
	checkpoint.StatusPending:     "has not begun",
}
