package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A ticket is one run that waits or is at work.
type ticket struct {
	run, graph, key string
	came            time.Time
	call            func() outcome          // the work; it ends soon after cancel
	cancel          context.CancelCauseFunc // ends the context of call
	waits           bool                    // it is in the queue, which says so
	submitted       bool                    // somebody has joined it who did not come to recover it; since it was put back, if it was left running then
	revives         bool                    // who submitted it goes on with it although it was cancelled, as Submit does; since it was put back likewise
	began           bool                    // Began was told of it, or is being told
	alone           bool                    // its call is not one that goes on with the run, and is not made twice
	held            outcome                 // of the call before, if that had no room and is made again; else zero
	rested          uint64                  // of the supervisor, when it had no room last
	lone            int                     // how often it had no room again where others had found some meanwhile, since it came further
	over            bool                    // call has returned out, which end has still to make known
	next, late      *ticket                 // of those who have joined it at work, or when it was over and the run completed; end says what becomes of them
	input           func() bool             // whether some waits for the run
	behind          bool                    // some does behind a call that has completed it, for who has joined that

	told chan struct{} // closed when Queued or PutBack was told of it, which comes first
	done chan struct{} // closed when out is set
	out  outcome

	recovers  bool      // a Recover waits for it; behind end none comes to
	recovered sync.Once // Recovered is told of it
}

// An outcome is how the work on a run has ended.
type outcome struct {
	result  any                         // a *dispatcher.Result[S]; nil if the run did not begin
	plain   dispatcher.Result[struct{}] // result without its state; what is known of it if there is none
	idle    bool                        // the run was not left running any more when its turn came
	stands  standing                    // if it is full
	head    uint64                      // of the run then
	further bool                        // than where it stood when it was held before
	err     error
}

func outcomeOf[S any](res *dispatcher.Result[S], err error) outcome {
	if res == nil {
		return outcome{err: err}
	}
	return outcome{result: res, plain: *withState(res, &struct{}{}), err: err}
}

// restsAs is the outcome of a run that was at rest when its turn came.
func restsAs(run string, status checkpoint.Status) outcome {
	return outcome{
		plain: dispatcher.Result[struct{}]{Run: run, Status: status}, idle: true,
		err: &dispatcher.Rest{Run: run, Status: status},
	}
}

// abandoned reports whether a node was, say, which has perhaps not returned.
func (o outcome) abandoned() bool { return len(o.plain.Abandoned) > 0 }

// Whether a submission joins one of the same run that is there, or is refused.
type joining uint8

const (
	joins    joining = iota + 1
	revives          // joins, and goes on with a run that was cancelled
	alone            // and so does that
	recovers         // joins, and nobody has submitted it
)

// submit queues a run, or joins one that is there. ctx gives call its values. Of what Recover
// brings it tells neither that it was joined nor that there was no room yet.
func (s *Supervisor) submit(
	ctx context.Context, run, graph, key string, how joining, call func(context.Context) outcome,
) (*ticket, error) {
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
		cancel: cancel, alone: how == alone, revives: how == revives || how == alone, recovers: how == recovers,
	}
	t.call = func() outcome {
		if out, rests := s.restsMeanwhile(of, t); rests {
			return out
		}
		out := call(of)
		if out.full() {
			lasts := context.WithoutCancel(of) // a Drain may have ended the call
			out.stands, out.head = s.stands(lasts, run)
			out.further = s.further(lasts, run, t.held, out)
		}
		return out
	}
	t.input = func() bool { return s.inputWaits(of, run) }
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
		joined.recovers = joined.recovers || t.recovers
		joined.submitted = joined.submitted || !t.recovers
		joined.revives = joined.revives || t.revives
		if !t.recovers && !joined.waits {
			next := &joined.next
			if joined.over && joined.out.plain.Status == checkpoint.StatusCompleted {
				next = &joined.late
			}
			if *next == nil {
				*next = t
			}
			joined = *next
			joined.revives = joined.revives || t.revives
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

// submitted reports whether somebody has joined a run that is being recovered.
func (s *Supervisor) submitted(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tickets[run].submitted
}

// stays reports whether a run that somebody has cancelled is left so when it is its turn: nobody
// who waits for it has submitted it as a cancelled one, to go on with that.
func (s *Supervisor) stays(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.tickets[run].revives
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
	if back = s.putBack(t); !back && s.completes(t) {
		t.behind = true // if the store does what none may, the call tells
		t.behind = t.input()
	}
	looked = true
	return nil
}

// completes reports whether a call that is over has completed its run, and others have joined it
// before: input that they have enqueued may have come when it had looked for some the last time.
func (s *Supervisor) completes(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending == nil && t.next != nil && t.out.err == nil && t.out.plain.Status == checkpoint.StatusCompleted && !t.out.abandoned()
}

// inputWaits reports whether input waits for a run, or the store can't tell.
func (s *Supervisor) inputWaits(ctx context.Context, run string) bool {
	posts, err := s.store.Posts(ctx, run)
	return err != nil || slices.ContainsFunc(posts, func(p checkpoint.Post) bool { return p.Kind == checkpoint.PostTurn })
}

// putsBack tells of a ticket that is in the queue again, and begins when the store has room.
func (s *Supervisor) putsBack(t *ticket) {
	told := t.told
	defer close(told) // whatever becomes of this goroutine in an observer
	s.tell(Event{Kind: PutBack, Run: t.run, Graph: t.graph, Key: t.key, Err: t.held.err})
}

// queued tells of a ticket that end has queued, which may begin then.
func (s *Supervisor) queued(t *ticket) {
	defer close(t.told) // whatever becomes of this goroutine in an observer
	s.tell(Event{Kind: Queued, Run: t.run, Graph: t.graph, Key: t.key})
}

// broken is the error of a call that panicked with p, or, if p is nil, ended its goroutine.
func broken(p any, stack []byte) error {
	e := &dispatcher.FaultError{Kind: "call", Message: "called runtime.Goexit", Stack: stack}
	if p != nil {
		e.Message = fmt.Sprintf("panic: %v", p)
		e.Err, _ = p.(error)
	}
	return e
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
	joined, late := t.next, t.late
	t.next, t.late = nil, nil
	if s.ending == nil && !t.out.abandoned() { // else nothing begins any more, or the run is still held
		switch {
		case t.behind: // who came later joins the further call at work
			again, joined = joined, nil
			if late != nil {
				again.next, again.revives, late = late, again.revives || late.revives, nil
			}
		case t.out.plain.Status == checkpoint.StatusInterrupted:
			again, joined = joined, nil
		default:
			again, late = late, nil // there may be input that was enqueued behind the call
		}
	}
	if again != nil {
		again.came = time.Now()
		s.tickets[again.run] = again
		s.queue.push(again)
	}
	joined.ends(t.out)
	late.ends(t.out)
	return append(next, s.beginNext()...), again
}

// ends gives those who wait for t an outcome that is another one's. t may be nil.
func (t *ticket) ends(o outcome) {
	if t == nil {
		return
	}
	t.out = o
	close(t.done)
}

// rested reports whether an outcome is that of a run which rests, completed or not.
func (o outcome) rested() bool {
	var rest *dispatcher.Rest
	return o.err == nil || errors.As(o.err, &rest) && rest.Status.Resting()
}
