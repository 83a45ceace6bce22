package continuation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A DeliveryStatus says what came of the follow-up of a run: of what somebody is to be told when it
// has ended.
type DeliveryStatus string

// The statuses of deliveries.
const (
	// NotApplicable: nothing is owed: it was begun without Owed, or has ended Cancelled
	NotApplicable DeliveryStatus = "not_applicable"
	// DeliveryPending: it is owed, and was not tried or is to be tried again
	DeliveryPending      DeliveryStatus = "pending_delivery"
	Delivered            DeliveryStatus = "delivered"                    // it was brought
	SuppressedReengaged  DeliveryStatus = "suppressed_session_reengaged" // the user is back, and needs none
	SuppressedSuperseded DeliveryStatus = "suppressed_superseded"        // something newer has come instead
	// SuppressedExpired: what it would answer has expired: the run has failed for that
	SuppressedExpired DeliveryStatus = "suppressed_expired"
	DeliveryFailed    DeliveryStatus = "delivery_failed" // it was tried as often as it may be
)

// brought reports whether it says that there is nothing more to bring.
func (s DeliveryStatus) brought() bool {
	return slices.Contains([]DeliveryStatus{Delivered, SuppressedReengaged, SuppressedSuperseded, SuppressedExpired}, s)
}

// deliveryLabel is the label of runs whose follow-up is owed, and deliveryNote the name of notes.
const (
	deliveryLabel = "pawl.own.delivery"
	deliveryName  = "continuation.delivery"
)

// Owed adds to the labels of a run that its follow-up is owed: give them to dispatcher.Labels when
// the run is begun. For a run without it nothing is ever delivered, whatever Options say later.
//
// A run that ends Cancelled has no follow-up, for whatever reason and even if its waits read as
// failed: whoever stopped or denied it knows, and tells whoever has to be told. If it is brought
// back, its next end is told. Forks, which try something out, don't inherit the label; to have the
// end of a fork told as well, give Owed in the Labels of dispatcher.ForkOptions.
func Owed(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[deliveryLabel] = "owed"
	return all
}

// A Deliverer brings follow-ups to whoever waits for them.
type Deliverer interface {
	// Deliver brings one follow-up, and returns Delivered or one of the Suppressed statuses. It may
	// be called again with the same key after it has succeeded, because the process dies or the
	// store fails before that is durable, and by somebody else at the same time. An error is a
	// failed delivery, which is tried again as Options say, and so is a panic. An error that says
	// that ctx has ended, when it has, is no try. Deliver may not leave by runtime.Goexit, which
	// would end the caller too.
	Deliver(ctx context.Context, d Delivery) (DeliveryStatus, error)
}

// A Delivery is a follow-up to be brought.
type Delivery struct {
	// Key is the same whenever the follow-up of this end is tried: for the other side to know it
	// by. It is made of the run's id and the number of the entry with which it ended, so a run that
	// was deleted and begun again under its id may come to the same. Who deletes runs gives each a
	// new id.
	Key    string
	End    End // of the run. What to say is in its state: dispatcher.Dispatcher.State.
	Labels map[string]string
	Tries  int // failed ones before this
}

// A deliveryNote is the Value of a note about a delivery.
type deliveryNote struct {
	Status DeliveryStatus `json:"status"`
	Key    string         `json:"key"`
	Reason string         `json:"reason,omitempty"`
	Final  bool           `json:"final,omitempty"`
	At     time.Time      `json:"at,omitzero"` // of a failure, by the clock of its Runtime; of older notes the entry's
}

func (h *history) noted(e *checkpoint.Entry) error {
	var n checkpoint.Note
	if json.Unmarshal(e.Data, &n) != nil || n.Name != deliveryName || h.end == nil {
		return nil
	}
	d := deliveryNote{At: e.At}
	if json.Unmarshal(n.Value, &d) != nil || d.Key == "" || d.Status != DeliveryFailed && !d.Status.brought() {
		return nil // somebody has noted it who uses the name for something of his own
	}
	h.notes = append(h.notes, d)
	return nil
}

// delivery is what came of the follow-up of the run. The entry with which it ended is the outbox:
// there is nothing that could be forgotten to be written beside it.
func (h *history) delivery() deliveryNote {
	d := deliveryNote{Status: NotApplicable}
	if h.info.Labels[deliveryLabel] == "" {
		return d
	}
	d.Status = DeliveryPending
	if !h.over {
		return d
	}
	d.Key = h.key()
	if n := len(h.notes); n > 0 {
		return h.notes[n-1]
	}
	reason, _ := h.end.reason()
	switch {
	case reason == Superseded:
		d.Status = SuppressedSuperseded
	case h.end.late:
		d.Status = SuppressedExpired
	case h.end.kind == checkpoint.Cancelled:
		d.Status = NotApplicable
	}
	return d
}

// key is that of the follow-up of the end of the run.
func (h *history) key() string { return h.run + "@" + number(h.end.seq) }

// tries is how often the delivery has failed.
func (h *history) tries() (n int) {
	for _, d := range h.notes {
		if d.Status == DeliveryFailed {
			n++
		}
	}
	return n
}

// retryAt reports whether the delivery is to be tried, and from which instant on: at once if the
// clock was set back behind its failure.
func (h *history) retryAt(r *Runtime) (at time.Time, again bool) {
	d := h.delivery()
	switch {
	case !h.over || owned(h.info) || r.options.Deliverer == nil:
		return at, false
	case d.Status == DeliveryFailed && !d.Final && r.options.Now().Before(d.At):
		return at, true
	case d.Status == DeliveryFailed && !d.Final:
		return d.At.Add(r.options.Redeliver), true
	}
	return at, d.Status == DeliveryPending
}

// owed are the runs to whose follow-ups something may still happen.
func (r *Runtime) owed(ctx context.Context) (histories, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if r.options.Deliverer == nil {
		return nil, nil
	}
	return r.list(ctx, checkpoint.Filter{Labels: Owed(nil)})
}

// Deliver brings the follow-ups that are owed for runs that have completed, failed or timed out,
// the oldest first, and returns the ids of those runs. For a run that was cancelled none is owed.
// How a run ended is durable before the Deliverer hears of it. Errors of the Deliverer are kept in
// the log, for [Runtime.DeliveryOf], and are no errors of Deliver.
//
// What came of a delivery is a note in the log of its run. It is written whatever else was added to
// the log meanwhile, and also if ctx has ended by then. If somebody keeps the run, or the store
// does not answer, for ten seconds, that is an error, and the follow-up is brought again. When two
// deliver at once, the first result that is brought or suppressed is kept, and stays; failures
// before it count, each as one. If the run has gone on meanwhile, the end that was told is past,
// and nothing is noted.
//
// The follow-up of a run that failed because a wait expired is suppressed, as long as the log tells
// that. Where a trim has dropped the failure of the visit, as of one behind a loop that went on
// beside it, the follow-up is brought.
//
// Deliver lists all runs that were begun with [Owed], until they are deleted, even if their
// follow-up was delivered long ago, and reads those that have changed since.
func (r *Runtime) Deliver(ctx context.Context) ([]string, error) {
	done, err := r.deliver(ctx)
	return done.runs, err
}

// deliveries are what came of a call of Deliver.
type deliveries struct {
	runs     []string
	failures []*DeliveryError
	again    time.Time // when the first one of those that failed may be tried again; zero if none may
}

// retry has a delivery tried again at an instant.
func (d *deliveries) retry(at time.Time) {
	if d.again.IsZero() || at.Before(d.again) {
		d.again = at
	}
}

// deliver is Deliver, and tells the deliveries that failed.
func (r *Runtime) deliver(ctx context.Context) (done deliveries, err error) {
	all, err := r.owed(ctx)
	errs := []error{err}
	for _, h := range slices.Backward(all) {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if _, again := h.retryAt(r); !again {
			continue
		}
		h, err := r.history(ctx, h.run) // as it is by now: what was brought before it may have taken long
		if err != nil {
			if !gone(err) {
				errs = append(errs, err)
			}
			continue
		}
		at, again := h.retryAt(r)
		if !again {
			continue
		}
		if at.After(r.options.Now()) {
			done.retry(at)
			continue
		}
		done.runs = append(done.runs, h.run)
		errs = append(errs, r.tell(ctx, h, &done))
	}
	return done, errors.Join(errs...)
}

// tell has the follow-up of a run brought, and notes what came of it.
func (r *Runtime) tell(ctx context.Context, h *history, done *deliveries) error {
	d := Delivery{Key: h.key(), End: h.ending(), Labels: maps.Clone(h.info.Labels), Tries: h.tries()}
	n := deliveryNote{Key: d.Key}
	var failed error
	if n.Status, failed = r.try(ctx, d); failed == nil {
		_, err := r.note(ctx, h, &n)
		return err
	}
	if ended(ctx, failed) {
		return context.Cause(ctx) // it was kept from being brought, and has not failed
	}
	n.Status, n.Reason, n.At = DeliveryFailed, short(failed), r.options.Now().UTC().Round(0)
	tries, err := r.note(ctx, h, &n)
	if err != nil { // the log has no such failure, whichever it would have been
		n.Final = false
	}
	done.failures = append(done.failures, &DeliveryError{h.run, d.Key, max(tries, d.Tries+1), n.Final, failed})
	if !n.Final {
		done.retry(r.options.Now().Add(r.options.Redeliver))
	}
	return err
}

// try has the Deliverer bring a follow-up.
func (r *Runtime) try(ctx context.Context, d Delivery) (status DeliveryStatus, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fallen{fmt.Sprintf("the deliverer panicked: %v", p), debug.Stack()}
		}
	}()
	status, err = r.options.Deliverer.Deliver(ctx, d)
	if err == nil && !status.brought() {
		err = fmt.Errorf("the deliverer answered %q, which is no status of what was brought", string(status))
	}
	return status, err
}

// A fallen is the panic of a Deliverer. Its stack is for whoever is told of it, and not for the
// log.
type fallen struct {
	message string
	stack   []byte
}

func (e *fallen) Error() string { return e.message + "\n" + string(e.stack) }

// short is as much of an error as a note keeps.
func short(err error) string {
	text := err.Error()
	if p := (*fallen)(nil); errors.As(err, &p) {
		text = p.message
	}
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// A FollowUp says what has come of the follow-up of a run.
type FollowUp struct {
	Status DeliveryStatus `json:"status"`
	Tries  int            `json:"tries,omitempty"` // that have failed
	Error  string         `json:"error,omitempty"` // of the last one that failed, if nothing has come since
}

// DeliveryOf says what came of the follow-up of a run, whether it has waited or not. A
// [*NotFoundError] if there is no such run.
func (r *Runtime) DeliveryOf(ctx context.Context, run string) (FollowUp, error) {
	h, err := r.history(ctx, run)
	if err != nil {
		return FollowUp{}, err
	}
	return h.followUp(), nil
}

func (h *history) followUp() FollowUp {
	d := h.delivery()
	f := FollowUp{d.Status, h.tries(), d.Reason}
	if d.Status == DeliveryFailed && !d.Final {
		f.Status = DeliveryPending
	}
	return f
}
