package dispatcher

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// land turns what a visit did into facts.
func (r *run) land(v *visit) {
	r.drop(v)
	v.close()
	if r.err != nil {
		return // the store has failed: nothing is kept
	}
	r.emitted = v.emitted(r.emitted)
	returned := v.failed == nil || v.failed.returned() || v.failed.kind == dag.FailedOutcome
	if asks := v.has().asks.Load(); asks != nil && (returned || asks.doubts()) && !v.mayNotAsk() {
		r.asked(v, asks)
		return
	}
	v.doubted()
	var d state.Delta
	if v.failed == nil {
		if v.failed = r.written(v, &d); v.failed != nil {
			v.failed.again = v.t.node.Policy.Retry == nil
		}
	}
	if v.failed == nil {
		r.noted(v)
		x := r.blank()
		x.Kind, x.Path, x.Step, x.Outcome = checkpoint.Done, v.path(), v.t.frame.step, v.outcome()
		x.t, x.delta = v.t, d
		if v.t.isItem() && r.c.store != nil {
			r.lag.itemDone(d.Size(), v.worked())
		}
		if v.took > 0 && (r.c.opts.Observe != nil || len(r.audience) > 0) {
			x.more().took = v.took
		}
		if v.Attempt() > 1 {
			x.Attempt = v.Attempt()
		}
		if v.round != nil {
			v.round.landed(r, x)
		}
		v.depended(x)
		r.landing += len(x.Data)
		r.apply()
		return
	}
	timedOut := v.stop != nil && v.failed.late == ErrTimeout
	if timedOut && v.failed.kind == dag.FailedError {
		v.failed.kind = dag.FailedTimeout
	}
	if v.failed.late != nil && !timedOut && r.halted() && r.ctxDone() && v.failed.returned() {
		r.m.ready = append(r.m.ready, v.t) // an error after the end is no attempt
		return
	}
	r.attemptFailed(v)
}

// landPlain is land for what most visits of a run without a log do: they write to their draft, and
// nobody hears of it. It reports whether v has done nothing else.
func (r *run) landPlain(v *visit) bool {
	t := v.t
	if !r.silent() || r.err != nil || v.failed != nil || v.did.Load() != nil || v.round != nil || !t.plain() || t.phase != ready {
		return false
	}
	d := t.frame.slot(t)
	if r.written(v, d) != nil { // land finds the same
		*d = state.Delta{}
		return false
	}
	r.drop(v)
	v.close()
	r.m.finish(t, v.outcome())
	return true
}

// written makes *d what a visit wrote, or returns why that can't be kept.
func (r *run) written(v *visit, d *state.Delta) *userError {
	if n := v.t.node; n.Kind == dag.KindRoute && !slices.Contains(n.Outcomes, v.outcome()) {
		return undeclared(n, v.outcome())
	}
	if err := r.delta(v.draft, v.t.frame.view, d); err != nil {
		return &userError{kind: dag.FailedState, err: err}
	}
	if notes := v.notedBytes(); notes > 0 {
		r.landing += notes
		if limit := r.c.opts.Limits.VisitBytes; d.Size()+notes > limit {
			return &userError{kind: dag.FailedState, err: &LimitError{"visit bytes", limit, "what it writes and notes"}}
		}
	}
	return nil
}

// delta makes *d what was written to a draft of base, within the limits.
func (r *run) delta(draft, base state.Image, d *state.Delta) error {
	size, err := r.c.delta(draft, base, d)
	if err != nil {
		return err
	}
	r.landing += size
	if r.c.opts.Paranoid {
		return reread(draft.Schema(), d)
	}
	return nil
}

// reread makes *d what a replay would read of it.
func reread(s *state.Schema, d *state.Delta) (err error) {
	*d, err = s.ParseDelta(d.AppendJSON(nil))
	return err
}

func (c *core) delta(draft, base state.Image, d *state.Delta) (size int, err error) {
	if err = draft.DeltaFrom(base, d); err != nil {
		return 0, sound(err)
	}
	limits := &c.opts.Limits
	size = d.Size()
	if size > limits.ValueBytes { // else no value in it is larger
		if cell, largest := d.MaxValue(); largest > limits.ValueBytes {
			return size, &LimitError{"value bytes", limits.ValueBytes, "cell " + cell}
		}
	}
	if size > limits.VisitBytes {
		return size, &LimitError{"visit bytes", limits.VisitBytes, ""}
	}
	return size, nil
}

// attemptFailed states that an attempt failed, and whether and when there is another.
func (r *run) attemptFailed(v *visit) {
	t, p, u := v.t, v.t.node.Policy, v.failed
	made := v.Attempt()
	var previous time.Duration
	if t.odd != nil {
		made -= t.odd.budget
		previous = t.odd.wait
	}
	final := made >= max(p.Attempts, 1) || !u.again
	if final {
		v.brokeInDoubt()
	}
	a := checkpoint.FailedAttempt{Kind: string(u.kind), Message: clip(u.Error()), Stack: clip(string(u.stack)), Final: final}
	a.Unfollowed = a.Final && (v.unsaid() || r.m.leftInDoubt(v.path()))
	if !a.Final {
		a.Wait = p.Backoff.Delay(v.Key(), v.Attempt(), previous)
		a.NotBefore = r.c.opts.Now().UTC().Add(a.Wait)
		if a.Wait > 0 {
			r.due = r.due.set(t, time.Now().Add(a.Wait))
		}
	}
	e := &NodeError{Run: r.id, Path: v.path(), Attempt: v.Attempt(), Kind: u.kind, Stack: u.stack, Err: u.err}
	if u.kind == dag.FailedTimeout {
		e.Budget = p.Timeout
	}
	if a.Final && (!t.node.FailureFollowed || a.Unfollowed) {
		r.blame(e)
	}
	r.fails(t, v.Attempt(), a, e, v.took)
	if !a.Final && a.Wait <= 0 {
		r.m.wake(t)
	}
}

// fails states that an attempt of t failed, or what t holds did (attempt 0).
func (r *run) fails(t *task, attempt int, a checkpoint.FailedAttempt, err error, took time.Duration) {
	if a.Final {
		followed := t.node.FailureFollowed && !a.Unfollowed
		a.Followed = &followed
	}
	x := r.said(&checkpoint.Entry{
		Kind: checkpoint.AttemptFailed, Path: t.path(), Step: t.frame.step, Attempt: attempt, Data: encode(a),
	}, t)
	x.err, x.took = err, took
	r.landing += len(x.Data)
	r.add(x)
	if a.Final {
		delete(r.substitutes, t)
	}
}

// clip keeps texts of user code from filling the log.
func clip(text string) string {
	const most = 64 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// blame keeps why a visit failed for the result of this call.
func (r *run) blame(e *NodeError) {
	if r.errs == nil {
		r.errs = map[string]error{}
	}
	r.errs[e.Path] = e
}

func (r *run) nodeError(f *dag.Failure) error {
	if err := r.errs[f.Path]; err != nil {
		return err
	}
	return &NodeError{Run: r.id, Path: f.Path, Attempt: f.Attempts, Kind: f.Kind, Err: errors.New(f.Message)}
}
