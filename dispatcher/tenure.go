package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A tenure is the ownership of a run by one goroutine, in one word. The owner leaves the
// machine to run user code or to call the store, and comes back; while it is away the
// caller can take the ownership, by one compare-and-swap. An owner that comes back and
// finds its tenure taken touches nothing any more.
type tenure struct {
	word   atomic.Int32
	doing  string                 // while away: what
	visit  *visit                 // the visit that runs on the owner's goroutine
	decide decision               // the decision for which user code runs on it
	whose  whose                  // code it is, if not the graph's own
	code   atomic.Pointer[string] // that the set-up of the run calls: nil while it is in the store
	goexit bool                   // user code ended the goroutine; the next one has to say so
	stack  []byte                 // where it did
}

const (
	atHome      int32 = iota
	inNode            // in the body of a visit
	inCall            // in the store, or in user code that decides
	finishedRun       // the run has come to rest
	taken             // while the owner was away
	takenAtHome       // the owner is the one to forsake what is in flight
)

// leave marks the owner as away. It fails if the ownership was taken.
func (h *tenure) leave(where int32, doing string) bool {
	h.doing = doing
	return h.word.CompareAndSwap(atHome, where)
}

// back marks the owner as home again. It fails if the ownership was taken.
func (h *tenure) back(where int32) bool { return h.word.CompareAndSwap(where, atHome) }

// take takes the ownership, unless the run has come to rest. It returns where the owner was.
func (h *tenure) take() (where int32) {
	for {
		where, as := h.word.Load(), taken
		switch where {
		case finishedRun:
			return where
		case atHome:
			as = takenAtHome
		}
		if h.word.CompareAndSwap(where, as) {
			return where
		}
	}
}

// strays counts the nodes and store calls of a call that were abandoned and have not
// returned, and the call itself. The run's lease is kept until the last of them has.
type strays struct {
	r     *run
	count atomic.Int32
	back  atomic.Bool              // all have, and the lease was given back
	names atomic.Pointer[[]string] // what the call has abandoned; nil before its end
	code  atomic.Pointer[string]   // user code that release calls; nil while it is in the store
}

// name adds to what the call has abandoned. The names stay the caller's.
func (s *strays) name(more []string) {
	for {
		var all []string
		old := s.names.Load()
		if old != nil {
			all = *old
		}
		all = slices.Concat(all, more)
		if s.names.CompareAndSwap(old, &all) {
			return
		}
	}
}

// strayed has calls of a run refused until cameBack is called, or was.
func (c *core) strayed(id string, s *strays) {
	if c.strays.add(id, s); s.back.Load() { // and was not found
		c.cameBack(id, s)
	}
}

// cameBack says that nothing of s holds the run any more. If calls were refused until then, what
// they have posted instead is heeded.
func (c *core) cameBack(id string, s *strays) {
	s.back.Store(true)
	if c.strays.remove(id, s) && c.store != nil {
		c.heed(id, nil)
	}
}

// stillRunning refuses a call while something that an earlier one has abandoned holds the run.
func (c *core) stillRunning(id string) error {
	all := c.strays.of(id)
	if len(all) == 0 {
		return nil
	}
	var names []string
	for _, s := range all {
		if code := s.code.Load(); code != nil { // all that was abandoned has returned
			names = append(names, *code)
		} else if of := s.names.Load(); of != nil {
			names = append(names, *of...)
		} else { // the call is about to say what, or its owner is at home
			names = append(names, "the dispatcher")
		}
	}
	return fmt.Errorf("%w: %s", ErrStillRunning, strings.Join(names, ", "))
}

// returned is called when a stray has returned, in a goroutine that no call waits for.
func (s *strays) returned() {
	if s.last() {
		_ = s.release() // no call is left that could tell
	}
}

// last reports whether this was the last stray, or the call at its end. Whoever is told so releases
// the lease.
func (s *strays) last() bool { return s.count.Add(-1) == 0 }

// release gives the lease back, however long the store takes. Its context has no end: whoever waits
// for it does so until the grace period is over, and a release that was cut off would leave the run
// held in a store whose leases have no end. While the store hangs it is a store call that was
// abandoned, and calls of the run are ErrStillRunning. So they are while the observer hangs that is
// told of what was posted meanwhile.
func (s *strays) release() (kept error) {
	r := s.r
	r.journal.hold.stop()
	if r.holdsLease() {
		kept = r.release(context.Background(), &s.code, nil)
	}
	r.c.cameBack(r.id, s)
	return kept
}

// watch is what the caller does while the owner works: it looks after the context and
// the grace period, and hears of cancels. It returns true when the run has come
// to rest, and false when the grace period is over and the owner has not come back.
func (r *run) watch() bool {
	posted, stop := r.watchPosts() // before the owner reads what was posted so far
	defer stop()
	if r.c.store != nil {
		// The owner looks for himself before he begins anything: a line of quick nodes would have
		// come to its end in the time in which this goroutine is woken.
		r.posted, stop = r.watchPosts()
		defer stop()
	}
	h := &r.tenure
	go r.own(h) // watch waits for its end, or takes its tenure away

	var soft, hard *time.Timer
	done, again := r.over(), !r.graceEnd.IsZero()
	for {
		select {
		case <-r.done:
			return true
		case <-posted:
			r.hearPosts()
		case <-r.reading:
			r.reading = nil
			if r.rehear {
				r.rehear = false
				r.hearPosts()
			}
		case <-done:
			done = nil
			if !again {
				r.graceEnd = time.Now().Add(r.c.opts.Grace)
			}
			soft = time.NewTimer(time.Until(r.graceEnd) - r.reserve())
			defer soft.Stop()
		case <-after(soft):
			soft = nil
			r.askToResign()
			h = r.takeOver(h)
			// However short the grace period is, the owner gets a moment to tell how it rests.
			left := r.reserve()
			if again {
				left = min(left, time.Until(r.graceEnd))
			}
			if r.c.opts.Hooks.OnEnd != nil || r.c.opts.Observe != nil { // they are told behind it
				left /= 2
			}
			hard = time.NewTimer(max(left, 5*time.Millisecond))
			defer hard.Stop()
		case <-after(hard):
			return r.giveUp(h)
		}
	}
}

// reserve is the end of the grace period: nodes are abandoned before it, so that what the
// others did can still be made durable.
func (r *run) reserve() time.Duration { return min(r.c.opts.Grace/4, 500*time.Millisecond) }

func after(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// takeOver takes the ownership from an owner that is in the body of a visit, abandons
// that visit, and lets another goroutine go on as the owner.
func (r *run) takeOver(h *tenure) *tenure {
	r.strays.count.Add(1) // before the body can return and find its tenure taken
	if !h.word.CompareAndSwap(inNode, taken) {
		r.strays.count.Add(-1)
		return h
	}
	h.visit.end(visitAbandoned)
	r.names = append(r.names, h.visit.path())
	next := &tenure{}
	go r.own(next) // as the first owner
	return next
}

// giveUp takes the ownership from an owner that has not come back in time, and abandons
// the bodies that still run.
func (r *run) giveUp(h *tenure) bool {
	r.strays.count.Add(1)
	doing := ""
	switch h.take() {
	case finishedRun:
		r.strays.count.Add(-1)
		<-r.done
		return true
	case atHome:
		r.stuck = errAtHome // it is between two calls, learns of it before the next, and forsakes them
		return false
	case inNode: // it was about to be there when takeOver looked
		h.visit.end(visitAbandoned)
		doing = h.visit.path()
	default:
		doing = h.doing
		if code := h.code.Load(); code != nil {
			doing = *code
		}
	}
	if r.setUp == nil { // else nothing is in flight, and the owner may be about to make room for what will be
		r.forsake()
	}
	r.abandon(doing)
	if r.snapping != nil {
		select {
		case <-r.snapping:
		default:
			r.abandon(doingSnapshot)
		}
	}
	if r.appending != nil {
		select {
		case <-r.appending:
		default:
			r.abandon(doingAppend)
		}
	}
	r.stuck = fmt.Errorf("%w: %s", ErrStuck, doing)
	if doing == doingAppend {
		r.stuck = fmt.Errorf("%w: %s: %w", ErrStuck, doing, ErrCommitUnknown)
	}
	return false
}

// abandon names what the call does not wait for any more, once.
func (r *run) abandon(what string) {
	if !slices.Contains(r.names, what) {
		r.names = append(r.names, what)
	}
}

// resting reports whether the run has come to rest although its owner is stuck: in giving
// the lease back.
func (r *run) resting() bool { return r.stuck != errAtHome && r.atRest }

// exited runs when the owner's goroutine ends in the middle of its work: user code called
// runtime.Goexit, and another goroutine goes on; or there is a bug of ours.
func (r *run) exited(h *tenure) {
	where := h.word.Load()
	if where >= taken || !h.back(where) {
		if h.visit != nil {
			h.visit.close()
		}
		r.gone(h)
		return
	}
	h.goexit, h.stack = true, debug.Stack()
	go r.own(h) // as the first owner
}

// asking calls user code before there is something to run. If that ends the goroutine it is told as
// a fault of this kind.
func (r *run) asking(kind string, f func() error) error {
	r.asks = kind
	err := r.calling(doingAsks[kind], f)
	r.asks = ""
	return err
}

// What user code of the set-up, and of its end, is called in results if it is abandoned.
var (
	doingInput     = "the input of the run"
	doingAnAppend  = doingAppend
	doingAnObserve = doingObserve
	doingAsks      = map[string]*string{
		"answer": new("what decodes an answer"),
		"check":  new("the Check of a state"), "items": new("the items of an Each"), "revalidate": new("Options.Revalidate"),
		"migration": new("a Migration"),
	}
)

// calling calls user code while the run is set up: it is named, and not the store, if it does not
// return.
func (r *run) calling(what *string, f func() error) error {
	r.tenure.code.Store(what)
	err := f()
	r.tenure.code.Store(nil)
	return err
}

// afterGoexit tells what user code did to the goroutine before this one.
func (r *run) afterGoexit(h *tenure) {
	h.goexit = false
	h.code.Store(nil)
	if v := h.visit; v != nil {
		h.visit = nil
		r.land(v)
		return
	}
	if r.starting {
		r.notBegun(&FaultError{Kind: "hook", Message: errGoexit.Error(), Stack: h.stack, Err: errGoexit})
		return
	}
	if h.decide.kind == 0 {
		e := &FaultError{Kind: "observer", Message: errGoexit.Error(), Stack: h.stack, Err: errGoexit}
		if r.setUp == nil {
			r.breakOff(h, e)
			return
		}
		e.Kind = cmp.Or(r.asks, "input")
		if r.asks == "migration" {
			e.Message = r.c.migrating(r.m.plan) + e.Message
		}
		r.setUp, r.early = nil, early{err: e}
		if r.giving != nil {
			r.apart = true
		}
		return
	}
	d := h.decide
	h.decide = decision{} // what ends the next goroutine is no answer to it
	r.undecided(d, &userError{kind: failedGoexit, err: h.whose.blames(errGoexit), stack: h.stack})
	h.whose = whose{}
}

// askToResign tells the owner to give up on what runs. If it has no results yet, it looks before it
// waits for them.
func (r *run) askToResign() {
	r.resigns.Store(true)
	if r.heeds.Load() {
		r.rouse()
	}
}

// resign gives up on the visits that run in goroutines of their own, if the caller has asked for
// that. One that has just returned is still staged. It reports whether it did so now.
func (r *run) resign() bool {
	if r.resigned || !r.resigns.Load() {
		return false
	}
	r.resigned, r.halting = true, true
	r.abandonFlight()
	for r.landAll(); len(r.flight) > 0; r.landAll() {
		<-r.results
	}
	return true
}

// gone is the end of an owner whose tenure was taken.
func (r *run) gone(h *tenure) {
	defer r.strays.returned()
	if h.word.Load() != takenAtHome {
		return
	}
	r.forsake()
	if len(r.names) > 0 {
		r.strays.name(r.names) // the caller knew of none
	}
	if r.told { // the caller, who had nothing of r, has not told of its end
		r.told = false
		r.c.observe(r.left(r.c.refuse(r.id, errAtHome)))
	}
}

// forsake gives up what is in flight, and the slot that nobody has used: no owner lands anything
// from now on. Bodies that still run give back what they hold when they return; what has returned
// already holds it still.
func (r *run) forsake() {
	r.abandonFlight()
	for _, v := range r.flight {
		v.close()
	}
	r.flight = nil
	r.dropSlot()
}

// abandonFlight leaves in flight only visits whose bodies have returned.
func (r *run) abandonFlight() {
	for _, v := range slices.Clone(r.flight) {
		r.strays.count.Add(1)
		if v.end(visitAbandoned) {
			r.names = append(r.names, v.path())
			r.drop(v)
			continue
		}
		r.strays.count.Add(-1)
	}
}
