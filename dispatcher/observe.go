package dispatcher

import (
	"math"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// observe sends an event to the observer. One that panics has seen it.
func (c *core) observe(e Event) {
	if c.opts.Observe == nil {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	defer func() { _ = recover() }()
	c.opts.Observe(e)
}

// observed sends an event to the observer, if there is one. It reports whether the caller
// still owns the run.
func (r *run) observed(h *tenure, e *Event) bool {
	if r.c.opts.Observe == nil {
		return true
	}
	if !h.leave(inCall, doingObserve) {
		return false
	}
	r.c.observe(*e)
	return h.back(inCall)
}

// tell sends the facts, which are durable now, as events. It reports whether the caller
// still owns the run: an observer that hangs is given up like any user code.
func (r *run) tell(h *tenure) bool {
	if r.c.opts.Observe != nil || len(r.audience) > 0 {
		r.makeEvents()
		r.show()
		if !r.observeFacts(h) {
			return false
		}
		clear(r.events)
		r.events = r.events[:0]
	} else if r.m.turn != r.about.Load().turn {
		r.keepUp()
	}
	r.forgetHeard()
	r.forgetFacts()
	return true
}

// introduce completes what events tell of the run, before there are any of this call. A caller that
// has given it up may be reading what stood there before.
func (r *run) introduce() {
	was, knows := r.about.Load(), &r.m.told
	if r.m.turn == was.turn && len(knows.labels) == 0 && knows.correlation == "" {
		return // as most runs without a log
	}
	next := *was
	r.m.about(&next)
	r.about.Store(&next)
}

// keepUp lets live notices tell of the turn that has begun, if nobody is told of facts.
func (r *run) keepUp() {
	about := r.about.Load()
	for i := range r.facts {
		line := r.facts[i].entry()
		about = about.after(&line)
	}
	r.about.Store(about)
}

func (r *run) observeFacts(h *tenure) bool {
	was := r.told
	r.tells(r.events)
	if r.c.opts.Observe == nil {
		return true
	}
	r.telling = true
	if !h.leave(inCall, doingObserve) {
		r.told = was
		return false
	}
	r.tellEmitted()
	r.tellHeard(math.MaxUint64)
	if r.appended != nil {
		r.c.observe(*r.appended)
		r.appended = nil
	}
	for i := range r.events {
		r.c.observe(r.events[i])
	}
	if !h.back(inCall) {
		return false
	}
	r.telling = false
	return true
}

// tells remembers, just before events are told, whether they leave a call at work.
func (r *run) tells(events []Event) {
	for i := range events {
		switch events[i].Kind {
		case RunStarted, RunResumed, TurnBegun:
			r.told = true
		case RunRested:
			r.told = false
		}
	}
}

// makeEvents makes the events of the facts, which are durable now; or handed over, and then they
// get their numbers when they are.
func (r *run) makeEvents() {
	for i := range r.facts {
		x := &r.facts[i]
		line := x.entry()
		if r.c.store != nil {
			line.Seq = r.journal.head.Seq - uint64(len(r.facts)-1-i)
		}
		about := r.about.Load().after(&line)
		r.about.Store(about)
		e := about.tell(&line)
		e.Live, e.Duration, e.At = r.c.store == nil, x.took, time.Now()
		if x.err != nil {
			e.Err = x.err
		}
		if e.Kind == SuperstepEnded {
			e.Duration = r.sinceBegun(x.f)
		}
		r.events = append(r.events, e)
	}
}

// show offers the events of a run without a log to who has begun it.
func (r *run) show() {
	for _, l := range r.audience {
		for i := range r.events {
			x := &r.facts[i]
			t := &telling{Event: r.events[i], state: x.state}
			if l.listen.Deltas && x.Kind == checkpoint.Done {
				t.Delta = x.delta.AppendJSON(nil)
			}
			l.offer(t)
		}
	}
}

// tellLeft tells of a call that ends and leaves the run running.
func (r *run) tellLeft(err error) {
	if !r.told && len(r.listeners()) == 0 {
		return
	}
	e := r.left(err)
	if r.c.store == nil || e.Seq > 0 {
		offer(r.listeners(), &e)
	}
	if !r.told || slices.Contains(r.names, doingObserve) { // it hangs, and is not called beside itself
		return
	}
	told := make(chan struct{})
	r.strays.count.Add(1)
	go func() { // await waits for it, or abandons it
		defer close(told)
		defer r.strays.returned() // before the call learns of it, and counts
		r.c.observe(e)
	}()
	r.await(told, doingObserve)
}

// left is the notice of a call that ends and leaves the run running, or pending.
func (r *run) left(err error) Event {
	e := r.about.Load().event(RunRested, r.durable.Load())
	e.Live, e.Status = true, checkpoint.StatusRunning
	if rest, ok := err.(*Rest); ok && rest.Status == checkpoint.StatusPending {
		e.Status = rest.Status
	}
	if e.Err = r.returns(err); e.Err != nil {
		e.Cause = plain(err)
	}
	return e
}

// sinceBegun returns how long the superstep that has just ended took in this call, and
// begins to measure the next one.
func (r *run) sinceBegun(f *frame) time.Duration {
	began, now := f.began, time.Now()
	if began.IsZero() {
		began = r.started
	}
	f.began = now
	return now.Sub(began)
}
