package supervisor

import "fmt"

// Withdraw takes the run out of the queue, and reports whether it waited there: then it will
// not begin, the store is as it was, and all that wait for it, whoever submitted it, get
// ErrWithdrawn. It may be submitted again. A run that is at work is ended with
// dispatcher.Dispatcher.Cancel.
func (t *Task[S]) Withdraw() bool {
	if t.none() || !t.s.withdraw(t.ticket) {
		return false
	}
	of := t.ticket
	t.s.tell(Event{Kind: Dropped, Run: of.run, Graph: of.graph, Key: of.key, Err: of.out.err})
	return true
}

func (s *Supervisor) withdraw(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.queue.remove(t) {
		return false
	}
	delete(s.tickets, t.run)
	t.out = outcome{err: fmt.Errorf("%w: run %q has not begun", ErrWithdrawn, t.run)}
	close(t.done)
	s.leftQueue()
	return true
}
