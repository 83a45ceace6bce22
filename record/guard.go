package record

import (
	"fmt"

	"github.com/pawlgo/pawl/dag"
)

// guard returns an error unless an author may make next of was by an update: what others decide
// is not decided by it, and nothing that somebody relies on goes.
func guard(was, next *Record, by Author) error {
	was = cloned(was)
	next.plain()
	if err := signed(was, next, by); err != nil {
		return err
	}
	for d, now := range pairs(was.Decisions, next.Decisions) {
		if now != nil && (say(now) == say(d) || d.Status == dag.Tentative && d.MadeBy.is(by) && now.MadeBy.is(by)) {
			continue
		}
		return was.refuse(fmt.Sprintf("decision %q", d.ID), ErrAuthority, "an update does not change it: use Override")
	}
	for q, now := range pairs(was.QuestionsForUser, next.QuestionsForUser) {
		if now == nil || say(now) != say(q) {
			return was.refuse(fmt.Sprintf("question %q", q.ID), ErrAuthority, "an update does not change it: use Answer or Skip")
		}
	}
	for p, now := range pairs(was.ResumePoints, next.ResumePoints) {
		if now == nil || say(now) != say(p) {
			return was.refuse(fmt.Sprintf("resume point %q", p.ID), ErrAuthority, "an update does not change it: use Approve or Deny")
		}
	}
	for e, now := range pairs(was.ToolEffects, next.ToolEffects) {
		if now == nil || say(now) != say(e) && !e.foundOut(now) {
			return was.refuse(fmt.Sprintf("effect %q", e.ID), ErrSettled, "what has happened is not changed, and of one in doubt no more is said than what came of it: add another effect")
		}
	}
	return fresh(was, next)
}

// foundOut reports whether an effect in doubt becomes another by no more than what came of it.
func (e *ToolEffect) foundOut(now *ToolEffect) bool {
	x := *now
	x.Status, x.Outputs, x.DurationMs = e.Status, e.Outputs, e.DurationMs
	return e.Status == EffectInDoubt && now.Status != e.Status && say(&x) == say(e)
}

// signed makes by the author of what next has of new decisions and learnings that name nobody. It
// returns an error if somebody who is no person adds some in the name of another, or changes what
// another has learned; who decides what, guard knows.
func signed(was, next *Record, by Author) error {
	own := func(a *Author) bool {
		if *a == (Author{}) {
			*a = by
		}
		return by.Type == dag.Human || a.is(by)
	}
	for d, old := range pairs(next.Decisions, was.Decisions) {
		if old == nil && !own(&d.MadeBy) {
			return was.refuse(fmt.Sprintf("decision %q", d.ID), ErrAuthority, "%s may not decide in the name of %s", by, d.MadeBy)
		}
	}
	for l, old := range pairs(next.Learnings, was.Learnings) {
		if old != nil && say(old) == say(l) {
			continue
		}
		if !own(&l.LearnedBy) || old != nil && !own(&old.LearnedBy) {
			return was.refuse(fmt.Sprintf("learning %q", l.ID), ErrAuthority,
				"%s may not say what another has learned: add one of its own", by)
		}
	}
	return nil
}

// fresh returns an error unless what is new in next has still to be decided.
func fresh(was, next *Record) error {
	for q, old := range pairs(next.QuestionsForUser, was.QuestionsForUser) {
		if old == nil && (q.Status != QuestionOpen || q.AnsweredBy != nil) {
			return was.refuse(fmt.Sprintf("question %q", q.ID), ErrAuthority, "a new one is open: add it so, and use Answer or Skip")
		}
	}
	for p, old := range pairs(next.ResumePoints, was.ResumePoints) {
		if old == nil && (p.ApprovalStatus != ApprovalPending || p.ApprovedBy != nil) {
			return was.refuse(fmt.Sprintf("resume point %q", p.ID), ErrAuthority, "a new one is pending: add it so, and use Approve")
		}
	}
	return nil
}
