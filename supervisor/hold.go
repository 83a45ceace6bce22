package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// How long a hold waits before one run tries the store, at first and at most.
const (
	firstHold   = time.Second
	longestHold = 30 * time.Second
)

// mostLone is how often a run that comes no further is put back though others have found room
// meanwhile: the store has none for it alone, as for a large value, and each of its tries keeps the
// others from beginning.
const mostLone = 3

// A hold keeps runs from beginning while the store has no room. It has no goroutine: a timer has
// one run try the store, or ends the hold, and a Drain stops it. The zero hold keeps nobody.
//
// Invariant: tries is nil if wait is zero.
type hold struct {
	wait  time.Duration // before the next run tries; zero means that there is no hold
	timer *time.Timer
	round int     // of the timer: one that fires late finds another
	tries *ticket // began in the hold, and is at work
}

// full reports whether the store had no room for what a call had to write. A run that rests was
// told so by a node.
func (o outcome) full() bool {
	var rest *dispatcher.Rest
	return errors.Is(o.err, checkpoint.ErrFull) && !errors.As(o.err, &rest)
}

// A standing is what the store has of a run for which it had no room.
type standing uint8

const (
	unknown   standing = iota
	unopened           // nothing: the call has changed nothing
	atRest             // it rests
	running            // it was left running, or pending
	completed          // it is: Recover has nothing to go on with
)

// stands tells the head of the run as well.
func (s *Supervisor) stands(ctx context.Context, run string) (standing, uint64) {
	switch info, err := s.store.Stat(ctx, run); {
	case errors.Is(err, checkpoint.ErrNotFound):
		return unopened, 0
	case err != nil:
		return unknown, 0
	case info.Status.Resting():
		return atRest, info.Head.Seq
	case info.Status == checkpoint.StatusCompleted:
		return completed, info.Head.Seq
	default:
		return running, info.Head.Seq
	}
}

// further reports whether a run has come further since it was held: each call says anew that the
// run goes on, and perhaps that an effect begins. What can't be read, or was trimmed, tells
// nothing.
func (s *Supervisor) further(ctx context.Context, run string, held, now outcome) bool {
	if held.err == nil || held.stands == unknown || now.head <= held.head {
		return false
	}
	for e := range s.store.Read(ctx, run, held.head+1, now.head) {
		switch e.Kind {
		case checkpoint.Done, checkpoint.EffectEnded, checkpoint.Superstep:
			return true
		}
	}
	return false
}

// fitting are the options of a Continue of a run whose head was at head when it was submitted. One
// that is made again since the store had no room, and has brought the run on before, goes on from
// there as Recover does: no From leads there, and what was to Expire may have.
func (s *Supervisor) fitting(run string, head uint64, options []dispatcher.RunOption) []dispatcher.RunOption {
	s.mu.Lock()
	held := s.tickets[run].held
	s.mu.Unlock()
	if held.stands != running && held.stands != completed || held.head == head {
		return options
	}
	return slices.DeleteFunc(slices.Clone(options), func(o dispatcher.RunOption) bool {
		return o.Name() == "From" || o.Name() == "Expire"
	})
}

// again reports whether the call for a run is made once more when the store has room: one that goes
// on with a run, as Recover does, and any other if it has certainly changed nothing.
func (t *ticket) again() bool {
	if !t.out.full() || t.out.abandoned() {
		return false
	}
	return !t.alone || t.out.stands == unopened && !errors.Is(t.out.err, checkpoint.ErrCommitUnknown)
}

// restsMeanwhile is the outcome of a run that was left running when it was put back, and that
// somebody has cancelled since, say, or deleted: it stays so, as for Recover, unless it was
// submitted meanwhile; a cancelled one unless that was to go on with it all the same.
func (s *Supervisor) restsMeanwhile(ctx context.Context, t *ticket) (outcome, bool) {
	if t.held.stands != running {
		return outcome{}, false
	}
	now, err := s.store.Stat(ctx, t.run)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && !s.submitted(t.run):
		return outcome{err: &passedOn{err}}, true
	case err != nil, !now.Status.Resting():
		return outcome{}, false
	}
	if s.submitted(t.run) && (now.Status != checkpoint.StatusCancelled || !s.stays(t.run)) {
		return outcome{}, false
	}
	return restsAs(t.run, now.Status), true
}

// putBack puts t at the head of its key if its call is to be made again, and begins the hold; or
// behind the others of its key if it was the one that tried the store, so that another one does
// next. It reports whether it has: a supervisor that drains begins nothing any more.
func (s *Supervisor) putBack(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.out.further:
		t.lone = 0
	case t.held.err != nil && t.rested != s.rested:
		t.lone++
	}
	t.rested = s.rested
	if s.ending != nil || !t.again() || t.lone > mostLone {
		t.over = true
		return false
	}
	s.leaves(t)
	if t.out.stands == running { // else who has submitted a run at rest wants it gone on with
		t.submitted, t.revives = false, false
	}
	t.held, t.out, t.began = t.out, outcome{}, false
	t.came, t.told = time.Now(), make(chan struct{})
	if s.hold.tries == t {
		s.queue.push(t)
	} else {
		s.queue.unpop(t)
	}
	s.noRoom(t)
	return true
}

// noRoom begins the hold, and has it wait twice as long if t is the run that tried the store, or if
// nobody has come to rest since the last one: what runs do before they find no room may take longer
// than the hold, which has ended then. s.mu is held.
func (s *Supervisor) noRoom(t *ticket) {
	h := &s.hold
	switch {
	case h.wait == 0:
		h.wait = min(max(firstHold, 2*s.waited), longestHold)
	case h.tries == t:
		h.wait = min(2*h.wait, longestHold)
	default: // it had begun before
		return
	}
	h.tries, s.waited = nil, h.wait
	s.awaitRoom()
}

// awaitRoom sets the timer of the hold. s.mu is held.
func (s *Supervisor) awaitRoom() {
	h := &s.hold
	if h.timer != nil {
		h.timer.Stop()
	}
	h.round++
	round := h.round
	// The timer's goroutine begins one run at most, whose own goes on; a Drain stops it, and it
	// ends of itself behind that.
	h.timer = time.AfterFunc(h.wait, func() { s.begin(s.tryStore(round)) })
}

// tryStore has one run begin, however long those that were at work before take. It ends the hold if
// none waits, or if the last one to try is at work still: the store has taken its opening.
func (s *Supervisor) tryStore(round int) []*ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.hold
	switch {
	case h.round != round:
		return nil
	case h.tries != nil || s.queue.size == 0:
		s.lift()
		return s.beginNext()
	}
	h.tries = s.next()
	s.awaitRoom()
	if h.tries == nil { // no place is free, or none for the keys that wait
		return nil
	}
	return []*ticket{h.tries}
}

// learn begins the hold, or ends it if t has tried the store and rests. If it had nothing to write
// that tells nothing of room: the next one tries at once, and learn returns it, if there is one.
// With another error it waits for its turn, since that may be the store's. s.mu is held.
func (s *Supervisor) learn(t *ticket) *ticket {
	s.mark(t)
	if t.out.full() {
		s.noRoom(t)
		return nil
	}
	wrote := t.out.rested() && !t.out.idle
	if wrote {
		s.rested++
		s.waited = 0
	}
	if s.hold.tries != t {
		return nil
	}
	s.hold.tries = nil
	if wrote {
		s.lift()
		return nil
	}
	if !t.out.moot() {
		return nil
	}
	if s.hold.tries = s.next(); s.hold.tries != nil {
		s.awaitRoom()
	}
	return s.hold.tries
}

// moot reports whether there was nothing to write: the run rested already, exists, is somebody's,
// or is not where the call wants it, since others have moved it on or deleted it.
func (o outcome) moot() bool {
	return o.idle || slices.ContainsFunc(refusals, func(err error) bool { return errors.Is(o.err, err) })
}

// Errors of calls that have written nothing, and not for want of room.
var refusals = []error{
	checkpoint.ErrExists, checkpoint.ErrBusy, dispatcher.ErrStillRunning, checkpoint.ErrNotFound,
	dispatcher.ErrStaleCursor, checkpoint.ErrCursor, dispatcher.ErrCompleted, dispatcher.ErrNotCompleted,
	dispatcher.ErrNotAwaited,
}

// mark notes whether a run whose work is over was left running since the store had no room. Of one
// that was, a call that was refused, say, tells nothing. s.mu is held.
func (s *Supervisor) mark(t *ticket) {
	full := t.out.full()
	switch {
	case full && t.out.stands == running && !t.out.abandoned():
		s.full[t.run] = struct{}{}
	case full && t.out.stands != unknown, t.out.rested(), errors.Is(t.out.err, checkpoint.ErrNotFound):
		delete(s.full, t.run)
	}
}

// lift ends the hold. s.mu is held.
func (s *Supervisor) lift() {
	if s.hold.timer != nil {
		s.hold.timer.Stop()
	}
	s.hold = hold{round: s.hold.round + 1}
}
