package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Keep keeps a lease for as long as something is done under it. A lease that has an end is renewed,
// in a goroutine, until stop is called; asked is when the Acquire that gave it was called. The
// context that is returned is ctx, but is done sooner if the lease is lost, with a cause that is
// ErrFenced: see [KeepFunc]. For a lease without an end it is ctx itself, and nothing is renewed.
//
// Call stop before the lease is given back. It waits for a renewal that is under way, for ten
// seconds if the store does not return when a context ends.
func Keep(ctx context.Context, s Store, l Lease, asked time.Time) (kept context.Context, stop func()) {
	if l.Until.IsZero() {
		return ctx, func() {}
	}
	kept, lose := context.WithCancelCause(ctx)
	end := KeepFunc(ctx, s, l, asked, lose)
	return kept, func() {
		ended := end()
		lose(context.Canceled)
		long := time.NewTimer(patience)
		defer long.Stop()
		select {
		case <-ended:
		case <-long.C:
		}
	}
}

// KeepFunc is [Keep] for a caller that ends by itself what is done under the lease. lost is called
// when the lease is lost, once and from another goroutine, with an error that is ErrFenced:
//
//   - at once if a Renew says so;
//   - otherwise shortly before the end of the lease, by the clock that does not jump, if no Renew
//     has succeeded by then. Shortly means a sixth of what the lease lasts, or as long as the store
//     took to give it, if that is longer, but never more than half of it. The error wraps that of
//     the last Renew. So the holder knows of the loss before others may have the lease.
//
// The lease is renewed when a third of its time is gone, and if that fails again and again, sooner
// each time, even when ctx is done.
//
// stop ends that and never blocks. It returns a channel that is closed when the goroutine has
// ended, nil if there was none; a store that does not return when a context ends keeps it waiting.
// When stop returns a call of lost may be under way, and none begins any more.
func KeepFunc(ctx context.Context, s Store, l Lease, asked time.Time, lost func(error)) (stop func() (ended <-chan struct{})) {
	if l.Until.IsZero() {
		return func() <-chan struct{} { return nil }
	}
	k := &keeper{store: s, lost: lost, ended: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.granted(l, asked)
	k.alarm = time.AfterFunc(time.Until(k.last), k.ring) // stopped where keep ends, and does not wait
	go k.keep(next)                                      // stop ends it, and the loss of the lease; who stops it is told when it has ended
	return k.stop
}

// A keeper renews a lease.
type keeper struct {
	store  Store
	lost   func(error)
	ctx    context.Context // of renewals
	cancel context.CancelFunc
	ended  chan struct{} // closed when keep has ended

	mu    sync.Mutex // held for moments, never during a call of the store
	over  bool       // lost, or stopped
	alarm *time.Timer
	err   error // of the last renewal

	// Written by keep alone.
	lease Lease
	term  time.Duration // of the lease, when it was given or renewed
	last  time.Time     // when it is lost if it was not renewed by then
}

// granted takes notice of a lease that the store was asked for then, and returns when it is to be
// renewed. mu is held.
func (k *keeper) granted(l Lease, asked time.Time) (renew time.Time) {
	now := time.Now()
	// Until may be of a clock that jumps. What is left of it is read from that on both sides of the
	// call, the less counts, and from here on it is counted by the one that does not.
	end := asked.Add(l.Until.Sub(asked))
	if by := now.Add(l.Until.Sub(now)); by.Before(end) {
		end = by
	}
	k.lease, k.term = l, end.Sub(asked)
	margin := min(max(k.term/6, now.Sub(asked)), k.term/2)
	k.last = end.Add(-margin)
	return asked.Add(k.term / 3)
}

// keep renews the lease, at next for the first time.
func (k *keeper) keep(next time.Time) {
	defer close(k.ended)
	defer k.cancel()
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for goesOn := true; goesOn; timer.Reset(time.Until(next)) {
		select {
		case <-k.ctx.Done():
			return
		case <-timer.C:
		}
		asked := time.Now()
		// Half of the time that is left, so that one renewal that hangs is not the last one.
		ctx, cancel := context.WithDeadline(k.ctx, asked.Add(k.last.Sub(asked)/2))
		l, err := k.store.Renew(ctx, k.lease)
		cancel()
		if errors.Is(err, ErrFenced) {
			k.lose(err)
			return
		}
		next, goesOn = k.answered(l, asked, err)
	}
}

// answered takes notice of what a renewal has come to that is not fenced. It returns when the next
// one is due, if there is to be one.
func (k *keeper) answered(l Lease, asked time.Time, err error) (next time.Time, goesOn bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err = err; err != nil {
		now := time.Now()
		return now.Add(max(k.last.Sub(now)/3, k.term/32)), !k.over
	}
	if k.over || l.Until.IsZero() { // it has no end any more
		k.alarm.Stop()
		return next, false
	}
	next = k.granted(l, asked)
	k.alarm.Reset(time.Until(k.last))
	return next, true
}

// ring is called when the lease can't be kept any longer, whatever the renewal comes to that is
// under way.
func (k *keeper) ring() {
	k.mu.Lock()
	run, epoch, err := k.lease.Run, k.lease.Epoch, k.err
	renewed := time.Now().Before(k.last) // at the last moment: the alarm is set again
	k.mu.Unlock()
	if renewed {
		return
	}
	if err == nil {
		err = errors.New("the store has not answered")
	}
	k.lose(fmt.Errorf("%w: run %q, epoch %d: it was not renewed in time: %w", ErrFenced, run, epoch, err))
}

// lose says that the lease is lost, unless it is over.
func (k *keeper) lose(err error) {
	k.mu.Lock()
	over := k.over
	k.over = true
	k.alarm.Stop()
	k.mu.Unlock()
	if !over {
		k.cancel()
		k.lost(err)
	}
}

func (k *keeper) stop() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.alarm.Stop()
	k.cancel()
	return k.ended
}
