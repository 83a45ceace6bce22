package dispatcher

import (
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

// tell sends the facts, which are durable now, as events. It reports whether the caller
// still owns the run: an observer that hangs is given up like any user code.
func (r *run) tell(h *tenure) bool {
	if r.c.opts.Observe != nil {
		r.telling = true
		if !h.leave(inCall, "Options.Observe") {
			return false
		}
		if r.c.store != nil {
			r.c.observe(r.appended)
		}
		r.tellEmitted()
		for i := range r.facts {
			r.c.observe(r.eventOf(i))
		}
		if !h.back(inCall) {
			return false
		}
		r.telling = false
	}
	clear(r.facts)
	r.facts = r.facts[:0]
	return true
}

// eventOf is the event of a fact that is durable.
func (r *run) eventOf(i int) Event {
	x := &r.facts[i]
	line := x.entry()
	if r.c.store != nil {
		line.Seq = r.journal.head.Seq - uint64(len(r.facts)-1-i)
	}
	r.about = r.about.after(&line)
	e := r.about.tell(&line)
	e.Live = r.c.store == nil
	e.Duration = x.took
	if x.err != nil {
		e.Err = x.err
	}
	switch e.Kind {
	case RunStarted, RunResumed:
		r.told = true
	case RunRested:
		r.told = false
	case SuperstepEnded:
		e.Duration = r.sinceBegun(x.f)
	}
	return e
}

// tellLeft tells of a call that ends and leaves the run running.
func (r *run) tellLeft(err error) {
	if !r.told {
		return
	}
	told := make(chan struct{})
	go func() { // await waits for it, or abandons it
		defer close(told)
		r.c.observe(r.left(err))
	}()
	r.await(told, "Options.Observe")
}

// left is the notice of a call that ends and leaves the run running.
func (r *run) left(err error) Event {
	e := r.about.event(RunRested, r.journal.head.Seq)
	e.Live, e.Status, e.Err = true, checkpoint.StatusRunning, err
	if err != nil {
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
