package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
)

// A Drain is what became of the runs that a supervisor had when it began to drain. The ids
// are sorted.
type Drain struct {
	Finished []string // came to rest: completed, interrupted, failed, cancelled or timed out
	// Left stand in the store as they were left: Recover goes on with them. Or what was called for
	// them was refused. A run that had begun, and for which the store has had no room since
	// (checkpoint.ErrFull), is among them, even if that was before the Drain: who went on with it
	// in another way may have brought it further.
	Left    []string
	Stuck   []string // are at work still, or have left a node or a store call that had not returned then
	Waiting []string // were never begun, perhaps since the store had no room; if they are not in the store, nobody knows of them
}

// An ending is a supervisor that drains.
type ending struct {
	vacant chan struct{} // closed when nobody is at work any more
	Drain
}

// note says that the work on t is over.
func (e *ending) note(t *ticket) {
	switch {
	case t.out.abandoned():
		e.Stuck = append(e.Stuck, t.run)
	case t.out.rested():
		e.Finished = append(e.Finished, t.run)
	case t.out.full() && t.out.stands == unopened:
		e.Waiting = append(e.Waiting, t.run)
	default:
		e.Left = append(e.Left, t.run)
	}
}

// noteWaiting says that t will not begin. left is whether an earlier call for the run has left it
// running.
func (e *ending) noteWaiting(t *ticket, left bool) {
	if left || t.setback.left() {
		e.Left = append(e.Left, t.run)
		return
	}
	e.Waiting = append(e.Waiting, t.run)
}

// Drain ends the supervisor, and reports what became of its runs. What is submitted from now on is
// refused with ErrDraining, and so is what waits. Of the runs at work nothing begins any more; what
// runs may finish. Drain returns as soon as nobody is at work.
//
// A ctx with a deadline bounds that. Some time before the deadline the contexts of the runs that
// are still at work are cancelled, with the cause dispatcher.ErrDrain, and Drain waits for them
// until the deadline. That time is Options.Grace, or half of what was left if that is less. If ctx
// is done otherwise they are cancelled then, and Drain waits for Options.Grace.
//
// The error wraps ErrStuck if a run is still at work, or has left a node or a store call that had
// not returned. To call Drain again waits for those at work. Nobody hears whether what a dispatcher
// has abandoned returns: such a run stays among Stuck, and Drain does not wait for it.
func (s *Supervisor) Drain(ctx context.Context) (Drain, error) {
	if err := present(ctx, s); err != nil {
		return Drain{}, err
	}
	began := time.Now()
	e := s.refuse()
	soft, hard := s.patience(ctx, began)
	if !ended(e, soft, ctx.Done()) {
		s.cancelAll()
		if hard == nil || ctx.Err() != nil {
			hard = time.After(s.options.Grace)
		}
		ended(e, hard, nil)
	}
	report := s.drained()
	var err error
	if n := len(report.Stuck); n > 0 {
		err = fmt.Errorf("%w: %d: %q", ErrStuck, n, report.Stuck[:min(n, 8)])
	}
	s.tell(Event{Kind: Drained, Duration: time.Since(began), Err: err})
	return report, err
}

// patience says when runs are cancelled, and when they are no longer waited for. Without a
// deadline both are nil.
func (s *Supervisor) patience(ctx context.Context, now time.Time) (soft, hard <-chan time.Time) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil, nil
	}
	left := deadline.Sub(now)
	return time.After(max(left-s.options.Grace, left/2)), time.After(left)
}

// ended waits until nobody is at work. It returns false if time or done came first.
func ended(e *ending, over <-chan time.Time, done <-chan struct{}) bool {
	select {
	case <-e.vacant:
		return true
	default:
	}
	select {
	case <-e.vacant:
		return true
	case <-over:
	case <-done:
	}
	return false
}

// refuse begins to drain, once, and refuses those that wait.
func (s *Supervisor) refuse() *ending {
	e, waiting := s.beginEnding()
	for _, t := range waiting {
		s.tell(Event{Kind: Dropped, Run: t.run, Graph: t.graph, Key: t.key})
	}
	return e
}

func (s *Supervisor) beginEnding() (e *ending, waiting []*ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return s.ending, nil
	}
	s.ending = &ending{vacant: make(chan struct{})}
	close(s.drain)
	s.lift() // nothing begins any more
	for t := s.queue.pop(0); t != nil; t = s.queue.pop(0) {
		t.out = t.notBegun(ErrDraining)
		delete(s.tickets, t.run)
		close(t.done)
		t.sequel.share(t.out) // with who has joined it at work, before it was put back
		_, left := s.full[t.run]
		s.ending.noteWaiting(t, left)
		delete(s.full, t.run)
		waiting = append(waiting, t)
	}
	for run := range s.full {
		if s.tickets[run] == nil { // else it is at work, and noted when that is over
			s.ending.Left = append(s.ending.Left, run)
		}
	}
	s.leftQueue()
	if s.working == 0 {
		close(s.ending.vacant)
	}
	return s.ending, waiting
}

// cancelAll cancels those that are at work.
func (s *Supervisor) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tickets {
		t.cancel(dispatcher.ErrDrain)
	}
}

// drained reports what became of all.
func (s *Supervisor) drained() Drain {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := Drain{
		Finished: slices.Clone(s.ending.Finished), Left: slices.Clone(s.ending.Left),
		Stuck: slices.Clone(s.ending.Stuck), Waiting: slices.Clone(s.ending.Waiting),
	}
	for run := range s.tickets {
		d.Stuck = append(d.Stuck, run)
	}
	for _, ids := range [][]string{d.Finished, d.Left, d.Stuck, d.Waiting} {
		slices.Sort(ids)
	}
	return d
}
