package supervisor

import (
	"context"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A sequel is those who have joined a run at work, and what comes of that: they get the outcome of
// its call, or the run is gone on with once more for them.
//
// Invariant: everybody who has joined is in one of the two tickets, and so gets one outcome. Who is
// in next came before the call had completed the run and returned, who is in late behind that.
type sequel struct {
	next, late *ticket // of the first who came; nil if nobody did
	completed  bool    // the call has completed the run, and returned: who joins now is late
	input      bool    // behind that some waits, which who is in next may have enqueued
	looks      func() bool
	behind     uint64 // of the ticket of a further call: where the call before has left the run, 0 if that is not known
}

// join returns the ticket that t joins, which is t if it is the first.
func (q *sequel) join(t *ticket) *ticket {
	of := &q.next
	if q.completed {
		of = &q.late
	}
	if *of == nil {
		*of = t
	} else {
		(*of).claim.add(t.claim)
	}
	return *of
}

// returned notes how the call has ended, and looks for input if somebody may have enqueued some
// when the call had looked for it the last time.
func (s *Supervisor) returned(t *ticket) {
	s.mu.Lock()
	q, out := &t.sequel, &t.out
	q.completed = out.plain.Status == checkpoint.StatusCompleted
	looks := s.ending == nil && q.next != nil && q.completed && !out.abandoned()
	s.mu.Unlock()
	if looks {
		q.input = true // if the store does what none may, the further call tells
		q.input = q.looks()
	}
}

// inputWaits reports whether input waits for a run, or the store can't tell.
func (s *Supervisor) inputWaits(ctx context.Context, run string) bool {
	posts, err := s.store.Posts(ctx, run)
	return err != nil || slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.Kind == checkpoint.PostTurn })
}

// again takes out the ticket for which the run is gone on with, nil if there is none, when its call
// has ended with out. The others share that. of is the claim of all who wait for the call, these
// among them.
func (q *sequel) again(out outcome, of claim) (again *ticket) {
	switch {
	case out.abandoned(): // the run is still held
	case q.input: // who came later joins the further call at work
		if again = q.next; q.late != nil {
			again.sequel.next = q.late
			again.claim.add(q.late.claim)
		}
		q.next, q.late = nil, nil
	case out.plain.Status == checkpoint.StatusInterrupted: // it may be answered by now
		again, q.next = q.next, nil
	case out.is(checkpoint.ErrNotFound) && of.submitted: // who submits a run that is not there begins it
		again, q.next = q.next, nil
	default: // there may be input that was enqueued behind the call
		again, q.late = q.late, nil
	}
	if again != nil {
		again.sequel.behind = out.plain.Cursor.Seq
	}
	return again
}

// share gives all who have joined the outcome of the ticket that they have joined.
func (q *sequel) share(out outcome) {
	for _, t := range []*ticket{q.next, q.late} {
		if t != nil {
			t.out = out
			close(t.done)
		}
	}
}
