package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// mostLone is how often a run that comes no further is put back though others have found room
// meanwhile: the store has none for it alone, as for a large value, and each of its tries keeps the
// others from beginning.
const mostLone = 3

// A setback is what is known of a run that waits, or is at work, once more since the store had no
// room for it. The zero setback is of one that was never refused.
//
// Invariant: held is the outcome that nobody was told of, since the run was put back with it: its
// err is nil exactly if the run was not.
type setback struct {
	held   outcome // of the call before
	rested uint64  // of the supervisor then
	lone   int     // how often others had found room between two refusals, since the run came further
}

// bears counts one more refusal, and reports whether the run may be put back behind it.
func (b *setback) bears(out outcome, rested uint64) bool {
	switch {
	case out.further:
		b.lone = 0
	case b.held.err != nil && b.rested != rested:
		b.lone++
	}
	b.rested = rested
	return b.lone <= mostLone
}

// left reports whether the store has something of a run that was put back, for a Recover to go on
// with.
func (b *setback) left() bool { return b.held.err != nil && b.held.stands != unopened }

// putBack puts t at the head of its key if its call is to be made again, and begins the hold; or
// behind the others of its key if it was the one that tried the store, so that another one does
// next. It reports whether it has: a supervisor that drains begins nothing any more.
//
// Invariant: a ticket that is put back is as one that was just queued, but for its setback, and for
// those who have joined it, who stay.
func (s *Supervisor) putBack(t *ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil || !t.repeats() || !t.bears(t.out, s.rested) {
		return false
	}
	s.leaves(t)
	if t.out.stands == running { // else who has submitted a run at rest wants it gone on with
		t.claim.renew()
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

// putsBack tells of a ticket that is in the queue again, and begins when the store has room.
func (s *Supervisor) putsBack(t *ticket) {
	told := t.told
	defer close(told) // whatever becomes of this goroutine in an observer
	s.tell(Event{Kind: PutBack, Run: t.run, Graph: t.graph, Key: t.key, Err: t.held.err})
}

// repeats reports whether the call for a run is made once more when the store has room: one that
// goes on with a run, as Recover does, and any other if it has certainly changed nothing.
func (t *ticket) repeats() bool {
	if !t.out.full() || t.out.abandoned() {
		return false
	}
	return !t.alone || t.out.stands == unopened && !errors.Is(t.out.err, checkpoint.ErrCommitUnknown)
}

// restsMeanwhile is the outcome of a run that was left running when it was put back, and that
// somebody has cancelled since, say, or deleted: it stays so, as for Recover, unless it was
// submitted meanwhile; a cancelled one unless that was to go on with it all the same.
func (s *Supervisor) restsMeanwhile(ctx context.Context, r Runner, run string) (outcome, bool) {
	for {
		now, err := s.store.Stat(ctx, run)
		switch {
		case errors.Is(err, checkpoint.ErrNotFound) && !s.submitted(run):
			return outcome{err: &passedOn{err}}, true
		case err != nil, !now.Status.Resting():
			return outcome{}, false
		}
		if s.submitted(run) && (now.Status != checkpoint.StatusCancelled || !s.stays(run)) {
			return outcome{}, false
		}
		if out, stands := restsAs(ctx, r, now); stands {
			return out, true
		}
	}
}

// fitting are the options of a Continue of a run whose head was at head when it was submitted. One
// that has brought the run on since, and is made again since the store had no room, goes on from
// there as Recover does: no From leads there, and what was to Expire may have. So no From leads to
// where a call has left the run that it joined at work.
func (s *Supervisor) fitting(run string, head uint64, options []dispatcher.RunOption) []dispatcher.RunOption {
	s.mu.Lock()
	t := s.tickets[run]
	held, behind := t.held, t.sequel.behind
	s.mu.Unlock()
	again := (held.stands == running || held.stands == completed) && held.head != head
	if !again && behind <= head {
		return options
	}
	return slices.DeleteFunc(slices.Clone(options), func(o dispatcher.RunOption) bool {
		return o.Name() == "From" || o.Name() == "Expire" && again
	})
}

// survey adds to the outcome of a call that found no room what the store has of the run.
func (s *Supervisor) survey(ctx context.Context, t *ticket, out *outcome) {
	ctx = context.WithoutCancel(ctx) // a Drain may have ended the call
	out.stands, out.head = s.stands(ctx, t.run)
	out.further = s.further(ctx, t.run, t.held, *out)
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
