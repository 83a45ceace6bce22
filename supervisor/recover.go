package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A Recovery is what became of the runs that had been left running. The ids are sorted.
type Recovery struct {
	Rested []string    // rest now: completed, interrupted, failed, cancelled or timed out
	Failed []*RunError // could not go on, and are there the next time
	Left   []string    // are at work still, wait for their turn, were withdrawn, or were left again by a Drain
	Busy   []string    // are live: this process or another one works on them
}

// Recover goes on with every run in the store that was left, and returns when all of them rest:
//
//   - Running, by a process that died or drained;
//   - Pending: opened and never begun, or rewound (dispatcher.Dispatcher.Rewind) and not gone on
//     with since;
//   - Interrupted, and answered since, if [Options].Answered says so.
//
// They wait for their turns like any others, with the label Options.Label as their key, and take at
// most half of the queue at once. Runs that rest otherwise are not touched. Nor are those that
// somebody has cancelled before their turn, unless they were submitted meanwhile. Recover may be
// called at any time and again.
//
// A run that can't go on is in [Recovery].Failed and stays as it is: its graph has changed, no
// runner knows it, its log is damaged, or its store fails. A run whose store fails at work stays
// Running, so call Recover again now and then. A run for which the store has no room waits for it,
// and so does Recover.
//
// Who answers a run, or notes, tags or edits something, has it for a moment, and Recover waits for
// that. One who takes longer, as an Edit may, keeps the run from going on.
//
// A node that ends its process, by os.Exit or for want of memory, does so again at each Recover,
// since an attempt that a crash has cut off is not counted. Do what may end the process in a
// dag.Effect with dag.DoubtFails: the visit then fails. Or cancel the run, which Recover then
// leaves.
//
// If ctx ends first, Recover returns its cause beside what is known. Runs that were queued are the
// supervisor's and go on. It returns the errors of listing runs as well, and ErrDraining if the
// supervisor drains before all of them are queued. Runs that Recover had not come to by then are in
// no list: they stand in the store as they were.
func (s *Supervisor) Recover(ctx context.Context) (Recovery, error) {
	if err := present(ctx, s); err != nil {
		return Recovery{}, err
	}
	select {
	case <-s.drain:
		return Recovery{}, ErrDraining
	default:
	}
	c := &recovery{s: s, most: max(s.options.Queue/2, 1)}
	err := c.all(ctx)
	for c.awaitAll(ctx); len(c.anew) > 0; c.awaitAll(ctx) {
		if e := c.again(ctx); err == nil {
			err = e
		}
	}
	if err == nil && len(c.Left) > 0 && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	for _, ids := range [][]string{c.Rested, c.Left, c.Busy} {
		slices.Sort(ids)
	}
	slices.SortFunc(c.Failed, func(a, b *RunError) int { return cmp.Compare(a.Run, b.Run) })
	return c.Recovery, err
}

// A recovery is a Recover at work.
type recovery struct {
	s       *Supervisor
	tickets []*ticket // that were queued and are not sorted, oldest first
	most    int       // of them may wait for their turns
	anew    []string  // runs of calls of Go that have not gone on with them
	Recovery
}

// all queues every run that was left.
func (c *recovery) all(ctx context.Context) error {
	f := checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusRunning, checkpoint.StatusPending}}
	if c.s.options.Answered {
		f.Status = append(f.Status, checkpoint.StatusInterrupted)
	}
	for info, err := range checkpoint.Runs(ctx, c.s.store, f) {
		switch {
		case err == nil:
			if err := c.one(ctx, info); err != nil {
				return err
			}
		case info.Run == "":
			return fmt.Errorf("supervisor: listing runs: %w", err)
		default:
			c.fail(info.Run, info.Graph, c.key(info), err)
		}
	}
	return nil
}

// one queues a run that is listed, unless it rests.
func (c *recovery) one(ctx context.Context, info checkpoint.Info) error {
	if info.Status.Resting() {
		goes, err := c.s.goesOn(ctx, &info)
		switch {
		case errors.Is(err, checkpoint.ErrNotFound): // it was deleted meanwhile
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.fail(info.Run, info.Graph, c.key(info), err)
			return nil
		case !goes:
			return nil
		}
	}
	return c.queue(ctx, info)
}

// queue queues a run, when there is room.
func (c *recovery) queue(ctx context.Context, info checkpoint.Info) error {
	if info.Owner != "" && !checkpoint.Amends(info.Owner) {
		c.Busy = append(c.Busy, info.Run)
		return nil
	}
	for {
		room := c.s.room()
		var t *ticket
		var err error = ErrQueueFull
		if !c.crowds() {
			t, err = c.s.resume(ctx, c.key(info), info, recovers, nil)
		}
		var refused *RunError
		switch {
		case err == nil:
			c.tickets = append(c.tickets, t)
			return nil
		case errors.As(err, &refused):
			c.fail(info.Run, info.Graph, c.key(info), refused.Err)
			return nil
		case !errors.Is(err, ErrQueueFull):
			c.Left = append(c.Left, info.Run)
			if ctx.Err() != nil && !errors.Is(err, ErrDraining) {
				return context.Cause(ctx) // of Recover, and not of this run
			}
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			c.Left = append(c.Left, info.Run)
			return context.Cause(ctx)
		}
	}
}

// unlessRested goes on with a run unless it is cancelled when it is its turn, and was not when it
// was submitted; one that nobody has submitted unless it rests. Somebody may cancel it between the
// look at it and the call, or when the call waits for the lease: so the call is for the run as it
// was seen, and else looks again.
func (s *Supervisor) unlessRested(
	ctx context.Context, r Runner, run string, how joining, all []dispatcher.RunOption,
) outcome {
	for {
		now, err := s.store.Stat(ctx, run)
		if err != nil {
			return outcomeOf(r.Continue(ctx, run, all...)) // which says what is wrong
		}
		resting := false
		if how == recovers {
			answered, _ := s.goesOn(ctx, &now) // else the call says what is wrong, or there is none
			resting = now.Status.Resting() && !answered
		}
		if resting && !s.submitted(run) || now.Status == checkpoint.StatusCancelled && s.stays(run) {
			if out, stands := restsAs(ctx, r, now); stands {
				return out
			}
			continue
		}
		if slices.ContainsFunc(all, func(o dispatcher.RunOption) bool { return o.Name() == "From" }) { // where who submitted it has seen it
			return outcomeOf(r.Continue(ctx, run, all...))
		}
		from := dispatcher.From(checkpoint.Cursor{Run: run, Seq: now.Head.Seq})
		out := outcomeOf(r.Continue(ctx, run, append(all[:len(all):len(all)], from)...))
		out.idle = resting || how == recovers && now.Status == checkpoint.StatusCompleted // and those who joined get its result
		if !dispatcher.Moved(out.err) {
			return out
		}
	}
}

// crowds reports whether as many runs wait as may. It sorts those that are over, whichever these
// are: one that takes long keeps no others from their turns.
func (c *recovery) crowds() bool {
	if len(c.tickets) < c.most {
		return false
	}
	c.tickets = slices.DeleteFunc(c.tickets, func(t *ticket) bool {
		select {
		case <-t.done:
			c.sort(t)
			return true
		default:
			return false
		}
	})
	return c.s.waiting(c.tickets) >= c.most
}

// awaitAll waits for all that were queued.
func (c *recovery) awaitAll(ctx context.Context) {
	for _, t := range c.tickets {
		if !c.await(ctx, t) {
			c.Left = append(c.Left, t.run)
		}
	}
	c.tickets = nil
}

// again queues those whose call of Go was another one's, and has not gone on with them.
func (c *recovery) again(ctx context.Context) error {
	runs := c.anew
	c.anew = nil
	for i, run := range runs {
		info, err := c.s.store.Stat(ctx, run)
		goes := err == nil && info.Status != checkpoint.StatusCompleted
		if goes && info.Status.Resting() {
			goes, err = c.s.goesOn(ctx, &info)
		}
		switch {
		case errors.Is(err, checkpoint.ErrNotFound):
		case err != nil && ctx.Err() != nil:
			c.Left = append(c.Left, runs[i:]...)
			return context.Cause(ctx)
		case err != nil:
			c.fail(run, info.Graph, c.key(info), err)
		case !goes:
			c.Rested = append(c.Rested, run)
		default:
			if err := c.queue(ctx, info); err != nil {
				c.Left = append(c.Left, runs[i+1:]...)
				return err
			}
		}
	}
	return nil
}

// await waits for a run and sorts it. It returns false if ctx ended first.
func (c *recovery) await(ctx context.Context, t *ticket) bool {
	select {
	case <-t.done:
	default:
		select {
		case <-t.done:
		case <-ctx.Done():
			return false
		}
	}
	c.sort(t)
	return true
}

// sort tells what became of a run that is over.
func (c *recovery) sort(t *ticket) {
	if t.refused() {
		c.anew = append(c.anew, t.run)
		return
	}
	switch t.out.fate() {
	case rests:
		c.Rested = append(c.Rested, t.run)
	case taken:
		c.Busy = append(c.Busy, t.run)
	case leaves:
		c.Left = append(c.Left, t.run)
	case fails:
		c.Failed = append(c.Failed, &RunError{Run: t.run, Graph: t.graph, Err: t.out.err})
	}
	c.s.recovered(t)
}

// refused reports whether t was a call of Go that was refused: it tells nothing of whether the run
// can go on.
func (t *ticket) refused() bool {
	f := t.out.fate()
	return t.alone && (f == fails || f == gone)
}

// recovered tells, once, that a run which is over was brought back, or why it could not go on. It
// returns when that was told.
func (s *Supervisor) recovered(t *ticket) {
	e := Event{Kind: Recovered, Run: t.run, Graph: t.graph, Key: t.key}
	f := t.out.fate()
	if t.refused() {
		return
	}
	if f == fails {
		e.Err = t.out.err
	}
	if f == fails || f == rests && !t.out.idle {
		t.recovered.Do(func() { s.tell(e) })
	}
}

// A fate is what an outcome is to a Recover.
type fate uint8

const (
	rests  fate = iota
	gone        // it was deleted
	taken       // somebody else is at work on it
	leaves      // it goes on another time
	fails       // it can't go on
)

func (o outcome) fate() fate {
	var rest *dispatcher.Rest
	switch err := o.err; {
	case o.rested():
		return rests
	case o.is(checkpoint.ErrNotFound):
		return gone
	case o.is(checkpoint.ErrBusy) && !amended(err):
		return taken
	case errors.As(err, &rest), errors.Is(err, ErrDraining), errors.Is(err, ErrWithdrawn):
		return leaves
	}
	return fails
}

// amended reports whether a run is busy with an amendment that takes long, and nobody is at work on
// it.
func amended(err error) bool {
	var held *checkpoint.BusyError
	return errors.As(err, &held) && checkpoint.Amends(held.Owner)
}

// key is whose turn a run is.
func (c *recovery) key(info checkpoint.Info) string {
	return cmp.Or(info.Labels[c.s.options.Label], info.Graph)
}

// fail reports a run that was not queued.
func (c *recovery) fail(run, graph, key string, err error) {
	c.Failed = append(c.Failed, &RunError{Run: run, Graph: graph, Err: err})
	c.s.tell(Event{Kind: Recovered, Run: run, Graph: graph, Key: key, Err: err})
}
