package record

import (
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// carried returns an error unless an author may bring into a record, whose last version was, what
// next has of another one. Whoever may pass a gate may bring what he likes behind it. Others bring
// what somebody has decided who could, under the terms of the gate as it stands in was: so no gate
// is weakened by way of another record. base is what both have gone on from, nil if nothing is.
func carried(base, was, next *Record, by Author) error {
	base, was, next = cloned(base), cloned(was), cloned(next)
	for q, now := range pairs(was.QuestionsForUser, next.QuestionsForUser) {
		if admits(q.RequiredAuthority, by) || now != nil && q.becomes(now) {
			continue
		}
		return was.refuse(fmt.Sprintf("question %q", q.ID), ErrAuthority,
			"%s may not bring in what the other record says of it: it needs a %s", by, q.RequiredAuthority)
	}
	for p, now := range pairs(was.ResumePoints, next.ResumePoints) {
		if now == nil && !admits(p.RequiredAuthority, by) {
			return was.refuse(fmt.Sprintf("resume point %q", p.ID), ErrAuthority, "%s may not take it away: it needs a %s", by, p.RequiredAuthority)
		}
	}
	if err := gates(was, next, by); err != nil {
		return err
	}
	before := index(base.Decisions)
	for d, now := range pairs(was.Decisions, next.Decisions) {
		if now != nil && d.becomes(now, before[d.ID]) || slices.Contains(d.OverridableBy, by.Type) {
			continue
		}
		return was.refuse(fmt.Sprintf("decision %q", d.ID), ErrAuthority,
			"%s may not bring in what the other record says of it: it can be overridden by %s", by, anyOf(d.OverridableBy))
	}
	return nil
}

// gates returns an error unless each resume point of was that next has is as its gate allows.
func gates(was, next *Record, by Author) error {
	for p, now := range pairs(was.ResumePoints, next.ResumePoints) {
		if now == nil || admits(p.RequiredAuthority, by) || p.becomes(now) {
			continue
		}
		return was.refuse(fmt.Sprintf("resume point %q", p.ID), ErrAuthority,
			"%s may not bring in what the other record says of it: it needs a %s", by, p.RequiredAuthority)
	}
	return nil
}

// becomes reports whether now is the question, perhaps ended by somebody who could.
func (q *Question) becomes(now *Question) bool {
	a, b := q.clone(), now.clone()
	for _, x := range []*Question{&a, &b} {
		x.Status, x.Answer, x.AnsweredBy, x.AnsweredAt = "", "", nil, 0
	}
	expired := now.Status != QuestionExpired || now.ExpiresAt > 0
	return say(q) == say(now) || say(a) == say(b) && q.Status == QuestionOpen && now.ended(q.RequiredAuthority) && expired
}

// becomes reports whether now is the point: decided by somebody who could, or made stricter, as
// a timeout does. What a pending point says to people may change.
func (p *ResumePoint) becomes(now *ResumePoint) bool {
	if say(p) == say(now) {
		return true
	}
	a, b := p.clone(), now.clone()
	for _, x := range []*ResumePoint{&a, &b} {
		if p.ApprovalStatus == ApprovalPending && now.ApprovalStatus == ApprovalPending {
			x.Label, x.Description, x.When, x.Preconditions = "", "", "", nil
		}
		x.ApprovalStatus, x.ApprovedBy, x.ApprovedAt, x.ApprovalReason = "", nil, 0, ""
	}
	if b.RequiredAuthority == dag.Human {
		a.RequiredAuthority, a.SafeToAutoExecute = b.RequiredAuthority, a.SafeToAutoExecute && b.SafeToAutoExecute
	}
	if b.TimeoutMs == 0 {
		a.TimeoutMs = 0
	}
	return p.ApprovalStatus == ApprovalPending && say(a) == say(b) && now.decided(p.RequiredAuthority)
}

// becomes reports whether now is the decision, variants apart, or what its own maker has made of it
// while it was tentative, or what somebody has put in its place who could.
func (d *Decision) becomes(now, base *Decision) bool {
	if bare(d) == bare(now) {
		return true
	}
	own := base != nil && base.Status == dag.Tentative && base.MadeBy.is(now.MadeBy) && d.MadeBy.is(now.MadeBy)
	return own || slices.Contains(d.OverridableBy, now.MadeBy.Type) && say(d.OverridableBy) == say(now.OverridableBy)
}
