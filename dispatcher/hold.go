package dispatcher

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A hold keeps a lease that has an end, for as long as a call works under it, and knows when it is
// lost. From then on nothing is appended, nor is the lease given back: the run is whoever's has it.
// Every lease without an end has the nil hold.
type hold struct {
	lost atomic.Pointer[error]          // why the lease is lost
	end  func() (ended <-chan struct{}) // of keeping it
}

const doingRenew = "renewing the lease in the store"

// hold keeps a lease that has an end, for which the store was asked then. lose is told when it is
// lost, in another goroutine.
func (c *core) hold(ctx context.Context, l checkpoint.Lease, asked time.Time, lose context.CancelCauseFunc) *hold {
	h := new(hold)
	h.end = checkpoint.KeepFunc(ctx, c.store, l, asked, func(err error) {
		h.lost.CompareAndSwap(nil, &err)
		lose(err)
	})
	return h
}

// fenced returns why the lease is lost, nil if it is not.
func (h *hold) fenced() error {
	if h == nil {
		return nil
	}
	if err := h.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// refused takes notice of what the store says of an append.
func (h *hold) refused(err error) {
	if h != nil && errors.Is(err, checkpoint.ErrFenced) {
		lost := err // or each append would allocate it
		h.lost.CompareAndSwap(nil, &lost)
	}
}

// stop ends the keeping of the lease. It returns what is closed when that has ended, nil if there
// is nothing to wait for.
func (h *hold) stop() (ended <-chan struct{}) {
	if h == nil {
		return nil
	}
	return h.end()
}

// A moment is a lease that is had to say something of a run.
type moment struct {
	c      *core
	lease  checkpoint.Lease
	hold   *hold
	cancel context.CancelCauseFunc // nil if the lease has no end
	heeds  bool                    // what was posted, and looks again behind itself: see standing
}

// moment returns the lease of a run for who says something of it. The context is ctx, and is done
// when the lease is lost.
func (c *core) moment(ctx context.Context, l checkpoint.Lease, asked time.Time) (context.Context, moment) {
	if l.Until.IsZero() {
		return ctx, moment{c: c, lease: l}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, moment{c: c, lease: l, hold: c.hold(ctx, l, asked, cancel), cancel: cancel}
}

// giveBack gives the lease back within Grace, if it was not lost, and heeds what was posted
// meanwhile: unless the store has not answered in that time.
func (m moment) giveBack() {
	until := time.Now().Add(m.c.toLetGo())
	ended := m.hold.stop()
	held := m.hold.fenced() == nil
	if held {
		m.c.release(m.lease)
	}
	if m.cancel != nil {
		m.cancel(context.Canceled)
		late := time.NewTimer(time.Until(until))
		defer late.Stop()
		select {
		case <-ended:
		case <-late.C:
		}
	}
	if held && !m.heeds && time.Now().Before(until) {
		m.c.heed(m.lease.Run, nil)
	}
}

// why is err, or why the lease is lost, if it is that which has ended what was done under it: ctx
// is the caller's.
func (m moment) why(ctx context.Context, err error) error {
	if lost := m.hold.fenced(); lost != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return lost
	}
	return err
}
