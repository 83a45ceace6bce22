package continuation

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// failed takes in that an attempt of a visit has failed.
func (h *history) failed(e *checkpoint.Entry) error {
	var f checkpoint.FailedAttempt
	if err := json.Unmarshal(e.Data, &f); err != nil {
		return err
	}
	newest := h.newest(e.Path)
	for _, w := range h.open {
		if w.path == e.Path {
			w.failed(&f, w == newest && !untriggered(&f))
		}
		if f.Followed != nil && *f.Followed && (w.path == e.Path || inside(w.path, e.Path)) {
			w.follow()
		}
	}
	return nil
}

// untriggered reports whether a visit has failed for good since something that it waited for ended
// without a trigger. Nothing went wrong behind the triggers that it has, and they are no reason to
// try it again.
func untriggered(f *checkpoint.FailedAttempt) bool {
	switch dag.FailureKind(f.Kind) {
	case dag.FailedExpired:
		return f.Final
	case dag.FailedSkipped: // see usedUp
		return f.Final && usedUp(f) == ""
	}
	return false
}

// usedUp is the bound of a wait for which a visit has failed, "" if it has failed for anything
// else, whatever its error says: an [Ended] of a bound is a dag.ErrSkipped.
func usedUp(f *checkpoint.FailedAttempt) Reason {
	if dag.FailureKind(f.Kind) != dag.FailedSkipped {
		return ""
	}
	for _, r := range []Reason{MaxHops, MaxAttempts} {
		if strings.Contains(f.Message, "ended: "+string(r)) {
			return r
		}
	}
	return ""
}

// newest is the wait of a visit that is to be asked again if an attempt fails now, as [Await] does
// it: the one whose trigger is the last answer that the visit was given. It is nil if that is
// something else, or a denial.
func (h *history) newest(path string) *wait {
	for _, w := range h.open {
		if a := w.last(); w.path == path && a.ended && a.seq == h.given[path] && a.letter.Trigger.Decision != Denied {
			return w
		}
	}
	return nil
}

// expired reports whether a wait of a visit that asks has expired by itself.
func (h *history) expired(path string) bool {
	return slices.ContainsFunc(h.open, func(w *wait) bool {
		return w.path == path && w.closed == Expired && w.last().answer.How == checkpoint.AnswerExpired
	})
}
