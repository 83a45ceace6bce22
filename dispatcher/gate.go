package dispatcher

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// gate asks the interceptors whether a visit may begin, all of them: one that panics fails the
// visit, unless another one denies it. Once the context is done they are not asked: the call that
// begins the visit does.
func (r *run) gate(h *tenure, t *task) (bool, *userError) {
	if r.halted() {
		r.unasked = true
		return true, nil
	}
	call := r.intercepted(t)
	var asked []*interceptor
	var drafts []state.Image // one for each: what they write must not be seen by the next
	for _, g := range r.c.interceptors {
		if g.Before != nil && g.stands(&call) {
			asked, drafts = append(asked, g), append(drafts, t.frame.view.Draft())
		}
	}
	approved := t.approved()
	rulings := make([]Ruling, len(asked))
	var broken *userError // the first that broke, which allows nothing
	ok, _ := r.ask(h, "Interceptor.Before for "+call.Path, func() {
		for i, g := range asked {
			h.whose.interceptor = g.Name
			c := call
			c.State, c.Approved = drafts[i].Value(), approved.by(g.Name)
			failed := protect(func() { rulings[i] = g.Before(r.ctx, c) })
			if failed == nil {
				rulings[i] = r.possible(t, rulings[i])
				continue
			}
			failed.err = h.whose.blames(failed.err)
			rulings[i], broken = Continue(), cmp.Or(broken, failed)
		}
	})
	if !ok {
		return false, nil
	}
	h.whose = whose{}
	s := weigh(asked, rulings, approved)
	if broken != nil {
		if s.kind != denies {
			return true, broken
		}
		s.reason += "; " + broken.tells() // which nothing else says
	}
	if s.kind != denies && r.c.gates.vetting() {
		if ok, failed := r.gateVisit(h, t, &s); !ok || failed != nil {
			return ok, failed
		}
	}
	r.rule(t, s)
	return true, nil
}

// gateVisit adds to what was said about a visit that gates want an approval of it.
func (r *run) gateVisit(h *tenure, t *task, s *sentence) (ok bool, failed *userError) {
	a := Action{Run: r.id, Path: t.path(), Node: t.nodePath(), Access: t.node.Policy.Access, Kind: t.node.Kind}
	reason := ""
	if r.c.gates.If == nil {
		reason = r.c.gates.visit(a, t.isItem(), holds(t.node))
	} else {
		ok, failed = r.askOption(h, "Gates.If", a.Path, func() {
			reason = r.c.gates.visit(a, t.isItem(), holds(t.node))
		})
		if !ok || failed != nil {
			return ok, failed
		}
	}
	question := encode(a)
	if reason == "" || t.approved().action(question) {
		return true, nil
	}
	s.asks = append(s.asks, checkpoint.Interrupt{Kind: kindBefore, By: byGate, Question: question, Reason: reason})
	s.kind = asks
	return true, nil
}

// intercepted is the visit as interceptors see it, but for its state.
func (r *run) intercepted(t *task) Call {
	return Call{ // events tell of a turn only once its beginning is durable, which is behind its first rulings
		Run: r.id, Graph: r.c.plan.Name, Turn: r.m.turn, Labels: r.about.Load().labels,
		Path: t.path(), Node: t.nodePath(), Kind: t.node.Kind, Attempt: t.attempts() + 1,
	}
}

// possible turns a ruling that can't be followed into a denial.
func (r *run) possible(t *task, u Ruling) Ruling {
	over := r.c.opts.Limits.allow(u.question, "")
	switch {
	case u.kind == unruled || u.kind > denies:
		return Deny("it gave no ruling")
	case u.kind == asks && r.c.store == nil:
		return Deny("it asks for an approval, which needs a store")
	case u.kind == asks && over != nil:
		return Deny("its question: " + plain(over))
	case u.kind == instead && holds(t.node):
		return Deny("it has a substitute for a node that runs no function")
	}
	return u
}

// A sentence is what all rulings on a visit say together: the one that counts, whose it is,
// and of those that ask, all that have still to be approved.
type sentence struct {
	Ruling
	by   string
	asks []checkpoint.Interrupt
}

// weigh lets the most restrictive ruling win; of equal ones the first. Every question that
// was not approved has to be.
func weigh(by []*interceptor, rulings []Ruling, approved approvals) (s sentence) {
	s.kind = continues
	for i, u := range rulings {
		if u.kind == asks {
			if approved.has(by[i].Name, u.question) {
				continue
			}
			s.asks = append(s.asks, checkpoint.Interrupt{Kind: kindBefore, By: by[i].Name, Question: u.question})
		}
		if u.kind > s.kind {
			s.by, s.Ruling = by[i].Name, u
		}
	}
	return s
}

// rule does what the interceptors have said.
func (r *run) rule(t *task, s sentence) {
	switch s.kind {
	case denies:
		r.deny(t, s.by, s.reason)
		return
	case asks:
		size, limit := 0, r.c.opts.Limits.VisitBytes
		for _, i := range s.asks {
			if size += len(i.Question); size > limit { // none of them is asked without the others
				r.deny(t, i.By, "its question: "+plain(&LimitError{"visit bytes", limit, "questions of " + t.path()}))
				return
			}
		}
		for _, i := range s.asks {
			r.interrupt(t, i)
		}
		return
	case instead:
		if r.substitutes == nil {
			r.substitutes = map[*task]substitute{}
		}
		r.substitutes[t] = substitute{s.by, s.body}
	}
	t.cleared = true
	r.m.pass(t)
}

// A substitute runs in place of a node's function.
type substitute struct {
	by   string
	body Substitute
}

// deny fails a visit that has not begun.
func (r *run) deny(t *task, by, reason string) {
	err := denial(by, reason)
	e := &NodeError{Run: r.id, Path: t.path(), Kind: dag.FailedDenied, Attempt: t.attempts(), Err: err}
	unfollowed := r.m.leavesInDoubt(t)
	if !t.node.FailureFollowed || unfollowed {
		r.blame(e)
	}
	r.fails(t, 0, checkpoint.FailedAttempt{
		Kind: string(dag.FailedDenied), Message: clip(err.Error()), By: by, Final: true, Unfollowed: unfollowed,
	}, e, 0)
}

func denial(by, reason string) error {
	return fmt.Errorf("interceptor %q: %s", by, reason)
}

// A round is what an attempt goes through that interceptors stand round.
type round struct {
	call  Call // but for its state
	own   substitute
	after []*interceptor
	at    whose // code runs, if not the node's
	done  checkpoint.Substitution
}

// round is what the next attempt of t goes through; nil if it is only its own function.
func (r *run) round(t *task) *round {
	x := &round{call: r.intercepted(t), own: r.substitutes[t]}
	for _, g := range r.c.interceptors {
		if g.After != nil && g.stands(&x.call) {
			x.after = append(x.after, g)
		}
	}
	if x.own.body == nil && x.after == nil {
		return nil
	}
	return x
}

// run does what a visit does, and asks about the result. It is called in place of the
// node's function.
func (x *round) run(v *visit) *userError {
	var failed *userError
	if x.own.body == nil {
		failed = v.body()
	} else {
		x.done.Instead = x.own.by
		failed = x.substitute(v, x.own.by, x.own.body)
	}
	if n := v.t.node; failed == nil && n.Kind == dag.KindRoute && !slices.Contains(n.Outcomes, v.outcome()) {
		failed = undeclared(n, v.outcome()) // no result that After could look at
	}
	for _, g := range x.after {
		if failed != nil || v.has().asks.Load() != nil || v.has().fails.Load() != nil { // who waits for an answer has no result
			break
		}
		c := x.call
		c.State = v.draft.Copy().Value() // what it writes is not the node's
		x.at.interceptor = g.Name
		change := g.After(v, c, v.outcomes())
		x.at = whose{}
		switch change.kind {
		case keeps:
		case replaces:
			x.done.Replaced = append(x.done.Replaced, g.Name)
			failed = x.substitute(v, g.Name, change.body)
		default:
			failed = &userError{kind: dag.FailedDenied, err: denial(g.Name, "it gave no change")}
		}
	}
	return failed
}

// substitute runs an interceptor's f on the visit's draft. Its failure says whose it is.
func (x *round) substitute(v *visit, by string, f Substitute) *userError {
	x.at.interceptor = by
	failed := v.substituted(f)
	if failed != nil {
		failed.err = x.at.blames(failed.err)
	}
	x.at = whose{}
	return failed
}

func (v *visit) substituted(f Substitute) *userError {
	outcomes, err := f(v, v.draft.Value())
	if err != nil {
		return returnedError(err)
	}
	var failed *userError
	switch v.t.node.Kind {
	case dag.KindChoose:
		failed = v.chooses(v.t.node, outcomes)
	case dag.KindRoute:
		if len(outcomes) != 1 {
			return &userError{kind: dag.FailedOutcome, err: fmt.Errorf("a route has one outcome, and not %q", outcomes)}
		}
		if !slices.Contains(v.t.node.Outcomes, outcomes[0]) {
			return undeclared(v.t.node, outcomes[0])
		}
		v.choose(outcomes[0])
	default:
		if len(outcomes) > 0 {
			return &userError{kind: dag.FailedOutcome, err: fmt.Errorf("a step has no outcome, and so not %q", outcomes)}
		}
	}
	return failed
}

// outcomes are those that the visit has chosen so far.
func (v *visit) outcomes() (chosen []string) {
	switch v.t.node.Kind {
	case dag.KindChoose:
		_ = json.Unmarshal([]byte(v.outcome()), &chosen) // chooses has made it
	case dag.KindRoute:
		chosen = []string{v.outcome()}
	}
	return chosen
}

// landed has the entry of a visit tell whose the result is.
func (x *round) landed(r *run, done *fact) {
	delete(r.substitutes, done.t)
	if x.done.Instead != "" || x.done.Replaced != nil {
		done.more().Data = encode(x.done)
	}
}

func (a approvals) has(by string, question json.RawMessage) bool {
	for _, x := range a {
		if x.By == by && bytes.Equal(x.Question, question) {
			return true
		}
	}
	return false
}

// action reports whether the action is approved that gates would ask about.
func (a approvals) action(question json.RawMessage) bool {
	return slices.ContainsFunc(a, func(x approval) bool { return x.By == byGate && sameAction(x.Question, question) })
}

func (a approvals) by(name string) []json.RawMessage {
	var questions []json.RawMessage
	for _, x := range a {
		if x.By == name {
			questions = append(questions, bytes.Clone(x.Question))
		}
	}
	return questions
}
