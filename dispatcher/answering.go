package dispatcher

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// Answering has Run, Resume, Continue and Stream answer an interrupt and go on, in one call that
// takes the run once. It does what [Dispatcher.Answer] and the call behind it would do.
//
//	res, err := d.Continue(ctx, run, dispatcher.Answering("", true))
//
// It may be given for several interrupts: then all of the answers count or none does, as with
// [Dispatcher.Answers]. [Author], [Because] and [Message] beside it are for the answers. [From] is
// where the run stands before them. A caller that repeats the call under its Message leaves From
// out, since it is ErrStaleCursor once the answers count.
//
// Once the answers count they are answers like any others, even if ctx is done. If something then
// keeps the call from going on, such as a [*GraphChangedError] or [Manual], which looks after the
// answers, that does not take them back. The answers mostly become durable with the resume, in one
// append: a call that is ErrStuck, or whose store has failed, may have given them or not. Open
// tells.
//
// Nothing has changed and nothing runs:
//
//   - with an [*AnswerError], which says why the answers were refused;
//   - if another option does not fit the run;
//   - with ErrBusy, while somebody is at work on the run, whom Answer reaches;
//   - with ErrNotFound if there is no such run, even from Run and Stream.
func Answering(interrupt string, value any) RunOption {
	return RunOption{answering, func(w *wishes) error {
		_, twice := w.answers[interrupt]
		_, nameless := w.answers[""]
		switch {
		case w.how != modeRun && w.how != modeResume && w.how != modeContinue:
			return &OptionError{answering, "is for Run, Resume, Continue and Stream only"}
		case twice:
			return &OptionError{answering, fmt.Sprintf("answers %q twice", interrupt)}
		case nameless || interrupt == "" && len(w.answers) > 0:
			return &OptionError{answering, "is given for several interrupts, one of which has no name: name the interrupt of each"}
		case w.answers == nil:
			w.answers = map[string]any{}
		}
		w.answers[interrupt] = value
		return nil
	}}
}

const answering = "Answering"

// Name is the name of the function that made the option, "" for the zero option.
func (o RunOption) Name() string { return o.name }

// answers reports whether one of the options of a call does.
func answers(options []RunOption) bool {
	return slices.ContainsFunc(options, func(o RunOption) bool { return o.name == answering })
}

// answerFirst gives the answers of the call under its own lease, and returns what else was posted.
// Options that don't fit the run are refused before.
func (r *run) answerFirst(posts []checkpoint.Post) ([]checkpoint.Post, early) {
	w := r.wishes // of this call alone
	if err := r.admits(w); err != nil {
		return nil, early{r.stands(r.m.status), r.c.refuse(r.id, err)}
	}
	r.from, w.from = w.from, nil // the run stands there
	g := w.giving
	g.ctx = r.stored
	for {
		var s *replying
		err := r.asking("answer", func() (err error) {
			s, err = g.said(r.m, posts)
			return err
		})
		switch {
		case err != nil:
			return nil, early{r.stands(r.m.status), err}
		case s == nil || s.posted: // then it is drained with the resume
			return posts, early{}
		}
		if len(posts) == 0 && r.shares(s) {
			r.giving = s.claims(r.m)
			return nil, early{}
		}
		lines := append(r.m.queued(posts, nil).line, s.claims(r.m)...)
		refusal := r.amend(lines)
		switch {
		case refusal == nil:
			// What has ended keeps its answer.
			w.expire = slices.DeleteFunc(slices.Clone(w.expire), func(id string) bool { return r.m.waits[id] == nil })
			return without(posts, lines), early{}
		case !conflict(refusal):
			return nil, early{err: refusal}
		}
		if posts, err = r.lookAgain(w, s.post.ID, refusal); err != nil {
			return nil, early{err: err}
		}
	}
}

// shares reports whether the answers are likely to be said in the append of the resume. They are
// not if OnStart may keep the run from going on behind them, if it comes to another graph first or
// has questions end, nor if a visit still waits for something else.
//
// If they can't be said there after all, since somebody has posted under their number or the run
// can't go on, nothing has happened, and the call begins again: see apart.
func (r *run) shares(s *replying) bool {
	if r.wishes.apart || len(r.wishes.expire) > 0 || r.m.plan != r.c.plan || r.c.opts.Hooks.OnStart != nil {
		return false
	}
	for _, x := range s.Replies {
		o := r.m.waits[x.Interrupt].t.odd
		if o == nil { // a pause behind the visit
			continue
		}
		for _, p := range o.asks {
			if !slices.ContainsFunc(s.Replies, func(y reply) bool { return y.Interrupt == p.id }) {
				return false
			}
		}
	}
	return true
}

// hearSince hears the first cancel that the log tells of behind an entry, where the run was at
// rest. That somebody else's context has ended, who went on with the run meanwhile, is none. What
// was trimmed since tells of none.
func (r *run) hearSince(seq uint64) error {
	status := checkpoint.StatusInterrupted
	for e, err := range r.c.store.Read(r.stored, r.id, seq+1, 0) {
		switch {
		case errors.Is(err, checkpoint.ErrTrimmed):
			return nil
		case err != nil:
			return err
		case e.Kind == checkpoint.Cancelled && (e.Post != "" || status != checkpoint.StatusRunning):
			r.cancel(postedCause(checkpoint.Post{Data: e.Data}))
			return nil
		}
		status = status.After(e.Kind)
	}
	return nil
}

// hearPosted hears the cancels among posts that came since the call has begun, and returns the
// others.
func (r *run) hearPosted(w *wishes, posts []checkpoint.Post) []checkpoint.Post {
	return slices.DeleteFunc(posts, func(p checkpoint.Post) bool {
		if !slices.Contains(w.knew, p.ID) {
			r.hearCancel(p)
		}
		return slices.Contains(r.drains, p.ID)
	})
}

// lookAgain returns what was posted, when somebody has posted under an id that the call has
// claimed. Its machine has heard what was not appended. A cancel among the posts is heard: the run
// rests so behind the answers. If nothing of that id was posted the store has refused the append
// for nothing.
func (r *run) lookAgain(w *wishes, claimed string, refusal error) ([]checkpoint.Post, error) {
	m, head, err := r.c.machine(r.stored, r.id)
	if err != nil {
		return nil, err
	}
	r.stand(m, head)
	posts, err := r.c.store.Posts(r.stored, r.id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.ID == claimed }) {
		return nil, refusal
	}
	return r.drainBefore(r.hearPosted(w, posts))
}

// refused reports whether a call returns err since its answers were refused: then it has changed
// nothing.
func refused(err error) bool {
	_, is := err.(*AnswerError)
	return is
}

// stand says where the run stands when the call has looked.
func (r *run) stand(m *machine, head checkpoint.Head) {
	r.m, r.journal.head, r.journal.since = m, head, m.read
}

// amend makes lines durable before the call does anything.
func (r *run) amend(lines []checkpoint.Entry) error {
	a := &amendment{c: r.c, lease: r.journal.lease, hold: r.journal.hold, m: r.m, head: r.journal.head, code: &r.tenure.code, desk: newDesk()}
	a.observed()
	err := r.asking("observer", func() error {
		if err := a.drain(r.stored, lines); err != nil {
			return err
		}
		return a.append(r.stored)
	})
	if err != nil {
		return err
	}
	a.desk.leave()
	r.m.read += a.size
	r.stand(r.m, a.head)
	return nil
}

// without are the posts that none of lines drains.
func without(posts []checkpoint.Post, lines []checkpoint.Entry) []checkpoint.Post {
	drained := map[string]bool{}
	for i := range lines {
		drained[lines[i].Post] = true
	}
	return slices.DeleteFunc(posts, func(p checkpoint.Post) bool { return drained[p.ID] })
}
