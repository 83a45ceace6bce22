package continuation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An end is an entry with which a run came to rest.
type end struct {
	kind    checkpoint.Kind
	seq     uint64
	at      time.Time
	resting checkpoint.Resting
	late    bool // it has failed for the expiry of a wait
	instead bool // the run had failed, and a wait would have brought it back
}

// rested takes in how the run has come to rest.
func (h *history) rested(e *checkpoint.Entry) error {
	h.end = &end{kind: e.Kind, seq: e.Seq, at: e.At, instead: h.end != nil && !h.ended()}
	if len(e.Data) > 0 {
		if err := json.Unmarshal(e.Data, &h.end.resting); err != nil {
			return err
		}
	}
	h.notes, h.end.late = nil, h.failedLate()
	left := h.end.fromOutside(e)
	for _, w := range h.open {
		w.rested(e, left)
	}
	return nil
}

// fromOutside reports whether e cancelled a run that nobody was at work on. Whoever is at work
// hears of a cancel by a post, and drains that; of one whose context ends the log tells no author,
// nor a [Stopping].
func (x *end) fromOutside(e *checkpoint.Entry) bool {
	_, _, stopped := parseStop(x.resting.Cause)
	return e.Kind == checkpoint.Cancelled && e.Post == "" && (stopped || x.resting.By != "")
}

// failedLate reports whether the run has failed for the expiry of a wait. Its cause is one failure
// that nobody follows: the path of the visit, and the message, of which a long one is clipped.
func (h *history) failedLate() bool {
	cause, clipped := strings.CutSuffix(h.end.resting.Cause, "…")
	return h.end.kind == checkpoint.Failed && h.end.resting.Kind == "" && slices.ContainsFunc(h.open, func(w *wait) bool {
		why := w.path + ": " + w.message
		return w.how == dag.FailedExpired && w.closed == Expired && (why == h.end.resting.Cause || clipped && strings.HasPrefix(why, cause))
	})
}

// reason reads why the run has come to its end.
func (e *end) reason() (Reason, string) {
	text := e.resting.Cause
	switch e.kind {
	case checkpoint.Completed:
		return Completed, ""
	case checkpoint.TimedOut:
		return RunTimedOut, text
	case checkpoint.Failed:
		return RunFailed, text
	}
	if reason, why, ok := parseStop(text); ok {
		return reason, why
	}
	return CancelledByProduct, text
}
