package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// Now, as [Listen.Since], asks only for what comes from now on.
const Now = ^uint64(0)

// Listen says which events of a run a reader wants. The zero Listen asks for all events of the log
// from the first one on.
type Listen struct {
	// Since is the number of the last entry that the reader has seen: it gets the entries behind
	// it. Zero means all. If the run was trimmed, zero has a Stream tell all that is kept. Events
	// leaves nothing out unsaid: it returns a *checkpoint.TrimmedError, and the least Since that it
	// takes then is one less than the error's First.
	Since uint64
	// Tail goes on at the end of the log with what becomes true from then on, live notices
	// included. False ends there. A Stream goes on until its call returns, whatever Tail says.
	Tail bool
	// Only selects channels. Zero means all. A Lagged event is never left out. Bits that are no
	// channel are an *OptionError.
	Only Channel
	// States adds the state to each SuperstepEnded of the run's own frame: to a Stream as
	// Item.State, to Events as JSON. The reader folds the log for it. False means none.
	States bool
	// Deltas adds what was written to each VisitDone and StateEdited. False means none.
	Deltas bool
}

func (l *Listen) wants(k EventKind) bool {
	return l.Only == 0 || l.Only&k.Channel() != 0 || k == Lagged
}

// check refuses what no event could be on.
func (l *Listen) check() error {
	if unknown := l.Only &^ (Control | Progress | Monitor); unknown != 0 {
		return &OptionError{"Listen.Only", fmt.Sprintf("has %#x, which is no channel: there are Control, Progress and Monitor", uint8(unknown))}
	}
	return nil
}

// events is Events.
func (c *core) events(ctx context.Context, id string, l Listen) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.exists(ctx, id); err != nil {
			if cause := causedBy(ctx, err); cause != err {
				err = c.refuse(id, cause)
			}
			yield(Event{}, err)
			return
		}
		if err := l.check(); err != nil {
			yield(Event{}, err)
			return
		}
		rd := c.newReader(id, l, func(t *telling) bool {
			if t.state == nil {
				return yield(t.Event, nil)
			}
			var err error
			if t.State, err = json.Marshal(t.state); err != nil {
				yield(Event{}, c.refuse(id, fmt.Errorf("the state at entry %d: %w", t.Seq, err)))
				return false
			}
			return yield(t.Event, nil)
		})
		if l.Tail {
			defer rd.attach()()
		}
		err := rd.begin(ctx)
		if err == nil {
			err = rd.read(ctx, nil)
		}
		if err != nil && err != errLeft {
			yield(Event{}, c.refuse(id, causedBy(ctx, listenFrom(err))))
		}
	}
}

// causedBy is an error with which something has ended, or that of ctx with its cause, if that was
// why.
func causedBy(ctx context.Context, err error) error {
	if ctx == nil || ctx.Err() == nil {
		return err
	}
	cause := sound(context.Cause(ctx))
	if cause == ctx.Err() || !errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
		return err
	}
	return endOf(ctx)
}

// endOf is the error of a context that is done, with its cause if that is another one.
func endOf(ctx context.Context) error {
	cause := sound(context.Cause(ctx))
	if cause == ctx.Err() {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}

// listenFrom adds to the error of a reader what to give as Since in a run that was trimmed: the
// number of the last entry that is gone.
func listenFrom(err error) error {
	var t *checkpoint.TrimmedError
	if !errors.As(err, &t) {
		return err
	}
	return fmt.Errorf("%w, with a Since of %d", err, t.First-1)
}
