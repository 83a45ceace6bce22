package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// noted adds what a node has said: dag.Decide, Learn, Block and Require. What is said again
// under an id takes the place of what was said before; of a decision that stays as a variant.
func (t *telling) noted(r *Record, n *noted) {
	by, at := t.node(n.path), millis(n.at)
	if n.By != "" {
		by = t.who(n.By)
	}
	switch n.Name {
	case dag.NoteDecision:
		var d dag.Decision
		if json.Unmarshal(n.Value, &d) == nil && d.ID != "" {
			t.decided(r, &d, by, at)
		}
	case dag.NoteLearning:
		var l dag.Learning
		if json.Unmarshal(n.Value, &l) == nil && l.ID != "" {
			r.Learnings = sayAgain(t, n.Name, r.Learnings, Learning{
				ID: l.ID, Content: l.Content, Source: cmp.Or(l.Source, by.ID), Confidence: l.Confidence,
				LearnedBy: by, LearnedAt: at,
			})
		}
	case dag.NoteBlocker:
		var b dag.Blocker
		if json.Unmarshal(n.Value, &b) == nil && b.ID != "" {
			r.Blockers = sayAgain(t, n.Name, r.Blockers, Blocker{
				ID: b.ID, Description: b.Description, Severity: b.Severity, Needs: b.Needs,
				Resolved: b.Resolved, ReportedBy: by, ReportedAt: at,
			})
		}
	case dag.NoteInvariant:
		var i dag.Invariant
		if json.Unmarshal(n.Value, &i) == nil && i.ID != "" {
			r.Invariants = sayAgain(t, n.Name, r.Invariants, Invariant(i))
		}
	}
}

func (t *telling) decided(r *Record, said *dag.Decision, by Author, at int64) {
	d := Decision{
		ID: said.ID, Description: said.Description, Rationale: said.Rationale,
		Status: cmp.Or(said.Status, dag.Accepted), MadeBy: by, MadeAt: at,
		Affects: said.Affects, OverridableBy: said.OverridableBy,
		Confidence: said.Confidence, Alternatives: said.Alternatives,
	}
	if i, again := t.said[[2]string{dag.NoteDecision, d.ID}]; again {
		was := &r.Decisions[i]
		d.Variants = was.Variants
		if was.Description != d.Description || was.Status != d.Status {
			d.Variants = append(d.Variants, was.variant())
		}
	}
	r.Decisions = sayAgain(t, dag.NoteDecision, r.Decisions, d)
}

// sayAgain adds an item that a note has said, or has it take the place of the one that was said
// before.
func sayAgain[T item](t *telling, note string, list []T, x T) []T {
	key := [2]string{note, idOf(&x)}
	if i, again := t.said[key]; again {
		list[i] = x
		return list
	}
	t.said[key] = len(list)
	return append(list, x)
}

// variant is the decision as one that another has taken the place of.
func (d *Decision) variant() Variant {
	return Variant{Author: d.MadeBy, Decision: d.Description, Rationale: d.Rationale, Status: d.Status}
}

// ask adds the questions that have ended, then those that are open, each with the point that it
// blocks. A pause of the program's own is a point without a question.
func (t *telling) ask(r *Record) {
	open := map[string]bool{}
	for _, i := range t.opened.Interrupts {
		open[i.ID] = true
	}
	for i := range t.questions {
		if q := &t.questions[i]; !open[q.id] && !pause(dispatcher.InterruptKind(q.Kind), q.By) {
			r.QuestionsForUser = append(r.QuestionsForUser, t.closed(q))
		}
	}
	for i := range t.opened.Interrupts {
		w := &t.opened.Interrupts[i]
		p := t.waits(w)
		if !pause(w.Kind, w.By) {
			q := question(w.ID, w.Path, w.Kind, w.Key, w.Reason, w.Question)
			q.BlocksResumePoints, q.Priority = []string{p.ID}, PriorityBlocking
			if !w.Until.IsZero() {
				q.ExpiresAt = millis(w.Until)
			}
			r.QuestionsForUser = append(r.QuestionsForUser, q)
			p.RequiredAuthority = q.RequiredAuthority
			p.Preconditions = append(p.Preconditions, "question "+w.ID+" is answered or skipped")
		}
		r.ResumePoints = append(r.ResumePoints, p)
	}
}

// pause reports whether an interrupt is one that a resume ends.
func pause(k dispatcher.InterruptKind, by string) bool {
	return by == "" && (k == dispatcher.KindBefore || k == dispatcher.KindAfter)
}

// closed is a question that has ended. One that nobody has answered ended with its visit.
func (t *telling) closed(a *asked) Question {
	q := question(a.id, a.path, dispatcher.InterruptKind(a.Kind), a.Key, a.Reason, a.Question)
	q.Status, q.Priority = QuestionSkipped, PriorityHigh
	if !a.Until.IsZero() {
		q.ExpiresAt = millis(a.Until)
	}
	if a.answer == nil {
		return q
	}
	q.AnsweredAt = millis(a.answer.At)
	by := Automatic
	switch a.answer.How {
	case checkpoint.AnswerGiven:
		q.Status, by = QuestionAnswered, Author{Type: dag.Human, ID: "unknown"}
	case checkpoint.AnswerDefault:
		q.Status = QuestionAnswered
	case checkpoint.AnswerExpired:
		q.Status = QuestionExpired
	}
	if a.answer.By != "" {
		by = t.who(a.answer.By)
	}
	q.AnsweredBy, q.Answer = &by, text(a.answer.Value)
	if _, wait := new(Question).awaits(a.Question); wait {
		q.triggered(a.answer.Value)
	}
	if !q.ended(q.RequiredAuthority) {
		q.RequiredAuthority = AnyAuthority // whoever it was, the run has gone on with it
	}
	return q
}

// triggered reads the answer to a wait of package continuation: who pulled the trigger, what was
// decided, and what came with it.
func (q *Question) triggered(raw json.RawMessage) {
	var answer struct {
		Trigger struct {
			Actor struct {
				ID        string
				Authority dag.Authority
			}
			Decision string
		}
		Payload json.RawMessage
	}
	if json.Unmarshal(raw, &answer) != nil {
		return
	}
	q.Answer = answer.Trigger.Decision
	if said := text(answer.Payload); len(answer.Payload) > 0 && said != "" && said != "null" {
		q.Answer = strings.TrimPrefix(q.Answer+": "+said, ": ")
	}
	switch by := answer.Trigger.Actor; by.Authority {
	case dag.Human, dag.Agent, dag.System:
		q.AnsweredBy = &Author{Type: by.Authority, ID: cmp.Or(by.ID, "unknown")}
	}
}

// question is what an interrupt asks. The JSON of a question may be anything: a text, or an
// object that says more, of which the members are read that are known.
func question(
	id, path string, kind dispatcher.InterruptKind, key, reason string, raw json.RawMessage,
) Question {
	q := Question{
		ID: id, Type: AskQuestion, Question: text(raw), Context: "visit " + path, Status: QuestionOpen,
		RequiredAuthority: AnyAuthority,
	}
	if key != "" {
		q.Context += ", " + key
	}
	if reason != "" {
		q.Context += ": " + reason
	}
	switch kind {
	case dispatcher.KindBefore, dispatcher.KindAfter, dispatcher.KindEffect:
		q.Type, q.RequiredAuthority, q.Options = AskApproval, dag.Human, []string{"approve", "reject"}
	case dispatcher.KindDoubt:
		q.RequiredAuthority = dag.Human
		q.Question = "what came of effect " + key + "?"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return q
	}
	if kind == dispatcher.KindAsked {
		if _, wait := q.awaits(raw); wait {
			return q
		}
		q.Question = wording(raw)
	}
	switch k := Intervention(first(members, "type", "kind")); k {
	case AskApproval:
		q.Type, q.RequiredAuthority = k, dag.Human
	case AskOverride, AskScopeChange:
		q.Type = k
	}
	switch a := dag.Authority(first(members, "requiredAuthority", "authority")); a {
	case dag.Human, dag.Agent, dag.System:
		q.RequiredAuthority = a
	}
	var options []json.RawMessage
	_ = json.Unmarshal(members["options"], &options) // none, if it is no list
	for _, raw := range options {
		q.Options = append(q.Options, text(raw))
	}
	return q
}

// wording is what the JSON of a question asks.
func wording(raw json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return text(raw)
	}
	return cmp.Or(first(members, "question", "text", "prompt", "message", "title"), text(raw))
}

// first is the first text among members of these names.
func first(members map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(members[name], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// awaits reads the question of a wait that package continuation has asked, and returns the name of
// the wait, and whether it is one. Who may approve is the strictest of those whom it names.
func (q *Question) awaits(raw json.RawMessage) (name string, ok bool) {
	var wait struct {
		Continuation *int
		Name         string
		Ask          json.RawMessage
		Of           []struct {
			Kind      Intervention
			Authority dag.Authority
		}
	}
	if json.Unmarshal(raw, &wait) != nil || wait.Continuation == nil || len(wait.Of) == 0 || wait.Of[0].Kind == "" {
		return "", false // a node may use the word for something of its own
	}
	q.Question, q.RequiredAuthority = cmp.Or(wording(wait.Ask), wait.Name), AnyAuthority
	for _, of := range wait.Of {
		if strings.HasPrefix(string(of.Kind), string(AskApproval)) {
			q.Type = AskApproval
		}
		for _, a := range []dag.Authority{dag.System, dag.Agent, dag.Human} {
			if of.Authority == a && (a == dag.Human || q.RequiredAuthority != dag.Human) {
				q.RequiredAuthority = a
			}
		}
	}
	return wait.Name, true
}

// waits is the point of a visit that waits.
func (t *telling) waits(w *dispatcher.Interrupt) ResumePoint {
	p := ResumePoint{
		ID: "wait:" + w.ID, Label: w.Path, Description: w.String(), When: "the question is answered or skipped",
		RequiredAuthority: AnyAuthority, OnTimeout: TimeoutEscalate, ApprovalStatus: ApprovalPending,
		NextSteps: []string{w.Path},
	}
	var asks Question
	if name, wait := asks.awaits(w.Question); wait {
		p.Description = fmt.Sprintf("%s waits for %s: %s", w.Path, name, asks.Question)
	}
	if pause(w.Kind, w.By) {
		p.When = "somebody resumes the run"
	}
	if w.Until.IsZero() {
		return p
	}
	p.OnTimeout = TimeoutAbort
	if w.Default != nil {
		p.OnTimeout = TimeoutContinue
	}
	for i := range t.questions {
		if q := &t.questions[i]; q.id == w.ID {
			p.TimeoutMs = max(q.Wait.Milliseconds(), 0)
		}
	}
	return p
}

// text is JSON for people: of a string what it says, else itself on one line.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return strings.ToValidUTF8(string(raw), "")
	}
	return b.String()
}
