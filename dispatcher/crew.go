package dispatcher

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// A crew runs the visits of one launch, each in the goroutine that comes to it first. Visits that
// don't block take a few goroutines in all, and none waits for one that does: while a visit has no
// goroutine there is a spare one that is able to run, and Go's scheduler lets it as soon as it
// would have let one of the visit's own.
type crew struct {
	r      *run
	visits []*visit // those that begin; nil where one is taken
	ready  atomic.Int32
	taken  atomic.Int32
	spare  atomic.Bool // a goroutine is able to run that has not looked yet
}

// newCrew returns a crew for so many visits, or as many of them as may run at once.
func (r *run) newCrew(most int) *crew {
	if r.c.slots != nil {
		most = min(most, cap(r.c.slots))
	}
	r.listen()
	r.flight = slices.Grow(r.flight, most)
	return &crew{r: r, visits: make([]*visit, most)}
}

// begin has a visit run. It is the owner's, and called for as many visits as the crew is for.
func (c *crew) begin(v *visit) {
	at := c.ready.Load()
	c.visits[at] = v
	c.ready.Store(at + 1)
	c.summon()
}

// summon has a goroutine look, if none is about to.
func (c *crew) summon() {
	if !c.spare.Swap(true) {
		c.r.spares.Add(1)
		go c.work() // ends with the bodies that it runs, which the owner waits for or abandons
	}
}

// work is a goroutine: it runs what has no other one.
func (c *crew) work() {
	c.spare.Store(false)
	if c.r.landed.Load() != nil {
		c.r.rouse() // for those who have left that to the spare one
	}
	v := c.take()
	if v != nil && c.taken.Load() < c.ready.Load() {
		c.summon()
	}
	c.r.spares.Add(-1)
	var now time.Duration
	for ; v != nil; v = c.take() {
		c.fly(v, &now)
	}
}

// take returns a visit that has no goroutine, which from now on is the caller's; nil if there is
// none.
func (c *crew) take() *visit {
	for {
		at := c.taken.Load()
		if at >= c.ready.Load() {
			return nil
		}
		if c.taken.CompareAndSwap(at, at+1) {
			v := c.visits[at]
			c.visits[at] = nil
			return v
		}
	}
}

// fly runs the body of a visit, if it may begin still.
func (c *crew) fly(v *visit, now *time.Duration) {
	defer c.ground(v) // Goexit comes through here as well
	if !c.r.ctxDone() {
		v.callItem(now)
		return
	}
	v.failed = &userError{kind: dag.FailedError, err: context.Canceled, late: context.Canceled}
}

// ground hands a visit that has returned to the owner, or counts it as a stray. While a goroutine
// is about to look, it wakes the owner, for all that have returned by then.
func (c *crew) ground(v *visit) {
	if !v.end(visitReturned) {
		v.close()
		c.r.strays.returned()
		return
	}
	if c.r.push(v) && !c.spare.Load() {
		c.r.rouse()
	}
}

// dismiss waits for goroutines that find nothing to do any more: none outlives the call.
func (r *run) dismiss() {
	for r.spares.Load() > 0 {
		runtime.Gosched()
	}
}
