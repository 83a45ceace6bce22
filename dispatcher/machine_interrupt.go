package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A Verdict answers an interrupt that is not a node's question: [KindBefore], [KindAfter] or
// [KindEffect].
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve" // go on, as a resume would behind a pause
	// Reject: the visit fails (before), its frame fails (after), or dag.Effect returns
	// dag.ErrDenied (effect). See KindBefore.
	Reject Verdict = "reject"
)

// interrupt makes one visit wait, or holds its frame behind it.
func (m *machine) interrupt(x *fact) error {
	p := x.pending
	if p == nil {
		p = &pending{}
		var err error
		if p.ask, err = parse(x.Data, plainInterrupt); err != nil {
			return err
		}
	}
	t := x.t
	p.id, p.t, p.kind, p.key = x.ID, t, p.ask.Kind, p.ask.Key
	switch {
	case p.kind == kindBefore && (t.phase == ready || t.phase == delayed || t.phase == held && p.ask.By != ""):
		t.phase = held
		t.rare().asks = append(t.odd.asks, p)
	case p.kind == kindAfter && t.phase == finished:
		t.frame.after = append(t.frame.after, p)
	case (p.kind == kindAsked || p.kind == kindEffect || m.doubted(x, p)) &&
		(t.phase == ready || t.phase == asking || t.phase == delayed):
		t.phase = asking
		t.rare().asks = append(t.odd.asks, p)
	default:
		return fmt.Errorf("visit %q is %s and can't be interrupted (%s)", x.Path, t.phase, p.kind)
	}
	if m.waits == nil {
		m.waits = map[string]*pending{}
	}
	m.waits[p.id] = p
	return nil
}

// answer ends one interrupt.
func (m *machine) answer(x *fact) error {
	p := m.waits[x.ID]
	if p == nil {
		return fmt.Errorf("no interrupt %q waits for an answer", x.ID)
	}
	a, err := parse(x.Data, plainAnswer)
	if err != nil {
		return err
	}
	if !a.Known() {
		return fmt.Errorf("interrupt %q was answered in a way that is not known: %q", x.ID, a.How)
	}
	if a.Message != "" {
		m.see(givenPrefix + a.Message)
	}
	if p.kind == kindDoubt {
		return fmt.Errorf("interrupt %q ends with effect %q, and is not answered", x.ID, p.key)
	}
	if p.kind == kindAsked {
		delete(m.waits, p.id)
		m.supply(p, a, numberOf(x.Post))
		return nil
	}
	var v Verdict
	if err := json.Unmarshal(a.Value, &v); err != nil {
		return err
	}
	if p.kind == kindEffect {
		m.grant(p, v, a)
		return nil
	}
	m.decided(p, v, a)
	return nil
}

// A heard is an answer that a visit was given.
type heard struct {
	checkpoint.Answer
	// To is the subject that it was given to; "" if an earlier version has kept it.
	To string `json:"to,omitempty"`
	// About: the question has said what it is about.
	About bool `json:"about,omitempty"`
	// Number is that of the message which gave it: messages of a run are numbered in their order. 0
	// if an earlier version has kept it.
	Number uint64 `json:"number,omitempty"`
}

// supply gives a visit an answer that it asked for. With the last one it may run again.
func (m *machine) supply(p *pending, answer checkpoint.Answer, number uint64) {
	t := p.t
	o := t.rare()
	answers := maps.Clone(o.answers) // visits hold the one before
	if answers == nil {
		answers = map[string]*heard{}
	}
	answers[p.key] = &heard{answer, subject(p.ask.About, p.ask.Question, p.ask.Want), len(p.ask.About) > 0, number}
	o.answers = answers
	o.asks = slices.DeleteFunc(o.asks, func(q *pending) bool { return q == p })
	if len(o.asks) == 0 {
		t.phase = ready
		m.offer(t)
	}
}

// decided ends an interrupt before or after a visit.
func (m *machine) decided(p *pending, v Verdict, a checkpoint.Answer) {
	delete(m.waits, p.id)
	t := p.t
	rejected := &dag.Failure{Path: t.path(), Attempts: t.attempts(), Kind: dag.FailedRejected, Message: "rejected " + p.kind + " the visit"}
	if a.Reason != "" {
		rejected.Message += ": " + a.Reason
	}
	if v == Reject && (m.status == checkpoint.StatusFailed || m.status == checkpoint.StatusCancelled) { // which may have failed before
		m.fresh = append(slices.Clip(m.fresh), rejected.Path) // snapshots hold the one before
	}
	if p.kind == kindBefore {
		m.decidedBefore(p, v, rejected, a.Unfollowed)
		return
	}
	f := t.frame
	f.after = slices.DeleteFunc(f.after, func(q *pending) bool { return q == p })
	if v == Reject && f.refused == nil {
		f.refused = rejected
		f.failing++
		m.check(f)
	}
	m.proceed(f)
}

// An approval is of what an interceptor asked before a visit.
type approval struct {
	By       string          `json:"by"`
	Question json.RawMessage `json:"question"`
}

type approvals []approval

// decidedBefore ends one of the interrupts before a visit. A rejection ends all of them;
// with the last approval the visit goes on.
func (m *machine) decidedBefore(p *pending, v Verdict, rejected *dag.Failure, unfollowed bool) {
	t, o := p.t, p.t.odd
	o.passed = true
	o.asks = slices.DeleteFunc(o.asks, func(q *pending) bool { return q == p })
	if v == Reject {
		for _, q := range o.asks {
			delete(m.waits, q.id)
		}
		o.asks, o.unfollowed, t.phase = nil, unfollowed, ready
		m.fell(t, rejected)
		return
	}
	if p.ask.By != "" {
		o.approved = append(o.approved, approval{p.ask.By, p.ask.Question})
	}
	if len(o.asks) == 0 {
		t.phase = ready
		m.offer(t)
	}
}

// resume lets a run go on: under a new lease, and, if it was the caller's wish, behind its
// interrupts before and after visits. Of a Failed run, and of one that was Failed when it was
// cancelled, the visits that failed get a new budget of attempts, unless it ended at a dag.Fail.
func (m *machine) resume(x *fact, was checkpoint.Status) error {
	var r checkpoint.Resumption
	if x.resumed != nil {
		r = *x.resumed
	} else if len(x.Data) > 0 {
		if err := json.Unmarshal(x.Data, &r); err != nil {
			return err
		}
	}
	m.fault = nil
	if (was == checkpoint.StatusFailed || r.Renews) && !m.deadEnd() {
		m.renew(m.root)
	}
	m.fresh = nil
	if r.Ends {
		for _, p := range m.pendings() {
			if (p.kind == kindBefore || p.kind == kindAfter) && p.ask.By == "" {
				m.decided(p, Approve, checkpoint.Answer{})
			}
		}
	}
	if m.root != nil { // else the log is damaged, and whoever reads it says so
		m.advance(m.root)
	}
	return nil
}

// advance begins the next superstep of frames in which nothing is open: a migration has forgotten
// what was. It is done with the resume, and not when the run is scanned, so that a replay does it
// as well.
func (m *machine) advance(f *frame) {
	if len(f.open) == 0 && len(f.next) > 0 && f.begun() && f.refused == nil {
		m.proceed(f)
		return
	}
	for _, i := range f.open {
		if t := &f.tasks[i]; t.phase == inside {
			m.advance(t.inner)
		}
	}
}

// renew gives every visit of f that failed, and whose failure nobody follows, another
// chance; and so on inside the frames that its visits hold. What a person has rejected since
// the run failed is no reason why it did, and stays: it would never be seen to have failed.
func (m *machine) renew(f *frame) {
	if f.refused != nil && !slices.Contains(m.fresh, f.refused.Path) {
		f.refused = nil
		f.failing--
		m.proceed(f)
	}
	for _, i := range f.open { // all of them, before one that fails at once has f fail again
		if t := &f.tasks[i]; m.renews(t) {
			f.failing--
			f.left++
			t.unanswer()
			t.odd.failure, t.odd.unfollowed, t.odd.budget = nil, false, t.odd.attempts
			t.odd.reconsider()
		}
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		switch {
		case t.phase == inside && !t.caught():
			m.renew(t.inner)
		case t.phase == failing && t.odd.failure == nil:
			m.restart(t)
		}
	}
	if f.items != nil {
		f.refind()
	}
	if f.left == 0 && f.failing > 0 && f.holder != nil && f.holder.phase == inside {
		m.check(f)
	}
}

// renews reports whether a visit that failed gets another chance. A dag.Fail gets none: it stands
// in a frame that failed in doubt as well, or there would be nothing to resume.
func (m *machine) renews(t *task) bool {
	return t.phase == failing && t.node.Kind != dag.KindFail &&
		(t.inner != nil || !slices.Contains(m.fresh, t.odd.failure.Path))
}

// unanswer has a visit ask again what it failed without: a question that has expired, or was
// skipped. Its other answers stay.
func (t *task) unanswer() {
	kind := t.odd.failure.Kind
	if t.inner != nil || kind != dag.FailedExpired && kind != dag.FailedSkipped {
		return
	}
	answers := maps.Clone(t.odd.answers) // visits hold the one before
	maps.DeleteFunc(answers, func(_ string, a *heard) bool { return a.How == string(kind) })
	if len(answers) == 0 {
		answers = nil
	}
	t.odd.answers = answers
}

// restart puts a visit that failed back to where it can go on: inside the frame it
// holds, or before its own first line.
func (m *machine) restart(t *task) {
	switch {
	case t.inner == nil:
		t.phase = ready
		m.offer(t)
	case t.inner.failing > 0:
		t.phase = inside
		m.renew(t.inner)
	default: // its end could not be decided
		t.phase = inside
		m.push(decision{kind: end, f: t.inner})
	}
}

// failures lists why the run fails, in declaration order: of visits whose failure nobody
// follows, at any depth.
func (m *machine) failures() []*dag.Failure {
	if m.root == nil {
		return nil
	}
	return m.root.failures(nil)
}

func (f *frame) failures(all []*dag.Failure) []*dag.Failure {
	if f.refused != nil {
		all = append(all, f.refused)
	}
	for _, i := range f.open {
		t := &f.tasks[i]
		switch {
		case t.inner != nil && t.inner.failing > 0 && !t.caught():
			all = t.inner.failures(all)
		case t.phase == inside && !t.caught():
			all = t.inner.failures(all)
		case t.phase == failing:
			all = append(all, t.odd.failure)
		}
	}
	return all
}

// deadEnd reports whether the run reached a dag.Fail: it can't do anything but fail.
func (m *machine) deadEnd() bool { return m.root != nil && m.root.deadEnd() }

// deadEnd reports the same of a frame. A dag.Fail inside a frame whose failure somebody follows is
// none, also while a doubt keeps that from being taken.
func (f *frame) deadEnd() bool {
	for _, i := range f.open {
		t := &f.tasks[i]
		switch {
		case t.inner != nil && t.node.FailureFollowed:
		case t.inner != nil && t.inner.deadEnd():
			return true
		case t.phase == failing && t.node.Kind == dag.KindFail:
			return true
		}
	}
	return false
}

// pendings lists the open interrupts in the order of the cursor.
func (m *machine) pendings() []*pending {
	if m.root == nil || len(m.waits) == 0 {
		return nil
	}
	return m.root.pendings(nil)
}

func (f *frame) pendings(all []*pending) []*pending {
	all = append(all, f.after...)
	for _, i := range f.open {
		t := &f.tasks[i]
		switch t.phase {
		case held, asking:
			all = append(all, t.odd.asks...)
		case inside, failing:
			if t.inner != nil {
				all = t.inner.pendings(all)
			}
		}
	}
	return all
}
