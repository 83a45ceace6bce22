package supervisor

import "fmt"

// Withdraw takes the run out of the queue, and reports whether it waited there. If it did, it will
// not begin, and the store is as it was. All who wait for it, whoever submitted it, get
// ErrWithdrawn. It may be submitted again.
//
// A run at work is not withdrawn: dispatcher.Dispatcher.Cancel ends it. A run that had begun, and
// waits again since the store had no room, stands as it was left: if that is Running,
// [Supervisor.Recover] goes on with it.
func (t *Task[S]) Withdraw() bool {
	if t.none() || !t.s.withdraw(t.ticket) {
		return false
	}
	of := t.ticket
	t.s.tell(Event{Kind: Dropped, Run: of.run, Graph: of.graph, Key: of.key, Err: of.out.err})
	return true
}

// notBegun is the outcome of a run that waits, and will not begin.
func (t *ticket) notBegun(why error) outcome {
	if t.held.err != nil {
		return outcome{err: fmt.Errorf("%w: run %q waits for room: %w", why, t.run, t.held.err)}
	}
	return outcome{err: fmt.Errorf("%w: run %q has not begun", why, t.run)}
}

func (s *Supervisor) withdraw(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.tickets[t.run]; of != nil && of.next == t {
		t = of // who has joined it at work withdraws it, if it was put back
	}
	if !s.queue.remove(t) {
		return false
	}
	delete(s.tickets, t.run)
	if t.held.err != nil && t.held.stands == running {
		s.full[t.run] = struct{}{}
	}
	t.out = t.notBegun(ErrWithdrawn)
	close(t.done)
	t.sequel.share(t.out) // with who has joined it at work, before it was put back
	s.leftQueue()
	return true
}
