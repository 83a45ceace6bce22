package record

import (
	"context"
	"fmt"
	"time"
)

// StaleAfter is how old a record may be before [HandOver] warns of its age.
const StaleAfter = 24 * time.Hour

// Work is what somebody takes over: a run of another graph, another program, or a person.
type Work struct {
	Record *Record     // a copy; what the input of a new run is made of
	Point  ResumePoint // where to go on
	// Open are questions that nobody has answered. None blocks the point.
	Open []Question
	// Done are effects that have happened, or may have: they are not to be done again. Those that
	// are replayable may be, under their keys.
	Done []ToolEffect
	// Warnings tell what somebody should look at before going on: that the record is old, that
	// blockers stand, that effects are in doubt, and what has to be true first.
	Warnings []string
}

// HandOver says how to go on from a resume point of a record. The point has to be approved, with no
// open question that blocks it: else a [*RefusedError] wraps ErrNotApproved, ErrBlocked or
// ErrNotFound. The record has to be sealed and is verified: the error is an [*InvalidError], also
// if a point that needs a person was approved by another kind of author, or by nobody. HandOver
// writes nothing.
//
// Authors are not authenticated: whoever writes a record can name anybody, so take records only
// from programs that you trust.
//
//	work, err := record.HandOver(version.Record, point, time.Now())
//	res, err := other.Start(ctx, "inquiry-43", begin(work), dispatcher.Labels(work.Labels()))
//
// The record of a run that has these labels names this record as its parent.
func HandOver(r *Record, point string, now time.Time) (*Work, error) {
	if r == nil {
		return nil, &ArgumentError{"HandOver", "record", "is nil: give one of Ledger.Get, Decode or From"}
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	if !r.authentic() {
		return nil, r.invalid("its content is not that of its contentHash: Seal it, or get it again")
	}
	item := fmt.Sprintf("resume point %q", point)
	w := &Work{Record: r.Clone()}
	p := find(w.Record.ResumePoints, point)
	switch {
	case p == nil:
		return nil, r.refuse(item, ErrNotFound, "there is none: look at ResumePoints")
	case p.ApprovalStatus == ApprovalDenied:
		return nil, r.refuse(item, ErrNotApproved, "it is denied, and stays so: go on from another point")
	case p.ApprovalStatus != ApprovalGiven && p.ApprovalStatus != ApprovalAutomatic:
		return nil, r.refuse(item, ErrNotApproved, "it is %s: use Approve, or AutoApprove", p.ApprovalStatus)
	}
	if err := r.unblocked(point); err != nil {
		return nil, err
	}
	w.Point = p.clone()
	for _, q := range w.Record.QuestionsForUser {
		if q.Status == QuestionOpen {
			w.Open = append(w.Open, q)
		}
	}
	for _, e := range w.Record.ToolEffects {
		if e.Status != EffectNotDone {
			w.Done = append(w.Done, e)
		}
	}
	w.warn(now)
	return w, nil
}

func (w *Work) warn(now time.Time) {
	add := func(format string, args ...any) { w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...)) }
	if age := now.Sub(time.UnixMilli(w.Record.LastModifiedAt)); age > StaleAfter {
		add("the record is %d hours old", int(age.Hours()))
	}
	if s := w.Record.Task.Status; s == TaskCompleted || s == TaskFailed {
		add("the task is %s", s)
	}
	for _, b := range w.Record.Blockers {
		if !b.Resolved {
			add("blocker %s: %s", b.ID, b.Description)
		}
	}
	for _, e := range w.Record.ToolEffects {
		if e.Status == EffectInDoubt {
			add("nobody knows whether effect %s has happened", e.ID)
		}
	}
	for _, p := range w.Point.Preconditions {
		add("nobody has checked that %s", p)
	}
}

// Labels are those of a run that takes over: [From] reads in them which record it goes on from.
func (w *Work) Labels() map[string]string {
	return map[string]string{ParentLabel: w.Record.ContentHash}
}

// Advance adds a version for a run that has gone on: fresh is what [From] tells of it now. If fresh
// is of the same position of the log as the record, or of an earlier one, nothing is added. What
// the log tells and what people have told the ledger is joined like this:
//
//   - What people have decided stays, however often the run goes on, and wins where it contradicts
//     the log, except that the log knows how a question ended. What the log said against people's
//     word is not kept: undoing that word decides nothing, and what a PreferB puts back of the
//     log's counts as people's.
//   - Resume points from which the run has gone on are removed.
//   - Of what was trimmed from the log since, the record keeps when the run began, what nodes have
//     said, and how questions ended: everything it had told, even what the run has gone back
//     behind. As with From, the last 1000 actions are told.
//
// An [*ArgumentError] if fresh is of another run than the record. The caller vouches that fresh was
// made by From; all the same it can't approve a point that needs somebody else: ErrAuthority.
//
// Behind a [Ledger.Merge], and in a record that goes on from a version of another one, Advance may
// have to read all records of the store to find that version, which tells what people had decided
// there. If it is not in the store, all that the first version says counts as the log's.
func (l *Ledger) Advance(ctx context.Context, id string, fresh *Record, by Author) (*Version, error) {
	if err := l.needs(ctx, "Advance", by); err != nil {
		return nil, err
	}
	if fresh == nil || fresh.Source == nil {
		return nil, &ArgumentError{"Advance", "record", "is nil, or of no run: give what From has made"}
	}
	return l.write(ctx, id, by, func(c *chain) (*Record, error) {
		head := c.all[len(c.all)-1].Record
		switch {
		case head.Source == nil || head.Source.Run != fresh.Source.Run:
			return nil, &ArgumentError{"Advance", "record",
				fmt.Sprintf("is of run %q, and record %q is not: create one for it", fresh.Source.Run, id)}
		case head.Source.Seq >= fresh.Source.Seq:
			return nil, nil
		}
		w := l.walk()
		w.chains[id] = c
		base, err := w.told(ctx, c, len(c.all))
		if err != nil {
			return nil, err
		}
		next, err := advanced(base, head, fresh.keeping(base))
		if err != nil {
			return nil, err
		}
		if err := gates(cloned(head), cloned(next), by); err != nil {
			return nil, err
		}
		next.ExecutionSummary.Actions = lastActions(next.ExecutionSummary.Actions)
		next.MergedCRHash = ""
		return next, nil
	})
}
