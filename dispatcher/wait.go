package dispatcher

import (
	"runtime"
	"time"
)

// takeSlot takes one of Options.Parallel if there is one. The next visit that is announced
// has it then.
func (r *run) takeSlot() bool {
	if r.c.slots == nil {
		return true
	}
	if r.slot {
		return true
	}
	select {
	case r.c.slots <- struct{}{}:
		r.slot = true
	default:
	}
	return r.slot
}

// dropSlot gives back the slot that wait has taken and nobody has used.
func (r *run) dropSlot() {
	if r.slot {
		r.slot = false
		<-r.c.slots
	}
}

// wait blocks until something happens, and stages it. A slot that launch has left is for nothing
// that may begin now: what it was taken for is spared, or the run is about to end.
func (r *run) wait() {
	r.dropSlot()
	r.listen()
	if r.resign() {
		return
	}
	var due <-chan time.Time
	var done, drain <-chan struct{}
	var slots chan<- struct{}
	if !r.halting {
		done, drain = r.over(), r.drain
		if at, ok := r.wakes(); ok {
			timer := time.NewTimer(time.Until(at))
			defer timer.Stop()
			due = timer.C
		}
		if len(r.m.ready) > 0 && !r.limited() {
			slots = r.c.slots
		}
	}
	select {
	case <-r.results:
		if len(r.flight) > 1 {
			runtime.Gosched() // others that are about to return land with this one
		}
		r.landAll()
	case slots <- struct{}{}:
		r.slot = true
	case <-due:
	case <-done:
		r.halting = true
	case <-drain:
		r.halting = true
	case <-r.posted:
		r.journal.posts = true
	case <-r.journal.grown: // commit catches up
	}
	if !r.halting {
		r.wakeDue()
	}
}

// landAll stages what has returned by now: it shares the next append. If that is much, the rest
// waits for the one behind it.
func (r *run) landAll() {
	r.landing = 0
	for n := 0; r.returned != nil || r.gather(); n++ {
		if n == landingVisits || r.landing > landingBytes {
			r.rouse()
			return
		}
		v := r.returned
		r.returned, v.next = v.next, nil
		if !r.landPlain(v) {
			r.land(v)
		}
	}
}

// How much may share an append before what else has returned waits for the next one. What is staged
// takes some 500 bytes for each visit, besides what that wrote: a desk of one megabyte, where a
// hundred thousand items would have made one of fifty.
const (
	landingVisits = 2048
	landingBytes  = 8 << 20
)

// gather takes those that have landed, in the order of their return. It reports whether there are
// any.
func (r *run) gather() bool {
	for v := r.landed.Swap(nil); v != nil; {
		v.next, r.returned, v = r.returned, v, v.next
	}
	return r.returned != nil
}

// push adds a visit to those that have landed. It reports whether the owner has to be roused: if
// others wait there already somebody has done that or is about to, and the owner takes this one
// with them.
func (r *run) push(v *visit) bool {
	for {
		first := r.landed.Load()
		v.next = first
		if r.landed.CompareAndSwap(first, v) {
			return first == nil
		}
	}
}

// listen makes results, for those that land and for the caller. Most runs of plain supersteps need
// none.
func (r *run) listen() {
	if r.results == nil {
		r.results = make(chan struct{}, 1)
		r.heeds.Store(true)
	}
}

// rouse tells the owner that there is something to look at.
func (r *run) rouse() {
	select {
	case r.results <- struct{}{}:
	default:
	}
}

// wakes is when the owner has to look after something, if nothing happens before.
func (r *run) wakes() (at time.Time, ok bool) {
	at, ok = r.due.next()
	if over, expires := r.expires.next(); expires && (!ok || over.Before(at)) {
		at, ok = over, true
	}
	if end := r.lag.since.Add(r.lag.unit); len(r.facts) > 0 && (!ok || end.Before(at)) {
		return end, true
	}
	return at, ok
}

// wakeDue offers the visits whose wait between attempts is over.
func (r *run) wakeDue() {
	now, ok := r.due.come()
	if !ok {
		return
	}
	for _, t := range r.m.delays() {
		if r.due.rung(t, now) {
			r.m.wake(t)
		}
	}
	r.due.drop(func(_ *task, at time.Time) bool { return !at.After(now) })
}
