package dispatcher

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A run is one call at work on one run. It is owned by one goroutine at a time, the
// owner; the caller's goroutine waits beside it (see watch).
//
// The owner goes round: decide what follows from the facts, make the facts durable, begin
// what may run, wait for what is running. Only in the third step does anything follow
// from a fact, so nothing follows from one that isn't durable, or on its way if the run may be
// ahead of the disk: see commit. (Items of an Each that are done may wait for others to share
// their append, see lag: nothing follows from those yet.)
type run struct {
	*host   // never nil
	m       *machine
	legacy  *leftover // what an earlier run has left, or room for it; nil if the run was loaded
	*logged           // never nil

	parent    context.Context // the caller's
	ctx       context.Context // of the run: ends with the parent, a cancel, or the call
	cancelled context.CancelCauseFunc

	facts    []fact                // applied and not durable yet
	flight   []*visit              // in goroutines of their own
	landed   atomic.Pointer[visit] // those that have returned, the last one first
	returned *visit                // those before them that are not staged yet, in order
	spares   atomic.Int32          // goroutines of crews that have not looked yet
	results  chan struct{}         // has room for one: somebody has landed, or abandoning is set; nil until listen
	due      *alarms[*task]        // of visits that wait between attempts
	errs     map[string]error      // why visits failed in this call, by path
	parked   []parked              // supersteps that can't be merged
	halting  bool                  // the context is done, or the run drains: nothing new begins
	polled   bool                  // posts were read since anything happened
	checking bool                  // user code that runs is a Check
	slot     bool                  // one of Options.Parallel is held and not used yet
	drain    <-chan struct{}       // of Drain: once it is closed, nothing new begins; nil is never
	heeded   *postedCancel         // the first cancel that was heard; nil if none was
	// the cause for which the run was halted, or that of the post that cancelled it; nil if it
	// rests for another reason
	caused  error
	landing int // bytes that visits wrote which landed together

	strays   strays
	names    []string     // of strays
	setUp    func() early // takes the lease and reads the log, or opens a new run
	early    early        // what the call returns at once; nothing else happens
	atRest   bool         // the run has come to rest, durably
	told     bool         // the observer knows that the run is live
	telling  bool         // the observer is being told
	starting bool         // Hooks.OnStart is being called
	opens    bool         // the call has opened the run
	unasked  bool         // some visit could begin, if interceptors were asked
	loaded   atomic.Bool  // setUp is done: moot is what it is
	hooked   atomic.Int32 // hooksBegun, hooksOver

	heeds    atomic.Bool   // results is there
	resigns  atomic.Bool   // set by the caller: abandon what is running
	resigned bool          // the owner has
	done     chan struct{} // has room for one: what the last owner says at its end
	err      error         // of the store; the machine then says nothing
	stuck    error         // why the caller gave up; the caller's
	started  time.Time     // of the call
	graceEnd time.Time     // when the call has to return; zero while its context is not done

	events      []Event              // of the facts that tell tells of
	emitted     []Event              // by visits that have landed, for the observer
	present     *about               // what events told when the run began to be at work, for hooks
	stood       *report              // what the run was before, for hooks; nil if it is opened
	substitutes map[*task]substitute // what interceptors run in place of functions

	writes  []state.Write // memory for the next merge
	drafts  state.Slab    // memory for those of visits
	visits  []visit       // memory for the next ones
	visited int           // of visits: those that are somebody's
	plain   *footing      // of plain visits
	tenure  tenure        // the first one
}

// A host is what visits know of their run. What a node leaves behind may hold on to it for as long
// as it likes, so it is never another run's.
type host struct {
	c        *core
	id       string
	late     lateContext           // what ctx is, if cancelled is nil; else what stored is
	about    atomic.Pointer[about] // what all events of the run tell
	begins   about                 // where that begins
	audience []*listener           // without a store: who has begun the run reads along
	log      *loggedRun            // nil without a store: then the run's memory may be another's by now
	first    footing               // memory for that of plain visits
}

// A loggedRun is one with a log. What that begins with is left from an earlier one.
type loggedRun struct {
	run
	home host
	logs logged
}

// A logged is what only runs with a log have.
type logged struct {
	journal journal
	stored  context.Context // of store calls: ends when the grace period does; nil without a store
	*desk                   // never nil, but in noLog

	lag      lag             // of the facts: what waits to share an append
	ahead    []*batch        // handed over, and not known to be durable: the oldest first
	steps    int             // supersteps that have ended in them
	unsaved  int             // bytes of them
	heard    []*effectEntry  // by nodes, durable and applied: to be told
	expires  *alarms[string] // when questions are over, by interrupt
	drains   []string        // ids of the posts that cancelled the run
	moot     []string        // ids of cancels that were posted before the run came to rest
	warnings []string

	wishes *wishes            // of the call
	asks   string             // kind of the fault of what setUp asks; "" is the input
	found  []checkpoint.Post  // when the lease was taken
	giving []checkpoint.Entry // answers of the call, until the append is durable that says them with the resume
	from   *checkpoint.Cursor // of the wishes, until then
	apart  bool               // that can't be: the call begins again, and says them before
	fresh  func(any)          // the input of Turn, until a turn has begun with it; else nil
	taking *input             // a turn is to begin with it: user code runs

	crossing *crossing // to the dispatcher's graph, of a completed run that is of another one; else nil

	posted    <-chan struct{} // the store tells the owner that there are posts; nil if it can't
	rehear    bool            // there were posts since the reader began
	released  bool            // the lease was given back
	snapping  chan struct{}   // closed when the snapshot under way is written
	appending chan struct{}   // closed when nobody appends what was handed over
	reading   chan struct{}   // closed when the reader of posts beside the caller has ended

	appended *Event        // of the append that tell tells of; nil is none
	durable  atomic.Uint64 // number of the last durable entry, for those who are not the owner
}

// noLog is the logged of runs without a store. It is never written to.
var noLog logged

// own drives the run until it rests. It is the only writer of r while h is not taken.
// If user code ends this goroutine with Goexit, another one goes on as the owner.
//
// A short run without a log does with the two kilobytes of stack that a goroutine begins with: when
// it has to be moved to a larger one, that takes a sixth of its time. So what is on the stack when
// nodes run or memory is allocated keeps what is seldom needed in functions of their own.
func (r *run) own(h *tenure) {
	if r.c.store != nil {
		deepen(0)
	}
	ended := false
	defer func() {
		if p := recover(); p != nil {
			panic(p) // a bug of ours: nobody may go on
		}
		if !ended {
			r.exited(h)
		}
	}()
	if h.goexit {
		r.afterGoexit(h)
	}
	if h.word.Load() == atHome && r.prepare(h) {
		r.loop(h)
	}
	ended = true
	switch where := h.word.Load(); {
	case where == finishedRun:
		r.done <- struct{}{} // from here on r may be another run
	case where >= taken:
		r.gone(h)
	}
}

// deepen has the stack of a goroutine grow to what calls of stores and JSON need: once, while there
// is next to nothing on it. Else it grows twice in the depths of the first ones, and everything on
// it is moved.
//
//go:noinline
func deepen(at int) byte {
	var room [5 << 10]byte
	return room[at]
}

// prepare takes the lease and reads the log, or opens a new run. It reports whether
// there is something to run.
func (r *run) prepare(h *tenure) bool {
	if r.setUp != nil {
		if !h.leave(inCall, "opening the run in the store") {
			return false
		}
		e := r.setUp()
		if !h.back(inCall) {
			return false
		}
		r.setUp, r.early = nil, e
		r.loaded.Store(true)
	}
	if !r.early.now() && r.hooked.Load() == 0 && !r.begin(h) {
		return false
	}
	if r.early.now() {
		r.finish(h)
		return false
	}
	return true
}

// An early is what a call returns that has nothing to run.
type early struct {
	rep *report
	err error
}

func (e early) now() bool { return e.rep != nil || e.err != nil }

func (r *run) loop(h *tenure) {
	for {
		if !r.expire(h) || !r.takePosts(h) || !r.decide(h) {
			return
		}
		resting := r.idle()
		if resting {
			if r.poll() {
				continue
			}
			r.rest()
		}
		if !r.commit(h, resting) {
			return
		}
		if again, owner := r.answeredSince(h, resting); again {
			continue
		} else if !owner {
			return
		}
		if resting || r.m.status == checkpoint.StatusCompleted {
			r.atRest = r.fresh == nil || r.m.status != checkpoint.StatusCompleted
			begun, owner := r.nextTurn(h)
			if begun {
				continue
			}
			if owner {
				r.finish(h)
			}
			return
		}
		plain, more, owner := r.launch(h)
		if plain != nil { // not by launch: see own
			more, owner = true, r.stride(h, plain)
		}
		if !owner {
			return
		}
		r.polled = false
		if !more {
			r.wait()
		}
	}
}

// poll has the posts read once more before the run comes to rest: an answer or a cancel may
// have been posted meanwhile, unheard if the store is no Watcher.
func (r *run) poll() bool {
	if r.polled || r.halting && !r.atEnd() || r.journal.head.Seq == 0 || r.m.status == checkpoint.StatusCompleted {
		return false
	}
	r.polled, r.journal.posts = true, true
	return true
}

// idle reports whether nothing runs and nothing may begin.
func (r *run) idle() bool {
	if len(r.m.ready) == 0 { // else launch reads the contexts, before each body
		r.halted()
	}
	if len(r.flight) > 0 {
		return false
	}
	if r.halting {
		return true
	}
	if r.limited() && len(r.m.ready) > 0 {
		r.park("limit", &LimitError{Limit: "supersteps", Max: r.c.opts.Limits.Supersteps}, nil)
		return true
	}
	return len(r.m.ready) == 0 && r.due.none() && len(r.overdue()) == 0
}

func (r *run) limited() bool { return r.m.steps >= r.c.opts.Limits.Supersteps }

// halted reads the contexts. Once one is done, or the run drains, nothing new begins.
func (r *run) halted() bool {
	if !r.halting && (r.ctxDone() || r.draining()) {
		r.halting = true
	}
	return r.halting
}

// ctxDone reports whether a context is done: what runs has been told so.
func (r *run) ctxDone() bool {
	return r.parent.Err() != nil || r.cancelled != nil && r.ctx.Err() != nil
}

// over is done when ctx is, for who waits while the call lasts.
func (r *run) over() <-chan struct{} {
	if r.cancelled == nil {
		return r.parent.Done()
	}
	return r.ctx.Done()
}

func (r *run) cancel(cause error) {
	if r.cancelled == nil {
		r.late.end(cause)
		return
	}
	r.cancelled(cause)
}

// add applies a fact and keeps it for the next append.
func (r *run) add(x fact) {
	*r.blank() = x
	r.apply()
}

// addPlain is add for a fact that says nothing but its kind.
func (r *run) addPlain(k checkpoint.Kind) {
	r.blank().Kind = k
	r.apply()
}

// blank makes room for a fact, which the caller fills in and apply applies. Facts are
// large, and most of a run's time without a store would go into copying them.
func (r *run) blank() *fact {
	n := len(r.facts)
	if n < cap(r.facts) { // forgetFacts, or who had the desk before, has cleared it
		r.facts = r.facts[:n+1]
	} else {
		r.facts = append(r.facts, fact{})
	}
	x := &r.facts[n]
	x.live, x.extra = true, &plainFact
	return x
}

// apply applies the fact that was added last, and forgets it if nobody is ever told of it.
func (r *run) apply() {
	x := &r.facts[len(r.facts)-1]
	r.mustFit(x)
	if r.silent() {
		*x = fact{}
		r.facts = r.facts[:len(r.facts)-1]
	}
}

func (r *run) mustFit(x *fact) {
	if err := r.m.apply(x); err != nil {
		x.misfit(err)
	}
}

// misfit is kept out of mustFit: see own.
//
//go:noinline
func (x *fact) misfit(err error) {
	panic(fmt.Sprintf("dispatcher: a fact of a live run does not fit: %s %s: %v", x.Kind, x.Path, err))
}
