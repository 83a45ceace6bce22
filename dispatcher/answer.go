package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A giving is one call of Answer, Answers or Skip, or what a call answers that goes on with the
// run.
type giving struct {
	c     *core
	ctx   context.Context
	run   string
	by    string
	why   string
	how   string
	id    string  // of the message; "" if it has none
	given []reply // by interrupt; of one that is skipped nothing
	tried bool    // to append them: somebody was faster, or the lease does not hold
}

// give ends interrupts of a run.
func (c *core) give(ctx context.Context, id, how string, values map[string]any, options []RunOption) error {
	if err := c.calledFor(ctx, id); err != nil {
		return err
	}
	w, err := c.wish(modeAnswer, options)
	if err != nil {
		err = c.refuse(id, err)
	}
	g := &giving{c: c, ctx: ctx, run: id, how: how}
	if err == nil {
		err = g.take(values, w)
	}
	if err != nil {
		return cmp.Or(c.exists(ctx, id), err) // what is wrong with a run that is not there is that
	}
	for {
		if settled, err := g.try(); settled || err != nil {
			return err
		}
	}
}

// answering is what a call answers that goes on with the run.
func (c *core) answering(ctx context.Context, id string, w *wishes) (*giving, error) {
	g := &giving{c: c, ctx: ctx, run: id, how: checkpoint.AnswerGiven}
	return g, g.take(w.answers, w)
}

// take reads what the call was given.
func (g *giving) take(values map[string]any, w *wishes) (err error) {
	g.by, g.why, g.id = w.by, w.because, w.message
	g.given = make([]reply, 0, len(values))
	for _, interrupt := range slices.Sorted(maps.Keys(values)) { // of several errors it is always the same one
		x := reply{Interrupt: interrupt, How: g.how}
		if g.how != checkpoint.AnswerSkipped {
			if x.Value, err = marshal(values[interrupt]); err != nil {
				return &AnswerError{g.run, interrupt, plain(err), ErrAnswerType}
			}
			if err := g.c.opts.Limits.allow(x.Value, "the answer"); err != nil {
				return &AnswerError{g.run, interrupt, plain(err), err}
			}
		}
		g.given = append(g.given, x)
	}
	return nil
}

// A replying is the message that a call comes to.
type replying struct {
	*postedAnswers
	post   checkpoint.Post
	posted bool // the same call was made before, and its outcome may not be known
	pauses bool // it ends one: then a resume may be faster
}

// said is what the call comes to where the run stands, with those posts, behind what waits to be
// drained. It is nil if the call has come to its end before.
func (g *giving) said(m *machine, posts []checkpoint.Post) (*replying, error) {
	if g.id != "" && m.seen[givenPrefix+g.id] {
		return nil, nil
	}
	q := m.queued(posts, nil)
	a := q.under(g.id)
	if a == nil {
		var err error
		if a, err = g.replies(q); err != nil {
			return nil, err
		}
	}
	s := &replying{postedAnswers: a}
	s.pauses = slices.ContainsFunc(a.Replies, func(x reply) bool { return m.waits[x.Interrupt].pauses() })
	if k := slices.IndexFunc(q.said, a.says); k >= 0 {
		s.post, s.posted = q.posts[k], true
	} else {
		s.post = a.post(lastNumber(posts, m.answered) + 1)
	}
	return s, nil
}

// try gives the replies, unless they have to be refused. It reports false if somebody else was
// faster.
func (g *giving) try() (settled bool, err error) {
	c, ctx := g.c, g.ctx
	posts, err := c.store.Posts(ctx, g.run) // before the log: what is drained between is in both
	if err != nil {
		return false, c.refuse(g.run, missing(err))
	}
	m, head, err := c.machine(ctx, g.run)
	if err != nil {
		return false, c.refuse(g.run, missing(err))
	}
	s, err := g.said(m, posts)
	if s == nil {
		c.keep(g.run, head, m, m.read)
		return err == nil, err
	}
	if len(posts) == 0 && !g.tried {
		g.tried = true
		settled, err := g.append(s, m, head)
		if !busy(err) {
			return settled, err
		}
	}
	return g.post(s, m, head)
}

// append gives the replies in the call's own append, under the number that a message of theirs
// would have: of a run that nobody is at work on, and to which nothing was posted. Busy is the
// error if somebody is; then nothing has happened.
func (g *giving) append(s *replying, m *machine, head checkpoint.Head) (settled bool, err error) {
	err = g.c.amendingFrom(g.ctx, g.run, standing{m: m, head: head, hurries: true}, func(a *amendment) error {
		return a.drain(g.ctx, s.claims(m))
	})
	switch {
	case err == nil:
		return true, nil
	case busy(err):
		return false, err
	case !elsewhere(err):
		return false, g.c.refuse(g.run, err)
	}
	settled, err = g.counts(s, head.Seq, false) // calls that give the same at once are one
	if errors.Is(err, checkpoint.ErrTrimmed) {
		return false, nil
	}
	return settled, err
}

// post gives the replies to whoever is at work on the run, or behind what others have posted.
func (g *giving) post(s *replying, m *machine, head checkpoint.Head) (settled bool, err error) {
	c, ctx := g.c, g.ctx
	if !s.posted {
		if err := c.store.Post(ctx, g.run, s.post); conflict(err) {
			return false, nil
		} else if err != nil {
			return false, c.refuse(g.run, err)
		}
	}
	mine := &posted{s.post, s.postedAnswers}
	counted, err := c.drain(ctx, g.run, mine, standing{m: m, head: head})
	if conflict(err) { // it does not stand there any more
		counted, err = c.drain(ctx, g.run, mine, standing{})
	}
	switch {
	case err == nil && counted:
		return true, nil
	case err != nil && !elsewhere(err):
		return false, c.refuse(g.run, err)
	}
	return g.counts(s, head.Seq, true)
}

// counts looks whether the log tells, behind an entry, that the replies count, and not those that
// somebody else has given before under the same number. If it does not tell yet, they do if they
// were posted. A reply to a pause won't if a resume has ended that first.
func (g *giving) counts(s *replying, seen uint64, posted bool) (bool, error) {
	rest := s.Replies
	for e, err := range g.c.store.Read(g.ctx, g.run, seen+1, 0) {
		if err != nil {
			return false, g.c.refuse(g.run, unknownIfTrimmed(err))
		}
		if s.pauses && e.Kind == checkpoint.Resumed && endsPauses(e.Data) {
			return false, nil
		}
		if e.Post != s.post.ID {
			continue
		}
		if len(rest) == 0 || !rest[0].counted(&e, s.postedAnswers) {
			return false, nil
		}
		if rest = rest[1:]; len(rest) == 0 {
			return true, nil
		}
	}
	return posted, nil
}

// endsPauses reports whether a resume ends the interrupts before and after visits that nobody has
// asked about.
func endsPauses(resumed json.RawMessage) bool {
	var r checkpoint.Resumption
	return json.Unmarshal(resumed, &r) == nil && r.Ends
}

// unknownIfTrimmed makes ErrCommitUnknown of an error of who reads what became of something that
// was said: whoever has the run has taken it, gone on and trimmed the entries that tell.
func unknownIfTrimmed(err error) error {
	if errors.Is(err, checkpoint.ErrTrimmed) {
		return fmt.Errorf("%w: %w", checkpoint.ErrCommitUnknown, err)
	}
	return err
}

// counted reports whether an entry is what a reply of a has come to.
func (x *reply) counted(e *checkpoint.Entry, a *postedAnswers) bool {
	if e.Kind == checkpoint.EffectEnded {
		return x.resolved(e, a.By)
	}
	var is checkpoint.Answer
	return e.Kind == checkpoint.Answered && json.Unmarshal(e.Data, &is) == nil &&
		e.ID == x.Interrupt && is.How == x.How && is.By == a.By && is.Reason == a.Reason && is.Message == a.Message && string(is.Value) == string(x.Value)
}

// drain makes what was posted to a run that nobody is at work on entries of it: answers, tags,
// notes and cancels, in as many appends as that takes. It reports whether mine is an answer that
// counts. The run stands there; the zero standing says that nobody has looked.
//
// Messages whose ids were drained before, as when two answer at once and one is late, are no reason
// for an append. They wait for that of who goes on with the run: whoever is refused moves no
// cursor.
func (c *core) drain(ctx context.Context, id string, mine *posted, there standing) (counted bool, err error) {
	err = c.amendingFrom(ctx, id, there, func(a *amendment) error {
		posts, err := c.store.Posts(ctx, id)
		if err != nil {
			return err
		}
		q := a.m.queued(posts, mine)
		counted = slices.ContainsFunc(q.posts, func(p checkpoint.Post) bool { return p.ID == mine.ID })
		oldestFirst(posts)
		for _, p := range posts {
			if p.Kind == checkpoint.PostTag || p.Kind == checkpoint.PostNote {
				q.line = append(q.line, a.m.drained(p))
			}
		}
		lines := append(q.line, a.m.cancelledBy(posts)...)
		if !slices.ContainsFunc(lines, func(e checkpoint.Entry) bool { return !a.m.seen[e.Post] }) {
			return nil
		}
		return a.drain(ctx, lines)
	})
	return counted, err
}

// elsewhere reports whether an answer could not be drained because somebody else has the run, who
// will do it.
func elsewhere(err error) bool {
	return busy(err) || conflict(err) || errors.Is(err, checkpoint.ErrFenced)
}

// replies are what the call is to post, if all of it can count.
func (g *giving) replies(q *queue) (*postedAnswers, error) {
	a := &postedAnswers{By: g.by, Reason: g.why, Message: g.id, Replies: slices.Clone(g.given)}
	if x := &a.Replies[0]; x.Interrupt == "" { // then it is the only one
		only, err := g.only(q)
		if err != nil {
			return nil, err
		}
		x.Interrupt = only
	}
	if slices.ContainsFunc(q.said, a.says) {
		return a, nil
	}
	for _, x := range a.Replies {
		if err := g.check(q, x); err != nil {
			return nil, err
		}
	}
	return a, g.siblings(q, a)
}

// siblings says which reply can't count beside the rejection of the same visit. That holds in
// either order: the ids of interrupts, by which replies are ordered, mean nothing to the caller.
func (g *giving) siblings(q *queue, a *postedAnswers) error {
	if len(a.Replies) == 1 {
		return nil
	}
	for _, x := range a.Replies {
		ends := q.m.waits[x.Interrupt].endsWith(x)
		if len(ends) == 1 { // itself
			continue
		}
		for _, y := range a.Replies {
			if y.Interrupt != x.Interrupt && slices.Contains(ends, y.Interrupt) {
				return &AnswerError{g.run, y.Interrupt, fmt.Sprintf(
					"the rejection of %s, given with it, ends it as well: give that one alone", x.Interrupt), ErrNotAwaited}
			}
		}
	}
	return nil
}

// check says why a reply can't count.
func (g *giving) check(q *queue, x reply) error {
	p := q.m.waits[x.Interrupt]
	if p == nil {
		return g.c.unawaited(g.ctx, g.run, x.Interrupt)
	}
	if before := q.ended(x.Interrupt); before != nil {
		k := slices.IndexFunc(before.Replies, func(y reply) bool { return y.Interrupt == x.Interrupt })
		if k < 0 {
			return &AnswerError{g.run, x.Interrupt, "its visit was rejected" + whoAndWhen(before.By, q.at(before)), ErrNotAwaited}
		}
		return ended(g.run, x.Interrupt, checkpoint.Answer{How: before.Replies[k].How, By: before.By, At: q.at(before)})
	}
	if p.late(g.c.opts.Now()) {
		return ended(g.run, x.Interrupt, checkpoint.Answer{How: checkpoint.AnswerExpired})
	}
	if p.kind == kindDoubt && g.id != "" {
		return &AnswerError{g.run, x.Interrupt, "Message is not for a Resolution: of each doubt there is one, whatever it is called", ErrAnswerType}
	}
	if p.kind == kindDoubt && g.why != "" {
		return &AnswerError{g.run, x.Interrupt, "Because is not for a Resolution: NotHappened has the reason", ErrAnswerType}
	}
	err := p.accepts(x)
	if err == nil {
		err = p.fits(x)
	}
	if err != nil {
		return &AnswerError{g.run, x.Interrupt, plain(err), ErrAnswerType}
	}
	return nil
}

// Answers ends several interrupts of a run at once: all of them, by one durable message, or none.
// The keys of values are ids of interrupts, and the values are as for [Dispatcher.Answer]; the
// empty id is refused here. Other interrupts go on waiting. A [Reject] of a visit before it begins
// ends all that the visit waits for, so another answer beside it is ErrNotAwaited. [Author] says
// who gives the answers, and [Because] why.
//
// If one is refused none counts: an [*AnswerError] names it, and nothing has changed.
func (d *Dispatcher[S]) Answers(ctx context.Context, run string, values map[string]any, options ...RunOption) error {
	c := d.inside()
	if _, nameless := values[""]; nameless || len(values) == 0 {
		if err := c.exists(ctx, run); err != nil {
			return err
		}
		return &AnswerError{run, "", "name the interrupt of each answer, and give one at least", ErrNotAwaited}
	}
	return c.give(ctx, run, checkpoint.AnswerGiven, values, options)
}

// Skip ends a question without an answer: dag.Ask returns dag.ErrSkipped in the visit that asked
// it. The empty id stands for the only question that waits. An interrupt before or after a visit is
// no question, and is ErrAnswerType. All else is as for [Dispatcher.Answer].
func (d *Dispatcher[S]) Skip(ctx context.Context, run, interrupt string, options ...RunOption) error {
	return d.inside().give(ctx, run, checkpoint.AnswerSkipped, map[string]any{interrupt: nil}, options)
}
