package continuation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// noting is how long somebody who has the lease of a run may keep what came of its delivery from
// being noted, and how long that may take when the caller's context has ended.
const noting = 10 * time.Second

// note writes what came of a delivery behind whatever was added to the run since h was read, as
// long as it rests at the end that was told and nobody has brought that meanwhile, or suppressed
// it. It returns how often the delivery has failed, and says in n whether that was the last time.
func (r *Runtime) note(ctx context.Context, h *history, n *deliveryNote) (tries int, err error) {
	ctx, stop := outliving(ctx, noting) // what was brought was brought, whoever has ended ctx since
	defer stop()
	began := time.Now()
	for pause := time.Millisecond; err == nil; pause = min(2*pause, time.Second) {
		var wanted bool
		if tries, wanted = h.takes(n, r.options.Deliveries); !wanted {
			return tries, nil
		}
		switch err = r.write(ctx, h, *n); {
		case err == nil:
			return tries, nil
		case busy(err) && time.Since(began) < noting:
			err = r.await(ctx, h.info, pause)
		case dispatcher.Moved(err):
			err = nil
		}
		if err == nil {
			h, err = r.history(ctx, h.run)
		}
	}
	if gone(err) { // with all that could be noted of it
		return tries, nil
	}
	return tries, fmt.Errorf("continuation: what came of the follow-up %s is not noted: %w", n.Key, err)
}

// takes reports whether the log is to say what came of a delivery: of an end that is past there is
// nothing to say, nor of one that was brought or suppressed, and what has failed for good fails no
// further. It returns how often it has failed, with n, and says in n whether that was the last
// time.
func (h *history) takes(n *deliveryNote, most int) (tries int, wanted bool) {
	failed := n.Status == DeliveryFailed
	if n.Final = failed; h.end == nil || h.key() != n.Key {
		return 0, false
	}
	if tries = h.tries(); failed {
		tries++
	}
	if k := len(h.notes); k > 0 && (h.notes[k-1].Status != DeliveryFailed || h.notes[k-1].Final && failed) {
		return tries, false
	}
	n.Final = failed && tries >= most
	return tries, true
}

// suppress notes that a follow-up that is owed is not to be brought. Who only says something of the
// run, or has just brought it to its end, is waited for. If it turns out that somebody goes on with
// the run again nothing is noted: what was told is past when that has ended.
func (r *Runtime) suppress(ctx context.Context, run string, status DeliveryStatus) error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		h, err := r.history(ctx, run)
		if err != nil {
			return err
		}
		d := h.delivery()
		if d.Status != DeliveryPending && d.Status != DeliveryFailed || !h.over {
			return nil
		}
		switch err = r.write(ctx, h, deliveryNote{Status: status, Key: d.Key}); {
		case err == nil:
			return nil
		case dispatcher.Moved(err):
			continue
		case !busy(err) || time.Since(began) >= noting:
			return fmt.Errorf("continuation: the follow-up %s is not suppressed: %w", d.Key, err)
		}
		if err := r.await(ctx, h.info, pause); err != nil {
			return err
		}
	}
}

// write notes something about a delivery, if the run stands where h was read.
func (r *Runtime) write(ctx context.Context, h *history, n deliveryNote) error {
	return r.d.Note(ctx, h.run, deliveryName, n, dispatcher.From(checkpoint.Cursor{Run: h.run, Seq: h.info.Head.Seq}))
}

// busy reports whether somebody has the lease of a run.
func busy(err error) bool {
	return errors.Is(err, dispatcher.ErrBusy) || errors.Is(err, dispatcher.ErrStillRunning)
}

// gone reports whether there is no such run, or none any more.
func gone(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, checkpoint.ErrNotFound)
}

// outliving is a context that ends so long behind another one.
func outliving(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { // ends with inner at the latest
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-inner.Done():
		}
	})
	return inner, func() { stop(); cancel() }
}
