package dispatcher

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A question was asked and has no answer yet.
type question struct {
	dag.AskCall
	effect *checkpoint.Interrupt // no question of the node's, but about an effect in it
	heard  *question             // before it
	before *question             // that has no answer
	size   int                   // of this one and those before it, in bytes of the log
	// refused is why it could not be asked; nil if it was.
	refused atomic.Pointer[error]
}

// Ask implements [dag.Visit].
func (v *visit) Ask(call dag.AskCall) (json.RawMessage, error) {
	if v.host.c.store == nil {
		return nil, storeless(fmt.Sprintf("Ask(%q)", call.Key))
	}
	if v.over() {
		return nil, fmt.Errorf("dispatcher: Ask(%q): %w", call.Key, dag.ErrVisitOver)
	}
	if !utf8.ValidString(call.Key) {
		return nil, fmt.Errorf("dispatcher: Ask: the key %q is not UTF-8", call.Key)
	}
	if err := v.host.c.opts.Limits.allow(call.Question, "question ", call.Key); err != nil {
		return nil, err
	}
	if err := v.host.c.opts.Limits.allow(call.Default, "the default of question ", call.Key); err != nil {
		return nil, err
	}
	if err := v.host.c.opts.Limits.allow(call.About, "what it is about, of question ", call.Key); err != nil {
		return nil, err
	}
	ask := &question{AskCall: call}
	before, err := v.asked(ask)
	if err != nil {
		return nil, err
	}
	if v.Ended(call) {
		return answered(call.Key, v.answers[call.Key].Answer)
	}
	if before != nil { // refused then, it is now
		if refused := before.refused.Load(); refused != nil {
			return nil, *refused
		}
		return nil, errAsked
	}
	if err := v.put(ask); err != nil {
		ask.refused.Store(&err)
		return nil, err
	}
	return nil, errAsked
}

// Ended implements [dag.Foreseer].
func (v *visit) Ended(call dag.AskCall) bool {
	a := v.answers[call.Key]
	return a != nil && a.to(&call)
}

// subject tells apart what questions want, and what they are about, by themselves if they don't
// say: two digests.
func subject(about, question, want json.RawMessage) string {
	if len(about) == 0 {
		about = question
	}
	return digestOf(want) + " " + digestOf(about)
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// to reports whether it is an answer to that question: the visit may run again with another state,
// or in another program, and nobody has answered what it asks then; or who gave it did not know
// what can be decoded. Of a question that did not say what it is about, and does, nobody knows
// whether it is about the same: then what it wants decides, as it did before questions could say
// so.
func (a *heard) to(call *dag.AskCall) bool {
	if a.How == checkpoint.AnswerGiven && call.Fits != nil && call.Fits(a.Value) != nil {
		return false
	}
	want := encodeType(&call.Want)
	if a.To == "" || a.To == subject(call.About, call.Question, want) {
		return true
	}
	return len(call.About) > 0 && !a.About && strings.HasPrefix(a.To, digestOf(want)+" ")
}

// asked is the question as the attempt has asked it before, nil if it has not. Another one under
// the same key is refused.
func (v *visit) asked(ask *question) (*question, error) {
	did := v.does()
	for {
		ask.heard = did.heard.Load()
		for q := ask.heard; q != nil; q = q.heard {
			if q.Key == ask.Key {
				return q, ask.Repeats(&q.AskCall)
			}
		}
		if did.heard.CompareAndSwap(ask.heard, ask) {
			return nil, nil
		}
	}
}

// put adds to what the visit waits for, once if a node tries an effect again that is asked about.
// It refuses what would be more than a visit may ask at once.
func (v *visit) put(ask *question) error {
	own := textBytes(ask.Key) + len(ask.Question) + len(ask.Default) + len(ask.About) + entryOverhead
	if e := ask.effect; e != nil {
		own += len(e.Question) + len(e.Want)
	}
	did, limit := v.does(), v.host.c.opts.Limits.VisitBytes
	for {
		ask.before, ask.size = did.asks.Load(), own
		if ask.before.waits(ask) {
			return nil
		}
		if ask.before != nil {
			ask.size += ask.before.size
		}
		if ask.size > limit {
			return &LimitError{"visit bytes", limit, "questions of " + v.path()}
		}
		if did.asks.CompareAndSwap(ask.before, ask) {
			return nil
		}
	}
}

// textBytes is the size of a text as JSON; of a short one, what it is at most.
func textBytes(text string) int {
	if len(text) < 1<<10 {
		return 6 * len(text)
	}
	return len(encode(text))
}

// same reports whether two questions of a visit are one.
func (q *question) same(p *question) bool {
	return q.Key == p.Key && (q.effect == nil) == (p.effect == nil) && (q.effect == nil || q.effect.Kind == p.effect.Kind)
}

// waits reports whether q and those before it hold a question about an effect already. Of a doubt
// the first one tells most: with what error the effect ended.
func (q *question) waits(about *question) bool {
	for about.effect != nil && q != nil && !q.same(about) {
		q = q.before
	}
	return about.effect != nil && q != nil &&
		(about.effect.Kind == kindDoubt || bytes.Equal(q.effect.Question, about.effect.Question))
}

// doubts reports whether q or one before it is about an effect in doubt: then the visit waits
// however the attempt has ended.
func (q *question) doubts() bool {
	for q != nil && (q.effect == nil || q.effect.Kind != kindDoubt) {
		q = q.before
	}
	return q != nil
}

// answered is what a question comes to that has ended.
func answered(key string, a checkpoint.Answer) (json.RawMessage, error) {
	switch a.How {
	case checkpoint.AnswerSkipped:
		return nil, fmt.Errorf("%w: %q", dag.ErrSkipped, key)
	case checkpoint.AnswerExpired:
		return nil, fmt.Errorf("%w: %q", dag.ErrExpired, key)
	}
	return slices.Clone(a.Value), nil
}

// Reply implements [dag.Visit].
func (v *visit) Reply(key string) (dag.AnswerInfo, bool) {
	a := v.answers[key]
	if a == nil || v.asksElse(key, a) {
		return dag.AnswerInfo{}, false
	}
	return dag.AnswerInfo{How: dag.How(a.How), By: a.By, At: a.At}, true
}

// asksElse reports whether the attempt has asked something under the key that a is no answer to.
func (v *visit) asksElse(key string, a *heard) bool {
	did := v.did.Load()
	if did == nil {
		return false
	}
	for q := did.heard.Load(); q != nil; q = q.heard {
		if q.Key == key {
			return !a.to(&q.AskCall)
		}
	}
	return false
}

// Answers implements [dag.Replier].
func (v *visit) Answers() []dag.Answered {
	keys := slices.SortedFunc(maps.Keys(v.answers), func(a, b string) int { // those of one message came at once
		x, y := v.answers[a], v.answers[b]
		return cmp.Or(cmp.Compare(x.Number, y.Number), x.At.Compare(y.At), cmp.Compare(a, b))
	})
	var all []dag.Answered
	for _, key := range keys {
		if info, ok := v.Reply(key); ok {
			all = append(all, dag.Answered{Key: key, AnswerInfo: info})
		}
	}
	return all
}

// asked makes a visit wait for the answers to what it asked, and to be told what came of its
// effects, in the order of asking.
func (r *run) asked(v *visit, last *question) {
	var all []*question
	for q := last; q != nil; q = q.before {
		if !slices.ContainsFunc(all, func(p *question) bool { return p.same(q) }) {
			all = append(all, q)
		}
	}
	slices.Reverse(all)
	for _, q := range all {
		if q.effect != nil {
			r.interrupt(v.t, *q.effect)
			continue
		}
		p := &pending{wanted: &q.Want, decodes: q.Fits, ask: checkpoint.Interrupt{
			Kind: kindAsked, Key: q.Key, Question: q.Question, Want: encodeType(&q.Want), Default: q.Default, About: q.About,
		}}
		if !q.Expires() { // else the machine's instant is what JSON makes of it
			r.interrupted(v.t, &p.ask, p)
			continue
		}
		now, i := r.c.opts.Now().UTC(), &p.ask
		i.Until, i.Wait = q.Until, max(0, q.Until.Sub(now))
		if q.Within > 0 {
			i.Until, i.Wait = now.Add(q.Within), q.Within
		}
		if i.Wait == math.MaxInt64 {
			i.Asked = now
		}
		id := r.interrupted(v.t, i, nil)
		if p := r.m.waits[id]; p != nil {
			p.decodes = q.Fits
		}
		r.expiresAfter(id, i.Wait, i.Until)
	}
}

// expiresAfter remembers when a question is over that expires, on the clock that does not jump.
func (r *run) expiresAfter(id string, wait time.Duration, until time.Time) {
	if until.IsZero() {
		return
	}
	r.expires = r.expires.set(id, time.Now().Add(max(0, wait)))
}

// armExpiries lets questions go on waiting: until the instant that was stored, and never longer
// than the wait was, whatever the wall clock did meanwhile; those that are over only until now.
func (r *run) armExpiries(over []string) {
	now := r.c.opts.Now()
	for _, p := range r.m.pendings() {
		r.expiresAfter(p.id, min(p.ask.Until.Sub(now), p.ask.Wait), p.ask.Until)
	}
	for _, id := range over {
		if p := r.m.waits[id]; p != nil { // else it has an answer
			r.expiresAfter(id, 0, p.ask.Until)
		}
	}
}

// overdue lists the questions whose time is over, in the order of the cursor.
func (r *run) overdue() (over []*pending) {
	now, ok := r.expires.come()
	if !ok {
		return nil
	}
	for _, p := range r.m.pendings() {
		if r.expires.rung(p.id, now) {
			over = append(over, p)
		}
	}
	r.expires.drop(func(id string, _ time.Time) bool { return r.m.waits[id] == nil }) // it has ended, or its visit is gone
	return over
}

// expire ends the questions whose time is over, as a person would: it posts what they come to,
// under the next number. So the answer that somebody may give at the same moment either stands
// before it, and counts, or is refused. Those whose defaults are too large for one message end with
// the next one. It reports whether the caller still owns the run.
func (r *run) expire(h *tenure) bool {
	if r.halting {
		return true
	}
	over := r.overdue()
	if len(over) == 0 {
		return true
	}
	if r.giving != nil && !r.flush(h) { // else there would be a message whose number comes behind one that is nowhere yet
		return false
	}
	p := postedAnswers{At: r.c.opts.Now().UTC()}
	size := 0
	for _, q := range over {
		x := q.expired()
		if size += len(x.Value) + entryOverhead; size > landingBytes && len(p.Replies) > 0 {
			break
		}
		p.Replies = append(p.Replies, x)
	}
	drained := r.m.answered
	if !h.leave(inCall, "ending questions that have expired") {
		return false
	}
	posts, err := r.c.store.Posts(r.stored, r.id)
	if err == nil && lastNumber(posts, drained) == drained {
		err = r.c.store.Post(r.stored, r.id, p.post(drained+1))
	}
	if !h.back(inCall) {
		return false
	}
	if err != nil && !conflict(err) { // else there is an answer to take, and then we look again
		if r.ctx.Err() != nil {
			return true
		}
		r.breakOff(h, err)
		return false
	}
	r.journal.posts = true
	return true
}

// expired is how a question ends that nobody has answered in time.
func (p *pending) expired() reply {
	if len(p.ask.Default) > 0 {
		return reply{p.id, checkpoint.AnswerDefault, p.ask.Default}
	}
	return reply{Interrupt: p.id, How: checkpoint.AnswerExpired}
}

// late reports whether it is too late to answer a question.
func (p *pending) late(now time.Time) bool {
	return !p.ask.Until.IsZero() && !now.Before(p.ask.Until)
}
