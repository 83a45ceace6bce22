package continuation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A Stopping says why a run is stopped.
type Stopping struct {
	Reason Reason // a word of small letters and _, of 64 bytes at most; not Completed
	Why    string // for people, of 4096 bytes at most
	By     string // who does it: 1024 bytes at most, without control characters
}

// check refuses what the log can't keep.
func (s *Stopping) check() error {
	why, by := text{"a text", s.Why, maxReason}, text{"an author", s.By, maxActor}
	switch {
	case !s.Reason.stops():
		return &ArgumentError{fmt.Sprintf("the reason %.80q", s.Reason), "is none to stop a run for: CancelledByUser is one"}
	case why.unsound() != "":
		return &ArgumentError{"Why", "is " + why.unsound()}
	case by.problem() != "":
		return &ArgumentError{"By", "is " + by.problem()}
	}
	return nil
}

// An End is how a run has come to its end.
type End struct {
	Run    string
	Status checkpoint.Status
	Reason Reason
	Why    string
	By     string
	At     time.Time
}

const stopPrefix = "stopped: "

var reasonWord = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// stops reports whether a run can be stopped for the reason.
func (r Reason) stops() bool {
	return reasonWord.MatchString(string(r)) && len(r) <= 64 && r != Completed
}

// cause is what the log keeps of a Stopping.
func (s *Stopping) cause() error {
	text := stopPrefix + string(s.Reason)
	if s.Why != "" {
		text += ": " + s.Why
	}
	return errors.New(text)
}

// parseStop reads what cause wrote. Who cancels a run without a Runtime may write something like
// it.
func parseStop(text string) (reason Reason, why string, ok bool) {
	rest, ok := strings.CutPrefix(text, stopPrefix)
	if !ok {
		return "", "", false
	}
	word, why, _ := strings.Cut(rest, ": ")
	return Reason(word), why, Reason(word).stops()
}

// Stop cancels a run for a reason, whether it waits or is at work, and returns how it ended when
// that is durable. If it has ended already, or finishes before the cancel reaches it, it stays as
// it is, and so does the reason. Waits that had not ended end with the run, as [Reason.Status]
// says. A [*NotFoundError] if there is no such run.
//
// A Runtime never goes on with a stopped run, and refuses triggers for it. Calling the dispatcher's
// Run or Resume decides that it goes on: its waits wait again, until the instants they had, and a
// trigger that was accepted before counts. The same holds for a run that a denial cancelled; its
// node is told of the denial by an [*Ended].
func (r *Runtime) Stop(ctx context.Context, run string, s Stopping) (End, error) {
	if err := s.check(); err != nil {
		return End{}, err
	}
	for told := false; ; {
		h, err := r.history(ctx, run)
		if err != nil {
			return End{}, err
		}
		if h.over {
			return h.ending(), nil
		}
		if !told || h.info.Owner == "" {
			if err := r.cancel(ctx, run, s); err != nil {
				return End{}, err
			}
			told = true
			continue
		}
		if err := r.await(ctx, h.info, time.Second); err != nil {
			return End{}, err
		}
	}
}

// cancel has the dispatcher cancel a run, unless it is completed.
func (r *Runtime) cancel(ctx context.Context, run string, s Stopping) error {
	var options []dispatcher.RunOption
	if s.By != "" {
		options = append(options, dispatcher.Author(s.By))
	}
	err := r.d.Cancel(ctx, run, s.cause(), options...)
	switch {
	case errors.Is(err, dispatcher.ErrCompleted):
		return nil
	case errors.Is(err, dispatcher.ErrNotFound): // it was there a moment before
		return &NotFoundError{Run: run}
	case err != nil: // Serve tries it again in its time, and is not to look at once
		return err
	}
	r.stir()
	return nil
}

// ended reports whether the run is at an end from which no wait brings it back. None does if a
// resume has another one, which has expired or was skipped, wait anew.
func (h *history) ended() bool {
	return h.end != nil && (!slices.ContainsFunc(h.open, (*wait).retries) || slices.ContainsFunc(h.open, (*wait).anew))
}

// ending is the end of the run, the zero End if there is none.
func (h *history) ending() End {
	if h.end == nil {
		return End{}
	}
	reason, why := h.end.reason()
	return End{h.run, h.info.Status, reason, why, h.end.resting.By, h.end.at}
}

// Supersede stops every run whose labels hold the scope, except the run with the id keep, with the
// reason [Superseded]. It returns how those ended that had not ended before. Follow-ups that are
// still owed for runs of the scope are suppressed; if somebody has such a run, as in
// dispatcher.Hooks.OnEnd, Supersede waits up to ten seconds for it. A run that is deleted meanwhile
// is passed over.
//
// If a run can't be read or stopped, or its follow-up can't be suppressed, the others are done all
// the same. The errors are joined, and Supersede can be called again.
func (r *Runtime) Supersede(ctx context.Context, scope map[string]string, keep, by string) ([]End, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if len(scope) == 0 {
		return nil, &ArgumentError{"the scope", "is empty, which would be every run: name labels"}
	}
	stopping := Stopping{Superseded, "", by}
	if err := stopping.check(); err != nil {
		return nil, err
	}
	all, err := r.list(ctx, checkpoint.Filter{Labels: maps.Clone(scope)})
	errs := []error{err}
	var ends []End
	for _, h := range all {
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if h.run == keep {
			continue
		}
		end, err := r.supersede(ctx, h, stopping)
		if end.Run != "" {
			ends = append(ends, end)
		}
		if err != nil && !gone(err) {
			errs = append(errs, err)
		}
	}
	return ends, errors.Join(errs...)
}

// supersede stops a run, and returns how it has ended if it had not before. Of one that has ended
// otherwise the follow-up is not to be brought.
func (r *Runtime) supersede(ctx context.Context, h *history, s Stopping) (end End, err error) {
	if !h.over {
		if end, err = r.Stop(ctx, h.run, s); err != nil || end.Reason == Superseded {
			return end, err
		}
	}
	return end, r.suppress(ctx, h.run, SuppressedSuperseded)
}
