package continuation

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// A Status is where a wait is in its life. It is a reading of the run's log.
type Status string

// The statuses of waits.
const (
	StatusPending    Status = "pending"    // it waits; or its trigger was accepted and nobody is at work on the run
	StatusClaimed    Status = "claimed"    // its trigger was accepted and the run is at work
	StatusResolved   Status = "resolved"   // its visit has gone on behind it, and finished or waits for something else
	StatusExpired    Status = "expired"    // nobody ended it in time
	StatusCancelled  Status = "cancelled"  // somebody stopped the run, or denied
	StatusSuperseded Status = "superseded" // something newer has come instead
	StatusFailed     Status = "failed"     // the run can't use its trigger
)

// Terminal reports whether the wait has ended.
func (s Status) Terminal() bool { return s != StatusPending && s != StatusClaimed }

// A Reason says why a wait ended.
type Reason string

// The reasons. Any other is a reason for which somebody stopped the run: its waits read as failed,
// though the run is cancelled, and nobody is owed a follow-up.
const (
	Completed          Reason = "completed"
	CancelledByUser    Reason = "cancelled_by_user"
	CancelledByProduct Reason = "cancelled_by_product"
	ApprovalDenied     Reason = "approval_denied"
	Superseded         Reason = "superseded_by_newer_turn"
	Expired            Reason = "expired_ttl"
	MaxAttempts        Reason = "max_attempts" // as many attempts failed behind triggers as may: see Wait.MaxFailures
	MaxHops            Reason = "max_hops"     // the dialogue is longer than it may be
	RunFailed          Reason = "run_failed"
	RunTimedOut        Reason = "run_timed_out"
)

// Status is the status of a wait that ended for the reason.
func (r Reason) Status() Status {
	switch r {
	case Completed:
		return StatusResolved
	case CancelledByUser, CancelledByProduct, ApprovalDenied:
		return StatusCancelled
	case Superseded:
		return StatusSuperseded
	case Expired:
		return StatusExpired
	}
	return StatusFailed
}

// An Expected is a trigger that would end a wait.
type Expected struct {
	Kind      Kind          `json:"kind"`
	Key       string        `json:"key"`
	Authority dag.Authority `json:"authority"`
}

// A Receipt is what the log says of the trigger that was accepted for a wait: the same, whoever
// reads it.
type Receipt struct {
	Wait     string    `json:"wait"` // "" of one that a trim has dropped
	Run      string    `json:"run"`
	Trigger  string    `json:"trigger,omitempty"` // its id; "" if an instant had come
	Kind     Kind      `json:"kind"`
	Key      string    `json:"key"`
	Actor    Actor     `json:"actor"`
	Decision Decision  `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`  // when it was accepted; zero of a wake that a trim has dropped
	Seq      uint64    `json:"seq"` // of the entry of the log that says so; zero as well
}

// A View is what the log says of a wait.
type View struct {
	ID     string            `json:"id"` // of its first interrupt; it stays when the same is asked again
	Run    string            `json:"run"`
	Labels map[string]string `json:"labels,omitempty"` // of the run
	Path   string            `json:"path"`             // of the visit
	Name   string            `json:"name"`
	Status Status            `json:"status"`
	Reason Reason            `json:"reason,omitempty"` // of one that has ended
	Why    string            `json:"why,omitempty"`    // what was said about that
	By     string            `json:"by,omitempty"`     // who stopped it

	Question json.RawMessage `json:"question,omitempty"`
	Expects  []Expected      `json:"expects"`
	Asked    time.Time       `json:"asked"` // the last time
	// Until: from here on a trigger comes too late, or is for what is asked Again then; of a timer,
	// its wake
	Until time.Time `json:"until,omitzero"`
	Level int       `json:"level"` // how often it was asked since nobody answered, counted from 1
	// Resumes counts how often the visit was gone on with behind a trigger of the wait; Failures,
	// how often that failed, so that the wait is asked again (see Await), also behind what its name
	// has asked before; Lapses, how often whoever did it died or drained. An attempt that fails
	// later, before it comes to ask the wait again, is none of them.
	Resumes  int `json:"resumes"`
	Failures int `json:"failures"`
	Lapses   int `json:"lapses"`
	// Trigger is what ended it when it was asked last, nil if nothing has: the trigger that was
	// accepted; or, with no id, an instant that had come, as when it has expired, or who skipped
	// it.
	Trigger *Receipt `json:"trigger,omitempty"`
	// Delivery is that of the run. DeliveryOf tells how often it has failed, and why.
	Delivery DeliveryStatus `json:"delivery"`
}

// A Filter selects waits. The zero Filter selects all.
type Filter struct {
	Run    string            // id; "" means all
	Scope  map[string]string // labels that the run has
	Status []Status          // any of these; nil means all
}

// Get returns the wait with this id, which is its own or that of one of its interrupts. The error
// is a [*NotFoundError] if there is none, or, if the wait may be one of a run that can't be read,
// the reason why that run can't. It costs as much as [Runtime.List].
func (r *Runtime) Get(ctx context.Context, id string) (View, error) {
	if id == "" {
		return View{}, &ArgumentError{"the id of the wait", "is empty: List tells what there is"}
	}
	all, err := r.scan(ctx, Filter{})
	if found := all.byID(id); found != nil {
		return found.view(), nil
	}
	if err != nil {
		return View{}, err
	}
	return View{}, &NotFoundError{Address: "id " + id}
}

// List returns the waits that f selects: those of newer runs first, and those of a run in the order
// in which they were asked. If a run can't be read, the reason is an error beside the waits of the
// others.
//
// It lists the runs of the graph, in pages, and reads the logs of those that have changed since
// this Runtime last read them.
func (r *Runtime) List(ctx context.Context, f Filter) ([]View, error) {
	all, err := r.scan(ctx, f)
	var views []View
	for _, h := range all {
		for _, w := range h.waits {
			v := w.view()
			if len(f.Status) == 0 || slices.Contains(f.Status, v.Status) {
				views = append(views, v)
			}
		}
	}
	return views, err
}

func (w *wait) view() View {
	status, reason, why, by := w.stands()
	v := View{
		ID: w.id, Run: w.h.run, Labels: maps.Clone(w.h.info.Labels), Path: w.path, Name: w.name,
		Status: status, Reason: reason, Why: why, By: by, Resumes: w.resumes, Failures: w.failures, Lapses: w.lapsed(),
		Delivery: w.h.followUp().Status,
	}
	a := w.last()
	v.Question, v.Asked, v.Until, v.Level = slices.Clone(a.q.Ask), a.at, a.until, a.q.Level
	for _, of := range a.q.Of {
		v.Expects = append(v.Expects, Expected{of.Kind, w.key(of), of.Authority})
	}
	if a.ended {
		receipt := w.receipt(a)
		v.Trigger = &receipt
	}
	return v
}
