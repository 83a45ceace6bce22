package record

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// Expire says what has expired. Open questions whose time is over become expired, and for each
// resume point that they block its policy decides:
//
//   - [TimeoutAbort] denies the point.
//   - [TimeoutEscalate] has a person decide.
//   - [TimeoutContinue] approves it. If it needs a person, who is never passed over, or another
//     question blocks it, it stays pending.
//   - [TimeoutRetry] asks the questions again under new ids, for as long as they were open before.
//
// A point that no question has ever blocked expires TimeoutMs after it came to be. There is nothing
// to ask again then, so TimeoutRetry acts like TimeoutEscalate.
//
// If nothing has expired no version is added. The author is [Automatic]. Nothing calls Expire by
// itself: call it when you look at a record, or at ExpiresAt.
func (l *Ledger) Expire(ctx context.Context, id string) (*Version, error) {
	if err := l.called(ctx, "Expire"); err != nil {
		return nil, err
	}
	return l.write(ctx, id, Automatic, func(c *chain) (*Record, error) {
		x := expiry{c: c, next: c.all[len(c.all)-1].Record.Clone(), now: millis(l.o.Now())}
		x.next.MergedCRHash = ""
		x.all()
		if !x.changed {
			return nil, nil
		}
		return x.next, nil
	})
}

// An expiry is an Expire at work on the next version.
type expiry struct {
	c       *chain
	next    *Record
	now     int64
	changed bool
}

func (x *expiry) all() {
	expired := map[string][]string{} // questions by the points that they blocked
	asked := map[string]bool{}       // points that questions have ever blocked
	for i := range x.next.QuestionsForUser {
		q := &x.next.QuestionsForUser[i]
		over := q.Status == QuestionOpen && q.ExpiresAt > 0 && x.now >= q.ExpiresAt
		if over {
			q.Status, q.AnsweredBy, q.AnsweredAt, x.changed = QuestionExpired, pointer(&Automatic), x.now, true
		}
		for _, p := range q.BlocksResumePoints {
			asked[p] = true
			if over {
				expired[p] = append(expired[p], q.ID)
			}
		}
	}
	for i := range x.next.ResumePoints {
		p := &x.next.ResumePoints[i]
		if p.ApprovalStatus != ApprovalPending {
			continue
		}
		if asked[p.ID] {
			if len(expired[p.ID]) > 0 {
				x.timeOut(p, expired[p.ID])
			}
			continue
		}
		since := x.c.since(func(r *Record) bool { return find(r.ResumePoints, p.ID) != nil })
		if p.TimeoutMs > 0 && x.now-p.TimeoutMs >= since {
			x.timeOut(p, nil)
			p.TimeoutMs = 0 // it has had its effect
		}
	}
}

// timeOut does what the policy of a point says, whose questions have expired.
func (x *expiry) timeOut(p *ResumePoint, questions []string) {
	x.changed = true
	switch {
	case p.OnTimeout == TimeoutAbort:
		p.ApprovalStatus, p.ApprovalReason = ApprovalDenied, "nobody has decided in time"
		p.ApprovedBy, p.ApprovedAt = pointer(&Automatic), x.now
	case p.OnTimeout == TimeoutContinue && (p.RequiredAuthority == dag.Human || x.next.unblocked(p.ID) != nil):
	case p.OnTimeout == TimeoutContinue:
		p.ApprovalStatus, p.ApprovalReason = ApprovalAutomatic, "nobody has decided in time"
		p.ApprovedBy, p.ApprovedAt = pointer(&Automatic), x.now
	case p.OnTimeout == TimeoutRetry && len(questions) > 0:
		for _, id := range questions {
			x.again(id, p.ID)
		}
	default:
		p.RequiredAuthority, p.SafeToAutoExecute = dag.Human, false
	}
}

// again asks a question again that has expired. Points of other policies are not blocked by it.
func (x *expiry) again(id, point string) {
	for n := 2; ; n++ {
		next := fmt.Sprintf("%s~%d", id, n)
		if q := find(x.next.QuestionsForUser, next); q != nil {
			if q.Status == QuestionOpen && !slices.Contains(q.BlocksResumePoints, point) { // for another point
				q.BlocksResumePoints = append(q.BlocksResumePoints, point)
				return
			}
			continue
		}
		was := find(x.next.QuestionsForUser, id)
		since := x.c.since(func(r *Record) bool { return find(r.QuestionsForUser, id) != nil })
		q := was.clone()
		q.ID, q.Status, q.AnsweredBy, q.AnsweredAt = next, QuestionOpen, nil, 0
		q.BlocksResumePoints = []string{point}
		q.ExpiresAt = x.now + max(was.ExpiresAt-since, 1)
		x.next.QuestionsForUser = append(x.next.QuestionsForUser, q)
		return
	}
}
