package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A ticket is one run that waits or is at work. Whose it is says its claim, what becomes of those
// who join it at work its sequel, and what was before, if the store had no room for it, its
// setback.
type ticket struct {
	run, graph, key string
	came            time.Time
	call            func() outcome          // the work; it ends soon after cancel
	cancel          context.CancelCauseFunc // ends the context of call
	alone           bool                    // its call is not one that goes on with the run, and is not made twice
	waits           bool                    // it is in the queue, which says so; else it is at work
	began           bool                    // Began was told of it, or is being told
	claim
	sequel
	setback

	told chan struct{} // closed when Queued or PutBack was told of it, which comes first
	done chan struct{} // closed when out is set
	out  outcome

	recovered sync.Once // Recovered is told of it
}

// A work is what is done for a run when it is its turn.
type work struct {
	run    string
	runner Runner
	call   func(context.Context) outcome
	goesOn func(context.Context) outcome // in place of call if an earlier one has left the run running: it begins none anew; nil if call does not either
}

// submit queues a run, or joins one that is there. ctx gives its work the values. Of what Recover
// brings it tells neither that it was joined nor that there was no room yet.
func (s *Supervisor) submit(ctx context.Context, w work, key string, how joining) (*ticket, error) {
	run, graph := w.run, w.runner.Graph()
	if err := checkpoint.CheckRunID(run); err != nil {
		return nil, &passedOn{err}
	}
	if err := late(ctx, run); err != nil {
		return nil, err
	}
	key = cmp.Or(key, graph)
	of, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &ticket{
		run: run, graph: graph, key: key, came: time.Now(), told: make(chan struct{}), done: make(chan struct{}),
		cancel: cancel, alone: how == alone, claim: how.claim(),
	}
	t.call = func() outcome { return s.does(of, t, w) }
	t.looks = func() bool { return s.inputWaits(of, run) }
	first, joined, err := s.admit(t)
	defer func() { // whatever becomes of this goroutine in an observer
		if joined == nil {
			close(t.told)
		}
		s.begin(first)
	}()
	e, is := Event{Kind: Queued, Run: run, Graph: graph, Key: key}, t
	switch {
	case joined != nil:
		e.Kind, is = Joined, joined
	case err != nil:
		e.Kind, e.Err, is = Refused, err, nil
	}
	if e.Kind == Queued || how != recovers {
		s.tell(e)
	}
	return is, err
}

// late returns an error if the context of a submission is done already.
func late(ctx context.Context, run string) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("supervisor: run %q was not queued: %w", run, context.Cause(ctx))
}

// admit queues t, and returns those who are to be begun. If the run is there already, joined is its
// ticket; of one at work it is the next ticket, which may be t: the run may have been interrupted
// and answered by now, and the work on it is over but for telling so.
func (s *Supervisor) admit(t *ticket) (first []*ticket, joined *ticket, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return nil, nil, fmt.Errorf("%w: run %q", ErrDraining, t.run)
	}
	if joined = s.tickets[t.run]; joined != nil {
		if t.alone || joined.graph != t.graph {
			return nil, nil, &RunError{Run: t.run, Graph: joined.graph, Err: fmt.Errorf("%w: it waits or is at work here already: wait for it", dispatcher.ErrBusy)}
		}
		joined.claim.add(t.claim)
		if !t.recovers && !joined.waits {
			joined = joined.sequel.join(t)
		}
		return nil, joined, nil
	}
	if s.queue.size >= s.options.Queue {
		return nil, nil, &QueueError{Run: t.run, Key: t.key, Waiting: s.queue.size}
	}
	if n := s.queue.of(t.key); n >= s.options.PerKey && !t.recovers { // else those of other keys would wait behind it
		return nil, nil, &QueueError{Run: t.run, Key: t.key, Waiting: n, PerKey: true}
	}
	s.tickets[t.run] = t
	s.queue.push(t)
	return s.beginNext(), nil, nil
}

// beginNext takes those out of the queue whose turn it is, as far as there is room. s.mu is held.
func (s *Supervisor) beginNext() (all []*ticket) {
	if s.hold.wait > 0 {
		return nil
	}
	for t := s.next(); t != nil; t = s.next() {
		all = append(all, t)
	}
	return all
}

// next takes whose turn it is out of the queue, nil if there is no room. s.mu is held.
func (s *Supervisor) next() *ticket {
	if s.working >= s.options.Cap {
		return nil
	}
	t := s.queue.pop(s.options.AtWork)
	if t != nil {
		s.working++
		s.leftQueue()
	}
	return t
}

// leaves notes that t is no longer at work. s.mu is held.
func (s *Supervisor) leaves(t *ticket) {
	s.working--
	s.queue.over(t.key)
}

// begin has those work who were taken out of the queue.
func (s *Supervisor) begin(all []*ticket) {
	for _, t := range all {
		go s.work(t) // ends when nobody waits for a turn; Drain waits for it
	}
}

// leftQueue wakes those who wait for room in the queue. s.mu is held.
func (s *Supervisor) leftQueue() {
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// room is closed when a run next leaves the queue.
func (s *Supervisor) room() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved == nil {
		s.moved = make(chan struct{})
	}
	return s.moved
}

// waiting is how many of these wait for their turn.
func (s *Supervisor) waiting(tickets []*ticket) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tickets {
		if t.waits {
			n++
		}
	}
	return n
}

// work does the work on t, and then on those whose turn it is, until nobody waits.
func (s *Supervisor) work(t *ticket) {
	for t != nil {
		t = s.turn(t)
	}
}

// does the work of t, and returns what came of it.
func (s *Supervisor) does(ctx context.Context, t *ticket, w work) outcome {
	call := w.call
	if t.held.stands == running { // when it was put back
		if out, rests := s.restsMeanwhile(ctx, w.runner, w.run); rests {
			return out
		}
		if w.goesOn != nil && !s.submitted(w.run) {
			call = w.goesOn
		}
	}
	before := s.measure(ctx, w.run)
	out := call(ctx)
	if out.full() {
		s.survey(ctx, t, &out)
	}
	out.silent = before > 0 && out.plain.Cursor.Seq == before && out.rested()
	return out
}

// begins tells that the work on t begins, once. If that ends the goroutine another one goes on.
func (s *Supervisor) begins(t *ticket) {
	if t.began {
		return
	}
	t.began = true
	goesOn := false
	defer func() {
		if !goesOn {
			go s.work(t) // as the goroutine that ends here
		}
	}()
	s.tell(Event{Kind: Began, Run: t.run, Graph: t.graph, Key: t.key, Waited: time.Since(t.came)})
	goesOn = true
}

// turn does the work on t, and returns who is next. A call that panics has failed; if it
// ends the goroutine, another one goes on.
func (s *Supervisor) turn(t *ticket) (next *ticket) {
	<-t.told // by who submitted it, and may be slower
	s.begins(t)
	began := time.Now()
	returned, looked, goesOn, back := false, false, false, false
	defer func() {
		if back {
			s.putsBack(t)
			return
		}
		all, again := s.end(t)
		tells := t.recovers
		if len(all) > 0 && again == nil && !tells && goesOn { // else what has still to be told may take its time
			next, all = all[0], all[1:]
		}
		s.begin(all)
		if again != nil {
			s.queued(again)
		}
		if tells {
			s.recovered(t)
		}
	}()
	defer func() {
		p := recover()
		if back {
			return
		}
		if !returned {
			t.out = outcome{err: broken(p, debug.Stack())}
		}
		t.cancel(nil)
		s.tell(Event{
			Kind: Ended, Run: t.run, Graph: t.graph, Key: t.key, Duration: time.Since(began), Err: t.out.err,
		})
		goesOn = looked
	}()
	t.out = t.call()
	returned = true
	if back = s.putBack(t); !back {
		s.returned(t)
	}
	looked = true
	return nil
}

// queued tells of a ticket that end has queued, which may begin then.
func (s *Supervisor) queued(t *ticket) {
	defer close(t.told) // whatever becomes of this goroutine in an observer
	s.tell(Event{Kind: Queued, Run: t.run, Graph: t.graph, Key: t.key})
}

// end makes known that the work on t is over, and returns those who are next. Those who have joined
// it at work get its outcome, unless the run goes on: again is their ticket then, now in the queue,
// though that is full, for they were taken.
func (s *Supervisor) end(t *ticket) (next []*ticket, again *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tickets, t.run)
	s.leaves(t)
	close(t.done)
	if s.ending != nil {
		s.ending.note(t)
		if s.working == 0 {
			close(s.ending.vacant)
		}
	} else if tries := s.learn(t); tries != nil {
		next = append(next, tries)
	}
	if s.ending == nil { // else nothing begins any more
		again = t.sequel.again(t.out, t.claim)
	}
	if again != nil {
		again.came = time.Now()
		s.tickets[again.run] = again
		s.queue.push(again)
	}
	t.sequel.share(t.out)
	return append(next, s.beginNext()...), again
}
