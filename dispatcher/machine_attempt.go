package dispatcher

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// done records that a visit finished well. The delta of a Loop is what its iterations did,
// that of an Each what its items did.
func (m *machine) done(x *fact) error {
	t := x.t
	if t.phase != ready && t.phase != inside && t.phase != delayed {
		return fmt.Errorf("visit %q is %s and can't be done", t.path(), t.phase)
	}
	if t.node.Kind == dag.KindChoose {
		if _, err := chosenIn(x.Outcome); err != nil {
			return fmt.Errorf("visit %q has the outcome %s: %w", t.path(), x.Outcome, err)
		}
	}
	t.phase, t.outcome = finished, x.Outcome
	t.frame.put(t, x.delta)
	if records(t.node) {
		d, err := t.inner.outer.Delta()
		if err != nil {
			return err
		}
		t.frame.put(t, d)
	}
	if t.node.Kind == dag.KindEach {
		t.collect()
	}
	if len(x.Data) > 0 {
		if err := m.depend(x); err != nil {
			return err
		}
	}
	m.drop(t)
	t.frame.left--
	if t.isItem() {
		m.itemSettled(t)
	}
	m.check(t.frame)
	return nil
}

// finish is what done comes to for a plain visit, whose delta stands in its place.
func (m *machine) finish(t *task, outcome string) {
	t.phase, t.outcome = finished, outcome
	t.frame.left--
	m.check(t.frame)
	m.yield(t)
}

// attemptFailed records a failed attempt. After the last one the visit has failed.
func (m *machine) attemptFailed(x *fact) error {
	var a checkpoint.FailedAttempt
	if err := json.Unmarshal(x.Data, &a); err != nil {
		return err
	}
	t := x.t
	if t.phase == finished || t.phase.settled() || t.phase == idle {
		return fmt.Errorf("visit %q is %s and can't fail", t.path(), t.phase)
	}
	if t.phase == failing && t.inner != nil {
		return nil // earlier versions have told some failures of an Each twice
	}
	if x.Attempt > 0 { // an attempt of the visit itself, not of what it holds
		t.rare().attempts = x.Attempt
	}
	if !a.Final {
		r := t.rare()
		r.notBefore, r.wait = nanoseconds(a.NotBefore), a.Wait
		t.phase = delayed
		return nil
	}
	failure := &dag.Failure{Path: t.path(), Attempts: t.attempts(), Kind: dag.FailureKind(a.Kind), Message: a.Message}
	if a.Origin != "" {
		failure.Path, failure.Attempts = a.Origin, a.Attempts
	}
	if t.node.FailureFollowed && !a.Unfollowed && t.inner != nil {
		if records(t.node) {
			d, err := t.inner.outer.Delta()
			if err != nil {
				return err
			}
			t.frame.put(t, d)
		}
		m.lose(t)
	}
	t.rare().unfollowed = a.Unfollowed
	m.fell(t, failure)
	return nil
}

// fell records that a visit has failed for good.
func (m *machine) fell(t *task, failure *dag.Failure) {
	t.rare().failure = failure
	t.odd.lapse()
	t.frame.left--
	if t.node.FailureFollowed && !t.odd.unfollowed {
		t.phase = lapsed
	} else {
		t.phase = failing
		t.frame.failing++
	}
	if t.isItem() {
		m.itemSettled(t)
	}
	m.check(t.frame)
}

// nanoseconds are those of an instant since 1970, or, if it is behind the last one that they can
// tell, in the year 2262, of that: the longest waits end there.
func nanoseconds(at time.Time) int64 {
	const last = 1<<63 - 1
	if at.Unix() >= last/int64(time.Second) {
		return last
	}
	return at.UnixNano()
}
