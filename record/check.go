package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// Check returns an [*InvalidError] with all that is wrong with the record at once: words that the
// schema does not have, ids that are missing or there twice, numbers that can't be held, texts that
// are no UTF-8, and approvals and answers by somebody who could not give them. Whether the hash
// fits [Decode] says.
func (r *Record) Check() error {
	if r == nil { // as that of a Version that can't be read
		return r.invalid("it is nil")
	}
	c := checker{seen: map[string]bool{}}
	c.head(r)
	c.texts("Record", reflect.ValueOf(*r))
	for _, s := range sections {
		s.check(&c, r)
	}
	if len(c.problems) == 0 {
		return nil
	}
	return r.invalid(c.problems...)
}

func (l *list[T]) check(c *checker, r *Record) {
	all := *l.of(r)
	for i := range all {
		id := idOf(&all[i])
		c.id(l.name, id)
		if l.valid != nil {
			l.valid(c, l.name+" "+id, &all[i])
		}
	}
}

// A checker gathers problems.
type checker struct {
	problems []string
	seen     map[string]bool
}

func (c *checker) add(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) id(section, id string) {
	switch {
	case id == "":
		c.add("%s: an id is missing", section)
	case c.seen[section+" "+id]:
		c.add("%s: the id %q is there twice", section, id)
	}
	c.seen[section+" "+id] = true
}

func (c *checker) author(where string, a Author) {
	word(c, where, "type of an author", a.Type, dag.Human, dag.Agent, dag.System)
	if a.ID == "" {
		c.add("%s: an author has no id", where)
	}
}

// largest is the largest integer that every reader of JSON can hold.
const largest = 1<<53 - 1

func (c *checker) number(where string, all ...int64) {
	for _, n := range all {
		if n < 0 || n > largest {
			c.add("%s: %d is not between 0 and %d", where, n, largest)
		}
	}
}

func (c *checker) share(where string, f float64) {
	if !(f >= 0 && f <= 1) {
		c.add("%s: the confidence %v is not between 0 and 1", where, f)
	}
}

func word[T ~string](c *checker, where, what string, got T, may ...T) {
	if !slices.Contains(may, got) {
		c.add("%s: %q is no %s: use one of %q", where, string(got), what, may)
	}
}

func (c *checker) hash(what, hash string) {
	if hash != "" && (!isHash(hash) || hash != strings.ToLower(hash)) {
		c.add("%s is no SHA-256 in hexadecimal", what)
	}
}

func (c *checker) head(r *Record) {
	if r.ID == "" {
		c.add("the id is missing")
	}
	if r.Version != SchemaVersion {
		c.add("version %q is not known: this program reads %q", r.Version, SchemaVersion)
	}
	c.hash("contentHash", r.ContentHash)
	c.hash("parentCRHash", r.ParentCRHash)
	c.hash("mergedCRHash", r.MergedCRHash)
	c.hash("merkleRoot", r.MerkleRoot)
	if s := r.Source; s != nil && (s.Seq > largest || s.First > largest) {
		c.add("source: a sequence number is impossible")
	}
	word(c, "task", "status of a task", r.Task.Status, TaskNotStarted, TaskInProgress, TaskBlocked, TaskCompleted, TaskFailed)
	c.author("createdBy", r.CreatedBy)
	c.author("lastModifiedBy", r.LastModifiedBy)
	s := &r.ExecutionSummary
	c.number("times", r.CreatedAt, r.LastModifiedAt, r.Task.StartedAt, r.Task.CompletedAt, s.ElapsedMs)
	c.number("counts", int64(s.StepsCompleted), int64(s.StepsFailed), s.TokensConsumed)
	for _, a := range s.Actions {
		word(c, "actions", "outcome of an action", a.Outcome, OutcomeSuccess, OutcomeFailure, OutcomePartial)
		c.number("actions", a.Timestamp)
	}
	word(c, "metadata", "priority of a record", r.Metadata.Priority, PriorityCritical, PriorityHigh, PriorityMedium, PriorityLow)
}

func (c *checker) decision(where string, d *Decision) {
	word(c, where, "status of a decision", d.Status, dag.Tentative, dag.Accepted, dag.Rejected, dag.Contested)
	c.author(where, d.MadeBy)
	c.number(where, d.MadeAt)
	c.share(where, d.Confidence)
	for _, v := range d.Variants {
		c.author(where, v.Author)
		word(c, where, "status of a decision", v.Status, "", dag.Tentative, dag.Accepted, dag.Rejected, dag.Contested)
	}
	for _, a := range d.OverridableBy {
		word(c, where, "authority", a, dag.Human, dag.Agent, dag.System)
	}
}

func (c *checker) learning(where string, l *Learning) {
	c.author(where, l.LearnedBy)
	c.share(where, l.Confidence)
	c.number(where, l.LearnedAt)
}

func (c *checker) question(where string, q *Question) {
	word(c, where, "type of a question", q.Type, AskQuestion, AskApproval, AskOverride, AskScopeChange)
	word(c, where, "status of a question", q.Status, QuestionOpen, QuestionAnswered, QuestionExpired, QuestionSkipped)
	word(c, where, "priority of a question", q.Priority, PriorityBlocking, PriorityHigh, PriorityMedium, PriorityLow)
	word(c, where, "authority", q.RequiredAuthority, "", dag.Human, dag.Agent, dag.System, AnyAuthority)
	c.number(where, q.AnsweredAt, q.ExpiresAt)
	if q.AnsweredBy != nil {
		c.author(where, *q.AnsweredBy)
	}
	if !q.ended(q.RequiredAuthority) {
		c.add("%s: it is %s%s, and needs a %s", where, q.Status, byWhom(q.AnsweredBy), q.RequiredAuthority)
	}
}

func (c *checker) blocker(where string, b *Blocker) {
	c.author(where, b.ReportedBy)
	c.number(where, b.ReportedAt)
}

func (c *checker) point(where string, p *ResumePoint) {
	word(c, where, "authority", p.RequiredAuthority, dag.Human, dag.Agent, dag.System, AnyAuthority)
	word(c, where, "timeout policy", p.OnTimeout, TimeoutAbort, TimeoutEscalate, TimeoutContinue, TimeoutRetry)
	word(c, where, "approval status", p.ApprovalStatus, ApprovalPending, ApprovalGiven, ApprovalDenied, ApprovalAutomatic)
	c.number(where, p.TimeoutMs, p.ApprovedAt)
	if p.ApprovedBy != nil {
		c.author(where, *p.ApprovedBy)
	}
	if !p.decided(p.RequiredAuthority) {
		c.add("%s: it is %s%s, and needs a %s", where, p.ApprovalStatus, byWhom(p.ApprovedBy), p.RequiredAuthority)
	}
}

func (c *checker) effect(where string, e *ToolEffect) {
	word(c, where, "status of an effect", e.Status, "", EffectDone, EffectNotDone, EffectLost, EffectInDoubt)
	c.number(where, e.ExecutedAt, e.DurationMs)
	for _, v := range []json.RawMessage{e.Inputs, e.Outputs} {
		var members map[string]json.RawMessage
		if len(v) > 0 && (json.Unmarshal(v, &members) != nil || members == nil) {
			c.add("%s: inputs and outputs have to be objects", where)
		} else if n := inexact(v); n != "" {
			c.add("%s: JSON in canonical form can't hold the number %s: give it as a string", where, n)
		}
	}
}
