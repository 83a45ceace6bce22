package continuation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A Reply is what ended a wait that [Await] returns well of.
type Reply[A any] struct {
	Payload A
	Kind    Kind   // of the trigger
	Key     string // by which it was correlated
	Trigger string // its id; "" if the instant of a timer, or of a default, had come
	Actor   Actor
	At      time.Time // when it was accepted
	Denied  bool      // of an approval that feeds its denial to the node
	Reason  string    // why, if somebody said so
	Default bool      // nobody ended the wait in time: Payload is the default
	Missed  bool      // of a timer: it fired so late that it would have expired
	// Parts are the replies to the parts of an All, in their order; the rest is the first one's.
	Parts []Reply[A]
}

// Script turns a Reply into an answer for the script of a test: one of dagtest.Visit.Answers, or of
// pawltest.Answers, under the name of the wait. Each part of an [All] is scripted by itself, under
// the name and its place (approvals/1, approvals/2); Parts are not looked at. A Reply without a
// kind is of [KindReply], or of [KindApproval] if it is Denied; an approval that is not Denied is
// approved. A kind or key that the wait does not take is refused as an answer.
func Script[A any](r Reply[A]) (any, error) {
	switch {
	case r.Kind == "" && r.Denied:
		r.Kind = KindApproval
	case r.Kind == "":
		r.Kind = KindReply
	}
	e := envelope[A]{taken{ID: r.Trigger, Kind: r.Kind, Key: r.Key, Actor: r.Actor, Reason: r.Reason}, r.Payload}
	switch {
	case r.Denied:
		e.Trigger.Decision, e.Trigger.Feeds = Denied, true
	case r.Kind == KindApproval:
		e.Trigger.Decision = Approved
	}
	raw, err := json.Marshal(e)
	return json.RawMessage(raw), err
}

// Choose is the outcome of a route behind an approval. It returns approved if somebody has
// approved, with an [All] in each of its approvals. Otherwise it returns denied, also if a default
// ended the wait, or a trigger of another kind. It passes on the error of Await, so that a route is
// one line:
//
//	return continuation.Choose(reply, err, Send, Revise)
func Choose[A any, O ~string](r Reply[A], err error, approved, denied O) (O, error) {
	if r.approved() {
		return approved, err
	}
	return denied, err
}

// approved reports whether somebody has approved.
func (r *Reply[A]) approved() bool {
	if r.Parts == nil {
		return r.Kind == KindApproval && !r.Denied && !r.Default
	}
	some := false
	for i := range r.Parts {
		if part := &r.Parts[i]; part.Denied || part.Kind == KindApproval && !part.approved() {
			return false
		} else if part.Kind == KindApproval {
			some = true
		}
	}
	return some
}

// Await returns what ended a wait of the visit. As long as nothing has, it returns an error that
// the node returns at once, as with dag.Ask: the visit waits, and runs again from its first line
// when the wait has ended. Names tell the waits of a visit apart; they have at most 128 bytes,
// without ~ and /. A dialogue inside one visit gives each of its waits another name. A payload that
// does not fit A is refused when it is given.
//
// A wait that ended without a trigger is an [*Ended], which is final.
//
// If an attempt of the visit fails behind a trigger and the visit is tried again, Await waits
// again, under the same key and with the same bounds. Of several waits it is the one whose trigger
// came last, and none of them if a question of dag.Ask was answered behind that. A denial, a
// default and the wake of a timer stay what they were: what fails behind them fails as any visit
// does, by the attempts of its dag.Policy alone.
//
// A trigger is for what was asked. If the visit runs again, as behind an edit of the state, and
// asks something else under the name or waits for other kinds or keys, that is another wait with an
// id of its own. The wait before is superseded, and its trigger, if it had one, counts for nothing.
func Await[A any](ctx context.Context, name string, w Wait) (Reply[A], error) {
	if ctx == nil {
		return Reply[A]{}, fmt.Errorf("continuation: Await(%q): %w: the context is nil: pass on the one that the node was given", name, dag.ErrNoVisit)
	}
	err := w.check(name)
	if err == nil {
		err = fit[A](name, &w)
	}
	if err != nil {
		return Reply[A]{}, err
	}
	if w.parts == nil || !w.all {
		return one[A](ctx, name, w)
	}
	var all Reply[A]
	var waits error
	parts := make([]Reply[A], len(w.parts))
	for i := range w.parts { // all of them are asked before the first error is returned
		part, err := one[A](ctx, name+"/"+strconv.Itoa(i+1), w.parts[i])
		var ended *Ended
		if errors.As(err, &ended) {
			return Reply[A]{}, err
		}
		if waits == nil {
			waits = err
		}
		parts[i] = part
	}
	if waits != nil {
		return Reply[A]{}, waits
	}
	all = parts[0]
	all.Parts = parts
	for _, part := range parts {
		all.Denied = all.Denied || part.Denied
	}
	return all, nil
}

// one is Await of a wait that is one interrupt at a time.
func one[A any](ctx context.Context, name string, w Wait) (Reply[A], error) {
	p := stands(ctx, name)
	if p.asked == nil && w.MaxHops > 0 && p.hops >= w.MaxHops {
		return Reply[A]{}, &Ended{name, MaxHops, fmt.Sprintf("%d waits have ended before it", p.hops)}
	}
	at := place{name, p.attempt, 1}
	if p.asked != nil {
		reply, asked, err := put[A](ctx, name, w, *p.asked, p.failed > 0)
		fresh := asked == p.attempt // this attempt has asked something else there, and nothing has failed behind that
		if !errors.Is(err, errElse) && (p.failed == 0 || err != nil || reply.Denied || fresh) {
			return reply, err
		}
		if p.failed >= w.failures() {
			return Reply[A]{}, &Ended{name, MaxAttempts, fmt.Sprintf("%d attempts failed behind their triggers", p.failed)}
		}
		at.level = p.asked.level
	}
	reply, _, err := put[A](ctx, name, w, at, false)
	return reply, err
}

// fit refuses an A that JSON can't bring back, and a default that is no A, before anything is
// asked.
func fit[A any](name string, w *Wait) error {
	want, err := state.TypeOf[A]()
	if err != nil {
		return fmt.Errorf("continuation: the reply to %q: %w", name, err)
	}
	for _, x := range append([]Wait{*w}, w.parts...) {
		if x.OnExpire.how != defaults {
			continue
		}
		raw, err := state.Encode(&x.OnExpire.answer)
		if err == nil {
			err = want.Accepts(raw)
		}
		if err == nil {
			err = json.Unmarshal(raw, new(A))
		}
		if err != nil {
			return &ArgumentError{"wait " + name, "has a Default that can't be its reply: " + plain(err)}
		}
	}
	return nil
}

// put asks the question of a wait at a place, or at the next levels if it has expired there; if
// there is to be an end, and the one there is another question's, it asks nothing and returns
// errElse. Of a trigger it tells the attempt that asked for it, zero if that is not known.
func put[A any](ctx context.Context, name string, w Wait, at place, ended bool) (reply Reply[A], attempt int, err error) {
	for {
		q, err := w.question(name, dag.Attempt(ctx), at.level)
		if err != nil {
			return Reply[A]{}, 0, err
		}
		asked := w.at(at.level)
		options, err := asked.bounds(ctx, name, at)
		if err != nil {
			return Reply[A]{}, 0, err
		}
		e, err := dag.Ask[envelope[A]](choosing(ctx, q.Of, ended), at.key(), q, append(options, dag.About(q.about()))...)
		info, _ := dag.Reply(ctx, at.key())
		switch {
		case errors.Is(err, dag.ErrExpired) && at.level < w.levels():
			at.level++
		case errors.Is(err, dag.ErrExpired):
			return Reply[A]{}, 0, &Ended{name, Expired, "nobody ended it in time"}
		case errors.Is(err, dag.ErrSkipped):
			return Reply[A]{}, 0, &Ended{name, CancelledByUser, "it was skipped"}
		case errors.Is(err, dag.ErrNoVisit):
			return Reply[A]{}, 0, fmt.Errorf("continuation: Await(%q): %w", name, dag.ErrNoVisit)
		case err != nil:
			return Reply[A]{}, 0, err
		default:
			r, err := read(name, &w, e, info)
			return r, e.Trigger.Of.Attempt, err
		}
	}
}

// read makes the reply of what a wait ended with.
func read[A any](name string, w *Wait, e envelope[A], info dag.AnswerInfo) (Reply[A], error) {
	t := e.Trigger
	r := Reply[A]{
		Payload: e.Payload, Kind: t.Kind, Key: t.Key, Trigger: t.ID, Actor: t.Actor, At: info.At,
		Denied: t.Decision == Denied, Reason: t.Reason,
	}
	r.Missed = !t.Missed.IsZero() && !info.At.Before(t.Missed)
	r.Default = info.How == dag.AnswerDefault && t.Kind != KindTimer
	switch {
	case r.Denied && !t.Feeds:
		return Reply[A]{}, &Ended{name, ApprovalDenied, t.Reason}
	case r.Missed && w.timer() != nil && w.OnExpire.how == expires:
		return Reply[A]{}, &Ended{name, Expired, "the timer was missed"}
	}
	return r, nil
}

// bounds are the options of the question of a wait.
func (w *Wait) bounds(ctx context.Context, name string, at place) ([]dag.AskOption, error) {
	now := clock(ctx)
	if t := w.timer(); t != nil {
		wake, limit := t.At, dag.Until(t.At)
		if t.After > 0 {
			wake, limit = now.Add(t.After), dag.Within(t.After)
		}
		fired := letter{Trigger: taken{
			Kind: KindTimer, Key: t.Key, Actor: Actor{Authority: dag.System}, Missed: wake.Add(t.within()).UTC().Round(0),
		}}
		return []dag.AskOption{limit, dag.OrDefault(fired)}, nil
	}
	limit, err := w.limit(ctx, name, at, now)
	if err != nil || w.OnExpire.how != defaults {
		return []dag.AskOption{limit}, err
	}
	return []dag.AskOption{limit, dag.OrDefault(envelope[any]{Trigger: taken{Kind: w.kind(), Key: w.Key}, Payload: w.OnExpire.answer})}, nil
}

// clock is what the wall clock of the dispatcher says that runs the visit, by which bounds count.
func clock(ctx context.Context) time.Time {
	if v, ok := ctx.Value(dag.VisitKey{}).(dag.Clock); ok {
		return v.Now()
	}
	return time.Now()
}

// limit is when the last of the members is over.
func (w *Wait) limit(ctx context.Context, name string, at place, now time.Time) (dag.AskOption, error) {
	var longest time.Duration
	var last time.Time
	members := w.members()
	for i := range members {
		m := &members[i]
		if m.Until.IsZero() {
			longest = max(longest, m.within())
			continue
		}
		_, asked := dag.Reply(ctx, at.key())
		if !asked && at.attempt == 1 && at.level == 1 && !m.Until.After(now) {
			return dag.AskOption{}, &ArgumentError{"wait " + name, "has Until in the past: give it an instant to come"}
		}
		if m.Until.After(last) {
			last = m.Until
		}
	}
	if last.IsZero() || longest > 0 && now.Add(longest).After(last) {
		return dag.Within(longest), nil
	}
	return dag.Until(last), nil
}

// A place is where the question of a wait is asked: in which attempt of the visit, and at which
// level.
type place struct {
	name           string
	attempt, level int
}

// key is that of the question: name, name~2 in the second attempt, name~2.3 at the third level.
func (p place) key() string {
	switch {
	case p.level > 1:
		return fmt.Sprintf("%s~%d.%d", p.name, p.attempt, p.level)
	case p.attempt > 1:
		return fmt.Sprintf("%s~%d", p.name, p.attempt)
	}
	return p.name
}

// parsePlace reads what key wrote; ok is false if it is no such key.
func parsePlace(key string) (p place, ok bool) {
	name, rest, some := strings.Cut(key, "~")
	p = place{name, 1, 1}
	if !some {
		return p, true
	}
	attempt, level, deeper := strings.Cut(rest, ".")
	var err error
	p.attempt, err = strconv.Atoi(attempt)
	if deeper && err == nil {
		p.level, err = strconv.Atoi(level)
	}
	return p, err == nil && p.key() == key
}

// A standing is what the visit knows of one of its waits.
type standing struct {
	attempt int    // that is at work
	asked   *place // where it has ended last; nil if it has not
	failed  int    // attempts that failed behind its trigger, if its trigger was the last one
	hops    int    // other waits of the visit that have ended
}

// stands reads the answers of the visit.
func stands(ctx context.Context, name string) standing {
	s := standing{attempt: dag.Attempt(ctx)}
	given := map[int]bool{}     // attempts in which this wait was ended by a trigger
	others := map[string]bool{} // that have ended, each once
	last := ""
	for _, a := range dag.Answers(ctx) {
		p, ok := parsePlace(a.Key)
		if !ok { // no wait has asked that
			p.name = a.Key
		}
		if a.How == dag.AnswerGiven {
			last = p.name
		}
		if p.name != name {
			base, _, _ := strings.Cut(p.name, "/")
			others[base] = true
			continue
		}
		if s.asked == nil || p.attempt > s.asked.attempt || p.attempt == s.asked.attempt && p.level > s.asked.level {
			s.asked = &p
		}
		if a.How == dag.AnswerGiven && p.attempt < s.attempt {
			given[p.attempt] = true
		}
	}
	own, _, _ := strings.Cut(name, "/")
	delete(others, own)
	s.hops = len(others)
	if s.asked != nil && s.asked.attempt < s.attempt && given[s.asked.attempt] && last == name {
		s.failed = len(given)
	}
	return s
}
