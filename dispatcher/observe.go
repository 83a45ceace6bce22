package dispatcher

import (
	"encoding/json"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// observe sends an event. An observer that panics has seen it.
func (c *core) observe(e Event, r *run) {
	if c.opts.Observe == nil {
		return
	}
	e.Run, e.Graph = r.id, c.plan.Name
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
			r.c.observe(r.appended, r)
		}
		for i := range r.facts {
			r.tellFact(&r.facts[i])
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

func (r *run) tellFact(x *fact) {
	e := Event{Path: x.Path, Step: x.Step, Attempt: x.Attempt, Outcome: x.Outcome, ID: x.ID, Err: x.err, Duration: x.took}
	if x.t != nil {
		e.Node = x.t.nodePath()
		if e.Attempt == 0 && x.Kind == checkpoint.Done && x.t.node.Body == nil {
			e.Attempt = 1
		}
	}
	if x.f != nil && x.f.holder != nil {
		e.Node = x.f.holder.nodePath()
	}
	switch x.Kind {
	case checkpoint.Opened:
		e.Kind, r.told = RunStarted, true
	case checkpoint.Resumed:
		e.Kind, r.told = RunResumed, true
	case checkpoint.Entered:
		e.Kind = FrameEntered
	case checkpoint.Done:
		e.Kind = VisitDone
	case checkpoint.AttemptFailed:
		e.Kind = AttemptFailed
		e.Failure, e.Final = failureOf(x)
	case checkpoint.Interrupted:
		e.Kind = VisitInterrupted
		var i checkpoint.Interrupt
		if json.Unmarshal(x.Data, &i) == nil {
			e.Outcome = i.Kind
		}
	case checkpoint.Answered:
		e.Kind = InterruptAnswered
	case checkpoint.Voided:
		e.Kind = VisitsVoided
	case checkpoint.Superstep:
		e.Kind, e.Outcome = SuperstepEnded, ""
		e.Duration = r.sinceBegun(x.f)
	case checkpoint.Completed, checkpoint.Waiting, checkpoint.Cancelled, checkpoint.TimedOut, checkpoint.Failed:
		e.Kind, e.Status, r.told = RunRested, r.m.status, false
	default:
		return
	}
	r.c.observe(e, r)
}

// tellLeft tells of a call that ends and leaves the run running.
func (r *run) tellLeft(err error) {
	if !r.told {
		return
	}
	told := make(chan struct{})
	go func() { // await waits for it, or abandons it
		defer close(told)
		r.c.observe(Event{Kind: RunRested, Status: checkpoint.StatusRunning, Err: err}, r)
	}()
	r.await(told, "Options.Observe")
}

func failureOf(x *fact) (dag.FailureKind, bool) {
	if n, ok := x.err.(*NodeError); ok {
		return n.Kind, x.t.phase != delayed && x.t.phase != ready
	}
	return dag.FailedError, true
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
