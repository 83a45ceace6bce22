package continuation

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A wait is what the log says of one wait: the asks of one name in one visit. It goes on, at a
// stage, until it is closed. What follows is all that leads from one to another; the calls of
// history say which entry of the log does.
//
//	from           by                                              to
//
//	               Interrupted, for the first time                 asked
//	asked          Answered with a trigger, a wake or a default    taken
//	asked          Answered for nothing, or expired once           again
//	asked          Answered: expired, skipped, denied              closed, if the run goes on
//	taken          AttemptFailed, if its trigger was the last      spent
//	taken, spent   Interrupted for something behind it; Done       closed: Completed
//	any            AttemptFailed for good                          closed, and fallen
//	any            Interrupted for the same                        asked
//	any            Interrupted for something else under its name;  closed: Superseded, for good
//	               TurnBegun, Rewound; Migrated without its node
//	done, fallen   Voided                                          where it was, and spent no more
//	any            Voided around it                                voided, when the run goes on
//	fallen         Resumed, if nobody has followed the failure     where it was, and tried
//	tried          Waiting, or the Superstep; its frame followed   fallen again, for good
//	denied         Resumed, if it was asked anew before that       asked
type wait struct {
	h    *history
	id   string // of its first ask
	path string
	name string
	asks []*ask
	ending
	course
}

// An ending says how a wait was closed. The zero ending is that of one that goes on.
type ending struct {
	closed  Reason // "" if it goes on
	why, by string
	heeded  bool // of a denial that cancels the run: it has
	// It goes on since a resume tries its visit again, unless the failure turns out to be followed;
	// why is that of the failure.
	tried bool

	fell    bool            // its visit has failed for good; the rest is said of that
	how     dag.FailureKind // the visit has failed
	message string          // of the failure
	beside  bool            // it was for something else that ended without a trigger
	settled bool            // nobody tries it again: the failure was followed, or left behind
	unsaid  bool            // whether it is followed is not in the log, which is of an earlier build
}

// A course is what was done behind the triggers of a wait.
type course struct {
	resumes  int
	failures int
	lapses   int
	before   int  // of the lapses: those behind a trigger that it has had before
	working  bool // somebody went on behind the trigger, and has not come to an end that the log tells
	spent    bool // an attempt failed behind the trigger: the wait is to be asked again
	stumbles int  // attempts since that failed, or were left, before they came to ask it
}

// An ask is one interrupt of a wait.
type ask struct {
	id     string
	q      *question
	at     time.Time
	until  time.Time
	begun  time.Time // when it was asked by the clock that says when it ends; zero if nobody knows
	gone   bool      // the frame that it waited in was voided
	lost   bool      // a trim has dropped it, and q is what its trigger says of it
	ended  bool      // there is an Answered entry; the rest is of that
	bare   bool      // with what is no trigger of the wait, which its visit finds when it runs again
	answer checkpoint.Answer
	letter letter
	seq    uint64
}

// A stage is where a wait stands, unless it is closed.
type stage uint8

const (
	stageAsked  stage = iota // it has no trigger
	stageVoided              // nor takes one: it is asked anew, if the run comes there
	stageAgain               // it is to be asked again: it has expired, and has a level to come; or was answered for nothing
	stageTaken               // it has its trigger
	stageSpent               // an attempt has failed behind that; or its frame was voided, and nobody has gone on since
)

func (w *wait) stage() stage {
	a := w.last()
	switch {
	case !a.ended && a.gone:
		return stageVoided
	case !a.ended:
		return stageAsked
	case a.bare, a.answer.How == checkpoint.AnswerExpired && a.q.Level < a.q.Levels:
		return stageAgain
	case a.gone, w.spent:
		return stageSpent
	}
	return stageTaken
}

func (w *wait) last() *ask { return w.asks[len(w.asks)-1] }

// pends reports whether the wait has no trigger and no end.
func (w *wait) pends() bool { return w.closed == "" && w.stage() == stageAsked && w.h.end == nil }

// again reports whether the wait is to be asked again without a trigger of its own.
func (w *wait) again() bool { return w.stage() == stageAgain }

// taken reports whether the wait has had its trigger, and no end.
func (w *wait) taken() bool { return w.closed == "" && w.stage() >= stageTaken }

// has reports whether the wait has its trigger, and takes no other one.
func (w *wait) has() bool { return w.stage() == stageTaken }

// denies reports whether a denial has ended the wait that is to cancel the run, and has not.
func (w *wait) denies() bool { return w.closed == ApprovalDenied && !w.heeded }

// reopens reports whether its visit has failed, and a resume tries that again as far as anybody
// knows.
func (w *wait) reopens() bool { return w.fell && !w.settled && w.closed == RunFailed }

// retries reports whether its visit has failed with the run and may be tried again, which then asks
// for another trigger. What has failed behind a default, or behind a wake, would meet that again:
// see [Await].
func (w *wait) retries() bool {
	return w.reopens() && w.h.end != nil && w.h.end.kind == checkpoint.Failed &&
		!w.beside && w.spent && w.failures > 0 && w.vain() < w.last().q.MaxFailures
}

// anew reports whether its visit has failed for want of its trigger, and a resume has it ask again.
func (w *wait) anew() bool {
	if !w.fell || w.settled || w.unsaid {
		return false
	}
	return w.how == dag.FailedExpired && w.closed == Expired || w.how == dag.FailedSkipped && w.closed == CancelledByUser
}

// vain is how often the visit was gone on with in vain: nobody does that by himself more often than
// the wait's bound says, also if no attempt comes to ask it again. A trigger that somebody has for
// it is refused for what is used up alone.
func (w *wait) vain() int {
	n := w.used() + w.stumbles
	if w.spent && w.left() {
		n++
	}
	return n
}

// used is how much of the bound of the wait is used up: by its failures, and by lapses behind the
// trigger that it has. Of those before, the visit, which asks again until as much has failed, knows
// nothing: it would ask for what is refused.
func (w *wait) used() int { return w.failures + w.lapsed() - w.before }

// lapsed is how often whoever went on behind the trigger has left it there, with the last time.
func (w *wait) lapsed() int {
	if !w.spent && w.left() {
		return w.lapses + 1
	}
	return w.lapses
}

// left reports whether who went on with the visit last has died or drained, and nobody has since.
func (w *wait) left() bool { return w.working && w.h.abandoned() }

// stands is the status of the wait, and what there is to say about it.
func (w *wait) stands() (status Status, reason Reason, why, by string) {
	if w.closed != "" && (!w.reopens() || w.h.over && !w.h.end.instead) {
		return w.closed.Status(), w.closed, w.why, w.by
	}
	if w.h.over {
		reason, why := w.h.end.reason()
		return reason.Status(), reason, why, w.h.end.resting.By
	}
	if w.last().ended && !w.again() && owned(w.h.info) && w.h.info.Status == checkpoint.StatusRunning {
		return StatusClaimed, "", "", ""
	}
	return StatusPending, "", "", ""
}

func (w *wait) close(reason Reason, why, by string) {
	w.closed, w.why, w.by, w.working = reason, why, by, false
}

// reopen has the wait go on that had ended.
func (w *wait) reopen() { w.ending = ending{} }

// asked has the wait asked again.
func (w *wait) asked(a *ask) {
	w.asks = append(w.asks, a)
	if !w.denies() { // else the run is cancelled first
		w.reopen()
	}
	w.working, w.spent, w.stumbles, w.before = false, false, 0, w.lapses
}

// answered closes the wait whose ask was ended, if it does not go on behind that.
func (w *wait) answered() {
	a := w.last()
	t := &a.letter.Trigger
	switch {
	case w.h.end != nil, a.bare: // it came too late, or for nothing
	case a.answer.How == checkpoint.AnswerExpired && !w.again():
		w.close(Expired, "", "")
	case a.answer.How == checkpoint.AnswerSkipped:
		w.close(CancelledByUser, a.answer.Reason, a.answer.By)
	case t.Decision == Denied && !t.Feeds:
		w.close(ApprovalDenied, t.Reason, t.Actor.ID)
	}
}

// resumed takes in that somebody goes on with the run.
func (w *wait) resumed() {
	if w.reopens() {
		w.ending = ending{tried: true, why: w.why}
	}
	a := w.last()
	if a.gone { // and so is its trigger
		a.ended = false
	}
	if w.closed == ApprovalDenied && w.heeded && !a.ended { // it was asked anew before that
		w.reopen()
	}
	if !w.taken() || w.h.held(w) {
		return
	}
	w.lapse()
	if !w.spent {
		w.resumes++
	}
	w.working = true
}

// lapse counts that whoever went on with the visit has left it there, if somebody did.
func (w *wait) lapse() {
	switch {
	case !w.working:
	case w.spent:
		w.stumbles++
	default:
		w.lapses++
	}
}

// failed takes in that an attempt of its visit has failed, behind its trigger perhaps.
func (w *wait) failed(f *checkpoint.FailedAttempt, behind bool) {
	w.tried = false
	if w.taken() {
		w.resumes, w.working = max(w.resumes, 1), false // none if the run was live when its trigger came
		switch {
		case behind && w.spent: // it was to ask for another one, and has not
			w.stumbles++
		case behind:
			w.failures, w.spent = w.failures+1, true
		}
		w.beside = f.Final && untriggered(f)
	}
	if !f.Final {
		return
	}
	if w.closed == "" {
		w.close(w.fate(f), f.Message, "")
	}
	w.fell, w.how, w.message, w.unsaid = true, dag.FailureKind(f.Kind), f.Message, f.Followed == nil
}

// fate is why the wait ends, whose visit has failed for good.
func (w *wait) fate(f *checkpoint.FailedAttempt) Reason {
	if r := usedUp(f); r != "" {
		return r
	}
	if dag.FailureKind(f.Kind) == dag.FailedExpired && w.last().missed() && !w.h.expired(w.path) {
		return Expired
	}
	if w.failures >= w.last().q.MaxFailures {
		return MaxAttempts
	}
	return RunFailed
}

// follow takes in that a failure of the visit was followed, if a resume was to try that again: it
// has not.
func (w *wait) follow() {
	if w.tried && w.closed == "" {
		w.close(RunFailed, w.why, "")
		w.fell, w.tried = true, false
	}
	w.settle()
}

// settle has nobody try the visit again, if it has failed.
func (w *wait) settle() { w.settled = w.settled || w.fell }

// done ends the wait with its visit, or with one around that.
func (w *wait) done() {
	w.settle() // a resume has tried it again, and that went well
	if w.closed == "" {
		w.resumes = max(w.resumes, 1)
		w.close(Completed, "", "")
	}
}

// voided has its visit begin anew, with the answers that it has. A denial that is still to cancel
// the run does so.
func (w *wait) voided() {
	if (w.closed == Completed || w.fell) && !w.denies() {
		w.reopen()
	}
	w.spent, w.stumbles = false, 0 // its trigger counts anew
}

// voidedAround has the wait gone with what its visit was in: the visit that comes there is another
// one.
func (w *wait) voidedAround() {
	w.voided()
	w.last().gone, w.course = true, course{}
}

// rested takes in that the run has come to rest by an entry, which nobody at work on it has
// written, as left says.
func (w *wait) rested(e *checkpoint.Entry, left bool) {
	if left {
		w.lapse()
	}
	w.working = false // whoever was at work has come to an end, and that is no lapse; or was dead
	w.heeded = w.heeded || e.Kind == checkpoint.Cancelled && w.closed == ApprovalDenied
}

// leave ends a wait of which nothing comes behind an entry, unless it has ended.
func (w *wait) leave(e *checkpoint.Entry) {
	if status, reason, why, by := w.stands(); !status.Terminal() {
		w.close(Superseded, fmt.Sprintf("entry %d: %s", e.Seq, e.Kind), "")
	} else if w.closed == "" {
		w.close(reason, why, by)
	}
	w.settled = true
}

// missed reports whether a timer has ended the ask so late that it would have expired.
func (a *ask) missed() bool {
	t := a.letter.Trigger.Missed
	return a.ended && !t.IsZero() && !a.answer.At.Before(t)
}

// held reports whether the visit of a wait does not run again yet, since something else that it
// waits for is open: see [All].
func (h *history) held(w *wait) bool {
	return h.asksElse(w.path) || slices.ContainsFunc(h.open, func(x *wait) bool { return x.path == w.path && x.pends() })
}
