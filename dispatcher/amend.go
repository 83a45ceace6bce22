package dispatcher

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pawlgo/pawl/checkpoint"
)

// amend changes a run that nobody is at work on, whether it rests, is completed or was left
// behind: it takes the lease for a moment, reads the log, asks entries what is to be said,
// and says it in one append. Nothing to say is nothing appended. ErrBusy means that the run
// is live, ErrStillRunning that a node or store call which this process abandoned holds it still.
//
// What is returned are entries and not facts, so that they reach m by the one way by which
// they will reach every machine after it: what a replay could not read is never appended.
// The error of entries is returned as it is; whatever fails, nothing has changed, unless it
// is ErrCommitUnknown, or more was drained than can share an append: what was drained stays.
func (c *core) amend(
	ctx context.Context, id string, entries func(*machine, checkpoint.Head) ([]checkpoint.Entry, error),
) error {
	return c.amending(ctx, id, func(a *amendment) error {
		said, err := entries(a.m, a.head)
		for i := 0; i < len(said) && err == nil; i++ {
			err = a.say(ctx, id, said[i])
		}
		return err
	})
}

// A standing is where a run stood when somebody has looked. Its machine is the caller's.
type standing struct {
	m    *machine
	head checkpoint.Head
	// heeds: what is to be said are the cancels that were posted. Else who cancels the run
	// meanwhile is heeded behind it.
	heeds bool
	// hurries: who finds the run taken posts instead, and does not wait for the lease.
	hurries bool
}

// amending is amend for who wants to see where each entry leads before the next one, or
// before all of them are appended.
func (c *core) amending(ctx context.Context, id string, f func(*amendment) error) error {
	return c.amendingFrom(ctx, id, standing{}, f)
}

// amendingFrom is amending for who has just looked where the run stands: that is not read again. If
// it does not stand there any more the error is ErrConflict, and nothing has changed. The zero
// standing says that nobody has looked.
func (c *core) amendingFrom(ctx context.Context, id string, there standing, f func(*amendment) error) error {
	if !there.heeds { // else the lease alone decides: what was abandoned may not hold it, and who does heeds them
		if err := c.stillRunning(id); err != nil {
			return err
		}
	}
	looked := there.m != nil
	if !looked {
		if _, err := c.store.Stat(ctx, id); err != nil {
			return err // a lease could be had of a run that does not exist
		}
	}
	acquire := c.acquire
	if there.hurries {
		acquire = c.acquireNow
	}
	lease, asked, err := acquire(ctx, id, c.amender)
	if err != nil {
		return err
	}
	held, had := c.moment(ctx, lease, asked)
	had.heeds = there.heeds
	defer had.giveBack()
	if !looked {
		if there.m, there.head, err = c.machine(held, id); err != nil {
			return had.why(ctx, err)
		}
	}
	a := &amendment{c: c, lease: lease, hold: had.hold, m: there.m, head: there.head, desk: newDesk()}
	if !there.heeds { // else the run has told its observer how it rested, and that call is over
		a.observed()
	}
	if err := f(a); err != nil || len(a.lines) == 0 {
		return err
	}
	if err = a.append(ctx); err == nil {
		c.keep(id, a.head, a.m, a.m.read+a.size)
		a.desk.leave()
	}
	return err
}

// An amendment is what is to be said of a run, and where that leads.
type amendment struct {
	c     *core
	lease checkpoint.Lease
	hold  *hold    // of it
	m     *machine // the run as it is when all that was said so far has been appended
	head  checkpoint.Head
	size  int                     // of what was said
	told  *about                  // what the next event tells; nil if nobody is told
	code  *atomic.Pointer[string] // of the call that waits for it, which names what hangs; nil if none does
	// observing is told of it while the observer is told; nil if nobody is to know.
	observing *atomic.Pointer[string]
	*desk
}

// say adds an entry, which m has heard then.
func (a *amendment) say(ctx context.Context, id string, e checkpoint.Entry) error {
	a.lines = append(a.lines, e)
	e.Seq = a.head.Seq + uint64(len(a.lines))
	a.size += sizeOf(&e)
	a.taken = 1
	return a.c.replay(ctx, a.m, id, &e, &a.extras[0], nil)
}

// append makes durable what was said since the last append.
func (a *amendment) append(ctx context.Context) error {
	if err := a.hold.fenced(); err != nil {
		return err
	}
	if a.code != nil {
		a.code.Store(&doingAnAppend)
	}
	head, err := a.c.store.Append(ctx, a.lease, a.head, a.lines)
	a.hold.refused(err)
	if a.code != nil {
		a.code.Store(nil)
	}
	a.c.hub.grown(a.lease.Run)
	if err == nil {
		said, before := a.lines, a.head.Seq
		a.head, a.lines = head, a.lines[:0]
		a.tell(said, before)
	}
	return err
}

// observed has what is said from here on told to the observer.
func (a *amendment) observed() {
	if a.c.opts.Observe != nil {
		a.told = &about{c: a.c, run: a.lease.Run, graph: a.m.plan.Name}
		a.m.about(a.told)
	}
}

// tell tells the observer of entries that are durable now, behind entry before. The lease is held
// still, so nobody who goes on with the run has told of a later one. Of a cancel it tells nothing:
// RunRested is the end of a call that was at work on the run, and none was.
func (a *amendment) tell(said []checkpoint.Entry, before uint64) {
	if a.told == nil {
		return
	}
	if a.observing != nil { // whoever has set it takes it back, too: the observer may end the goroutine
		a.observing.Store(&doingAnObserve)
	}
	for i := range said {
		line := said[i] // which the event keeps
		line.Seq = before + 1 + uint64(i)
		a.told = a.told.after(&line)
		if e := a.told.tell(&line); e.Kind != RunRested {
			a.c.observe(e)
		}
	}
	if a.observing != nil {
		a.observing.Store(nil)
	}
}

// drain says what drains posts, and appends it but for the last of what may share an append.
func (a *amendment) drain(ctx context.Context, lines []checkpoint.Entry) error {
	var shared portion
	for len(lines) > 0 {
		n, bytes := firstPost(lines)
		if !shared.fits(bytes) {
			if err := a.append(ctx); err != nil {
				return err
			}
			shared = portion{}
		}
		for _, e := range lines[:n] {
			if err := a.say(ctx, a.lease.Run, e); err != nil {
				return err
			}
		}
		shared.add(bytes)
		lines = lines[n:]
	}
	return nil
}

// busy reports whether an amendment could not be made because somebody is at work on the run.
func busy(err error) bool {
	return errors.Is(err, checkpoint.ErrBusy) || errors.Is(err, ErrStillRunning)
}
