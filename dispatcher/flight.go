package dispatcher

import (
	"slices"
	"time"
)

// inline runs a visit on the owner's goroutine. It reports whether that still owns the run.
func (r *run) inline(h *tenure, t *task) bool {
	v := r.newVisit(t)
	if begins, owner := r.announce(h, v); !begins {
		return owner
	}
	h.visit = v
	if !h.leave(inNode, "") {
		v.close()
		return false
	}
	var now time.Duration
	v.callItem(&now)
	if !h.back(inNode) {
		v.close()
		return false
	}
	h.visit = nil
	r.land(v)
	return true
}

// spawn has a crew run a visit: the owner finds it landed, or has abandoned it. It reports whether
// the owner still owns the run.
func (r *run) spawn(h *tenure, t *task, c *crew) bool {
	v := r.newVisit(t)
	if begins, owner := r.announce(h, v); !begins {
		return owner
	}
	v.at = int32(len(r.flight))
	r.flight = append(r.flight, v)
	c.begin(v)
	return true
}

// close gives back what a visit holds: its timer, and one of Options.Parallel.
func (v *visit) close() {
	if v.stop != nil {
		v.stop()
	}
	if v.host.c.slots != nil {
		<-v.host.c.slots
	}
}

// drop forgets a visit that was in flight.
func (r *run) drop(v *visit) {
	last := len(r.flight) - 1
	if int(v.at) > last || r.flight[v.at] != v {
		return // it ran on the owner's goroutine
	}
	r.flight[v.at] = r.flight[last]
	r.flight[v.at].at = v.at
	r.flight[last] = nil
	r.flight = r.flight[:last]
}

// launch begins what may run. A visit that is alone, while nothing else waits for an answer, an
// instant or the append that items share, runs on the owner's goroutine; then more is true. If
// stride may run it, it is returned instead. owner is false if the ownership was taken meanwhile.
func (r *run) launch(h *tenure) (plain *task, more, owner bool) {
	if r.halting || r.limited() {
		return nil, false, true
	}
	tasks := r.m.take()
	alone := len(tasks) == 1 && len(r.flight) == 0 && r.due.none() && len(r.m.waits) == 0 && r.lag.facts == 0
	if !r.silent() {
		r.facts = slices.Grow(r.facts, min(len(tasks), landingVisits)+1)
	}
	var crew *crew
	for i, t := range tasks {
		if r.halted() || !r.takeSlot() {
			r.m.ready = append(r.m.ready, tasks[i:]...)
			return nil, r.halting, true
		}
		if alone && r.strides(t) {
			return t, true, true
		}
		if alone {
			return nil, true, r.inline(h, t)
		}
		if crew == nil {
			crew = r.newCrew(len(tasks))
		}
		if !r.spawn(h, t, crew) {
			return nil, false, false
		}
	}
	return nil, r.halting, true // it may have been halted while the last one was about to begin
}
