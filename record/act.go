package record

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// Update adds the version that change makes of the last one, if the last one still has the content
// hash parent; else a [*ConflictError] holds the last one. An error of change refuses the update.
// If change changes nothing no version is added.
//
// The function change may:
//
//   - change the task, the summary and the metadata;
//   - add items of any kind;
//   - mend and remove learnings, blockers and invariants;
//   - change decisions that are tentative and the author's own;
//   - turn an effect that was in doubt into one that is not, with what came of it: Status, Outputs
//     and DurationMs.
//
// It may remove no other item, and may not do what has a verb of its own, such as answering
// questions and approving points. It can't set what the ledger says of versions: id, hashes,
// authors and times.
//
// A decision or learning that names nobody is the author's. Only a person may add one in the name
// of somebody else, or mend what somebody else has learned: ErrAuthority.
func (l *Ledger) Update(
	ctx context.Context, id, parent string, change func(*Record) error, by Author,
) (*Version, error) {
	if err := l.needs(ctx, "Update", by); err != nil {
		return nil, err
	}
	if change == nil {
		return nil, &ArgumentError{"Update", "change", "is nil: say what to change"}
	}
	return l.write(ctx, id, by, func(c *chain) (*Record, error) {
		head := c.all[len(c.all)-1].Record
		if head.ContentHash != parent {
			return nil, &ConflictError{id, parent, head}
		}
		next := head.Clone()
		if err := change(next); err != nil {
			return nil, err
		}
		next.Source = pointer(head.Source)
		if err := guard(head, next, by); err != nil {
			return nil, err
		}
		if content(next) == content(head) {
			return nil, nil
		}
		next.MergedCRHash = ""
		return next, nil
	})
}

// Answer answers a question, if the author may. ErrSettled if it was answered, has expired or was
// skipped; ErrExpired if it is too late, whether or not [Ledger.Expire] has said so. The answer is
// UTF-8 of at most 1 MiB, else an [*ArgumentError]. It is an answer in the record: give it to a run
// that waits for it by dispatcher.Dispatcher.Answer.
func (l *Ledger) Answer(ctx context.Context, id, question, answer string, by Author) (*Version, error) {
	switch {
	case !utf8.ValidString(answer):
		return nil, &ArgumentError{"Answer", "answer", "is no UTF-8: encode it, in base64 or else, if it is no text"}
	case len(answer) > longestAnswer:
		return nil, &ArgumentError{"Answer", "answer",
			fmt.Sprintf("has %d bytes, and may have %d: keep it elsewhere, and say where", len(answer), longestAnswer)}
	}
	return l.end(ctx, "Answer", id, question, by, func(q *Question) { q.Status, q.Answer = QuestionAnswered, answer })
}

// Skip says that there will be no answer to a question. It is else as Answer.
func (l *Ledger) Skip(ctx context.Context, id, question string, by Author) (*Version, error) {
	return l.end(ctx, "Skip", id, question, by, func(q *Question) { q.Status = QuestionSkipped })
}

func (l *Ledger) end(
	ctx context.Context, call, id, question string, by Author, end func(*Question),
) (*Version, error) {
	return l.act(ctx, call, id, by, func(r *Record) error {
		item := fmt.Sprintf("question %q", question)
		q := find(r.QuestionsForUser, question)
		now := millis(l.o.Now())
		switch {
		case q == nil:
			return r.refuse(item, ErrNotFound, "there is none: look at QuestionsForUser")
		case q.Status != QuestionOpen:
			return r.refuse(item, ErrSettled, "it is %s already%s", q.Status, byWhom(q.AnsweredBy))
		case q.ExpiresAt > 0 && now >= q.ExpiresAt:
			return r.refuse(item, ErrExpired, "it has expired: Expire says what comes of what it blocks")
		case !admits(q.RequiredAuthority, by):
			return r.refuse(item, ErrAuthority, "%s may not answer it: it needs a %s", by, q.RequiredAuthority)
		}
		end(q)
		q.AnsweredBy, q.AnsweredAt = &by, now
		return nil
	})
}

// Approve lets the work go on from a resume point, if the author may and no question is open that
// blocks it: ErrAuthority, ErrBlocked; ErrSettled if it is not pending.
func (l *Ledger) Approve(ctx context.Context, id, point string, by Author) (*Version, error) {
	return l.decide(ctx, "Approve", id, point, by, func(r *Record, p *ResumePoint) error {
		if err := r.unblocked(point); err != nil {
			return err
		}
		p.ApprovalStatus = ApprovalGiven
		return nil
	})
}

// Deny says that the work does not go on from a resume point, and why. Questions that block it do
// not matter for that. It is else as Approve.
func (l *Ledger) Deny(ctx context.Context, id, point, reason string, by Author) (*Version, error) {
	return l.decide(ctx, "Deny", id, point, by, func(r *Record, p *ResumePoint) error {
		p.ApprovalStatus, p.ApprovalReason = ApprovalDenied, reason
		return nil
	})
}

// AutoApprove approves a resume point with the system as its author, if the point says that it is
// safe to go on from without a person, the system or anybody may approve it, and no open question
// blocks it. A point that needs a person or an agent is ErrAuthority, however safe it is said to
// be.
func (l *Ledger) AutoApprove(ctx context.Context, id, point string) (*Version, error) {
	return l.decide(ctx, "AutoApprove", id, point, Automatic, func(r *Record, p *ResumePoint) error {
		if !p.SafeToAutoExecute {
			return r.refuse(fmt.Sprintf("resume point %q", point), ErrAuthority,
				"it is not safe to go on from by itself: let somebody approve")
		}
		if err := r.unblocked(point); err != nil {
			return err
		}
		p.ApprovalStatus = ApprovalAutomatic
		return nil
	})
}

func (l *Ledger) decide(
	ctx context.Context, call, id, point string, by Author, decide func(*Record, *ResumePoint) error,
) (*Version, error) {
	return l.act(ctx, call, id, by, func(r *Record) error {
		item := fmt.Sprintf("resume point %q", point)
		p := find(r.ResumePoints, point)
		switch {
		case p == nil:
			return r.refuse(item, ErrNotFound, "there is none: look at ResumePoints")
		case p.ApprovalStatus != ApprovalPending:
			return r.refuse(item, ErrSettled, "it is %s already%s", p.ApprovalStatus, byWhom(p.ApprovedBy))
		case !admits(p.RequiredAuthority, by):
			return r.refuse(item, ErrAuthority, "%s may not decide: it needs a %s", by, p.RequiredAuthority)
		}
		if err := decide(r, p); err != nil {
			return err
		}
		p.ApprovedBy, p.ApprovedAt = &by, millis(l.o.Now())
		return nil
	})
}

// Override puts another choice in the place of a decision. What was decided stays, as a variant.
// ErrAuthority unless OverridableBy has the kind of the author.
func (l *Ledger) Override(
	ctx context.Context, id, decision, choice, rationale string, by Author,
) (*Version, error) {
	return l.act(ctx, "Override", id, by, func(r *Record) error {
		item := fmt.Sprintf("decision %q", decision)
		d := find(r.Decisions, decision)
		switch {
		case d == nil:
			return r.refuse(item, ErrNotFound, "there is none: look at Decisions")
		case !slices.Contains(d.OverridableBy, by.Type):
			return r.refuse(item, ErrAuthority, "%s may not override it: it can be overridden by %s", by, anyOf(d.OverridableBy))
		case choice == "" || choice == d.Description:
			return r.refuse(item, ErrSettled, "say what is to be done instead of %q", d.Description)
		}
		d.Variants = append(d.Variants, d.variant())
		d.Description, d.Rationale, d.Status = choice, rationale, l.o.Overridden
		d.MadeBy, d.MadeAt, d.Confidence, d.Alternatives = by, millis(l.o.Now()), 0, nil
		return nil
	})
}

// act writes a version in which something was done to the last one, whichever that is by then.
func (l *Ledger) act(ctx context.Context, call, id string, by Author, act func(*Record) error) (*Version, error) {
	if err := l.needs(ctx, call, by); err != nil {
		return nil, err
	}
	return l.write(ctx, id, by, func(c *chain) (*Record, error) {
		next := c.all[len(c.all)-1].Record.Clone()
		next.MergedCRHash = ""
		return next, act(next)
	})
}

// unblocked returns ErrBlocked if open questions block a resume point.
func (r *Record) unblocked(point string) error {
	var open []string
	for i := range r.QuestionsForUser {
		if q := &r.QuestionsForUser[i]; q.Status == QuestionOpen && slices.Contains(q.BlocksResumePoints, point) {
			open = append(open, fmt.Sprintf("question %q", q.ID))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return r.refuse(fmt.Sprintf("resume point %q", point), ErrBlocked,
		"answer or skip %s first, or Expire what has expired", strings.Join(open, ", "))
}

func byWhom(a *Author) string {
	if a == nil {
		return ""
	}
	return " by " + a.String()
}

func anyOf(all []dag.Authority) string {
	if len(all) == 0 {
		return "nobody"
	}
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = string(a)
	}
	return strings.Join(words, " or ")
}
