package dispatcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Answers reach a run in one order, whoever gives them: each has the number behind the last one. It
// is posted under that, or, where nobody is at work on the run and nothing waits, appended under
// it.
//
//  1. A store has one message of a number: of two who post, one has to look again.
//  2. Who posts a number has seen what stands before it, in the log or among the posts, and
//     that nothing in it ends the same interrupts.
//  3. Who has the lease drains them by their numbers.
//  4. Who gives an answer under the lease, when none waits, appends it under the next number and claims that:
//     if somebody has posted under it the store refuses the append.
//
// So an answer that was posted counts, and who gave it knows that at once, although the run
// may be at work on something else for hours.

// A reply is how one interrupt is to end.
type reply struct {
	Interrupt string          `json:"interrupt"`
	How       string          `json:"how"` // a checkpoint.Answer's
	Value     json.RawMessage `json:"value,omitempty"`
}

// A postedAnswers is the Data of a post of kind answer. All of its replies count, or none does.
type postedAnswers struct {
	Replies []reply `json:"replies"`
	By      string  `json:"by,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	// At is when they were given if nobody has given them, by the clock that says when questions
	// expire; else the store says it.
	At time.Time `json:"at,omitzero"`
}

// givenPrefix is what stands, among the ids of what was drained, before the ids under which answers
// were given.
const givenPrefix = "given:"

// The id of an answer has a number of so many digits at least.
const (
	answerPrefix = "answer:"
	zeros        = "000000000000"
)

// post is the message of this number. Ids are ordered as numbers are.
func (a *postedAnswers) post(number uint64) checkpoint.Post {
	digits := strconv.FormatUint(number, 10)
	id := answerPrefix + zeros[min(len(digits), len(zeros)):] + digits
	return checkpoint.Post{ID: id, Kind: checkpoint.PostAnswer, Data: a.encode()}
}

// says reports whether two posts are to end the same interrupts in the same way.
func (a *postedAnswers) says(b *postedAnswers) bool {
	return a.By == b.By && a.Reason == b.Reason && a.Message == b.Message && slices.EqualFunc(a.Replies, b.Replies, func(x, y reply) bool {
		return x.Interrupt == y.Interrupt && x.How == y.How && bytes.Equal(x.Value, y.Value)
	})
}

// drain adds to all the entries that drain the post.
func (a *postedAnswers) drain(all []checkpoint.Entry, m *machine, p checkpoint.Post) []checkpoint.Entry {
	at := p.At
	if !a.At.IsZero() {
		at = a.At
	}
	for _, x := range a.Replies {
		w := m.waits[x.Interrupt]
		if w.kind == kindDoubt {
			all = append(all, m.answerDoubt(w, x.Value, a.By, p.ID))
			continue
		}
		all = append(all, checkpoint.Entry{
			Kind: checkpoint.Answered, ID: x.Interrupt, Post: p.ID,
			Data: encodeAnswer(&checkpoint.Answer{
				Value: x.Value, How: x.How, By: a.By, At: at, Reason: a.Reason, Message: a.Message, Unfollowed: m.unfollowed(w, x.Value),
			}),
		})
	}
	return all
}

// claims are the entries that drain the answers, which nobody has posted.
func (s *replying) claims(m *machine) []checkpoint.Entry {
	s.post.At = time.Now().UTC() // as stores say it of what is posted
	lines := s.drain(nil, m, s.post)
	for i := range lines {
		lines[i].Claims = true
	}
	return lines
}

// A posted is a message that a call has left, and what it says if it is an answer: the call need
// not read its own message.
type posted struct {
	checkpoint.Post
	answers *postedAnswers
}

// of returns what a message says, nil if it is another one.
func (o *posted) of(p checkpoint.Post) *postedAnswers {
	if o == nil || o.ID != p.ID || !o.Says(p) {
		return nil
	}
	return o.answers
}

func parseAnswers(p checkpoint.Post, mine *posted) (*postedAnswers, error) {
	if a := mine.of(p); a != nil {
		return a, nil
	}
	a := &postedAnswers{}
	err := json.Unmarshal(p.Data, a)
	if err == nil && len(a.Replies) == 0 {
		err = errors.New("it answers nothing")
	}
	return a, err
}

// numberOf is the number of a post, 0 if it has none.
func numberOf(id string) uint64 {
	digits, ok := strings.CutPrefix(id, answerPrefix)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// lastNumber is that of the last one that is drained or waits to be.
func lastNumber(posts []checkpoint.Post, drained uint64) uint64 {
	for _, p := range posts {
		drained = max(drained, numberOf(p.ID))
	}
	return drained
}

// A queue is what the answers that wait to be drained will come to, in their order.
type queue struct {
	m     *machine
	posts []checkpoint.Post         // those that count
	said  []*postedAnswers          // by them
	ends  map[string]*postedAnswers // by interrupt: of the first told of said; see ended
	told  int
	line  []checkpoint.Entry // what drains them, and those that don't count
}

// queued looks through posts, one of which may be mine.
func (m *machine) queued(posts []checkpoint.Post, mine *posted) *queue {
	q := &queue{m: m}
	for _, p := range until(time.Now().UTC(), posts) {
		if p.Kind != checkpoint.PostAnswer {
			continue
		}
		a, err := parseAnswers(p, mine)
		if err != nil || m.seen[p.ID] || q.contradicts(a) {
			q.line = append(q.line, noted(p.ID, p.Kind))
			continue
		}
		q.posts, q.said = append(q.posts, p), append(q.said, a)
		q.line = a.drain(q.line, m, p)
	}
	return q
}

// until returns posts none of whose answers is later than now: those that are, as behind a message
// from a host whose clock was ahead, were given now, each an instant before the next one.
func until(now time.Time, posts []checkpoint.Post) []checkpoint.Post {
	ahead := func(p checkpoint.Post) bool { return p.Kind == checkpoint.PostAnswer && p.At.After(now) }
	if !slices.ContainsFunc(posts, ahead) {
		return posts
	}
	posts = slices.Clone(posts) // by which input is ordered, wherever it stands
	for i := range slices.Backward(posts) {
		if ahead(posts[i]) {
			posts[i].At, now = now, now.Add(-1)
		}
	}
	return posts
}

// under is the answer under that id that waits to be drained, nil if there is none.
func (q *queue) under(message string) *postedAnswers {
	k := slices.IndexFunc(q.said, func(a *postedAnswers) bool { return message != "" && a.Message == message })
	if k < 0 {
		return nil
	}
	return q.said[k]
}

// ended is with what an interrupt ends, nil if it does not. What was approved before a rejection
// was approved.
func (q *queue) ended(interrupt string) *postedAnswers {
	for _, a := range q.said[q.told:] { // mostly nothing is asked behind the last
		for _, x := range a.Replies {
			for _, id := range q.m.waits[x.Interrupt].endsWith(x) {
				q.end(id, a)
			}
		}
	}
	q.told = len(q.said)
	return q.ends[interrupt]
}

func (q *queue) end(interrupt string, a *postedAnswers) {
	if q.ends == nil {
		q.ends = map[string]*postedAnswers{}
	}
	if q.ends[interrupt] == nil {
		q.ends[interrupt] = a
	}
}

// contradicts reports whether one of the replies can't count: nobody waits for it any more, be
// it for what was posted before or for another reply of the same post.
func (q *queue) contradicts(a *postedAnswers) bool {
	var gone map[string]bool
	if len(a.Replies) > 1 {
		gone = map[string]bool{}
	}
	for _, x := range a.Replies {
		p := q.m.waits[x.Interrupt]
		if p == nil || gone[x.Interrupt] || q.ended(x.Interrupt) != nil || p.accepts(x) != nil {
			return true
		}
		if gone == nil {
			continue
		}
		for _, id := range p.endsWith(x) {
			gone[id] = true
		}
	}
	return false
}

// endsWith lists the interrupts that end with a reply to p: p, and if it rejects a visit before
// that begins, whatever else waits before the visit.
func (p *pending) endsWith(x reply) []string {
	ids := []string{p.id}
	if !p.rejects(x) {
		return ids
	}
	for _, q := range p.t.odd.asks {
		if q != p {
			ids = append(ids, q.id)
		}
	}
	return ids
}

// rejects reports whether a reply to p keeps its visit from beginning. The rejection of an
// effect, or after a visit, ends nothing but its own interrupt.
func (p *pending) rejects(x reply) bool {
	if p.kind != kindBefore {
		return false
	}
	var v Verdict
	return json.Unmarshal(x.Value, &v) == nil && v == Reject
}

// accepts reports why a reply can't end the interrupt.
func (p *pending) accepts(x reply) error {
	switch {
	case x.How == checkpoint.AnswerExpired || x.How == checkpoint.AnswerDefault:
		if p.ask.Until.IsZero() {
			return errors.New("it never expires")
		}
		return nil
	case x.How == checkpoint.AnswerSkipped:
		if p.kind != kindAsked {
			return errors.New("it is no question, and can't be skipped: answer it")
		}
		return nil
	case x.How != checkpoint.AnswerGiven:
		return fmt.Errorf("%q is no way to answer", x.How)
	case p.kind == kindDoubt:
		s, err := parseResolution(x.Value)
		if err != nil {
			return err
		}
		return acceptsResolution(p.ask.Want, s)
	case p.kind != kindAsked:
		var v Verdict
		if err := json.Unmarshal(x.Value, &v); err != nil || v != Approve && v != Reject {
			return fmt.Errorf("%s is neither %q nor %q", x.Value, Approve, Reject)
		}
		return nil
	}
	want, err := p.want()
	if err != nil {
		return err
	}
	return want.Accepts(x.Value)
}

// fits says why an answer can't be decoded, as far as this process knows. What it has taken already
// counts: the visit asks again.
func (p *pending) fits(x reply) error {
	switch {
	case x.How != checkpoint.AnswerGiven:
		return nil
	case p.kind == kindDoubt:
		s, err := parseResolution(x.Value)
		if err != nil {
			return err
		}
		return decodesResolution(p.ask.Want, s)
	case p.kind != kindAsked:
		return nil
	case p.decodes != nil:
		return p.decodes(x.Value)
	}
	want, err := p.want()
	if err != nil {
		return err
	}
	return want.Decodes(x.Value)
}

func conflict(err error) bool { return errors.Is(err, checkpoint.ErrConflict) }
