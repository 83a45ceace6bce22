package supervisor

import (
	"context"
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
	wrote := t.out.rested() && !t.out.idle && !t.out.silent
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

// measure returns the head of a run that is about to be called for, so that one can tell whether
// the call has written anything: as long as nobody has since the store had no room. Else, and of a
// run that is not there, it returns 0.
func (s *Supervisor) measure(ctx context.Context, run string) uint64 {
	s.mu.Lock()
	matters := s.hold.wait > 0 || s.waited > 0
	s.mu.Unlock()
	if !matters {
		return 0
	}
	info, err := s.store.Stat(ctx, run)
	if err != nil {
		return 0
	}
	return info.Head.Seq
}

// moot reports whether there was nothing to write: the run rested already, or needed nothing to,
// exists, is somebody's, or is not where the call wants it, since others have moved it on or
// deleted it.
func (o outcome) moot() bool {
	return o.idle || o.silent || slices.ContainsFunc(refusals, o.is)
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
	case full && t.out.stands != unknown, t.out.rested(), t.out.is(checkpoint.ErrNotFound):
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
