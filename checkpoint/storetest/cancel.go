package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// A countdown is a context that is cancelled the n-th time that somebody looks at it.
type countdown struct {
	context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	left int
}

func newCountdown(t *trial, n int) *countdown {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &countdown{Context: ctx, cancel: cancel, left: n}
}

func (c *countdown) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.cancel()
	}
}

func (c *countdown) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *countdown) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// passed reports whether the context was not cancelled.
func (c *countdown) passed() bool { return c.Context.Err() == nil }

// lookMost is more often than a store looks at the context of one call.
const lookMost = 100

// Wherever in an Append its context ends, all entries are there or none: all if it returned nil,
// none if it returned an error, and nobody knows if that is ErrCommitUnknown; but a new lease
// fences what may still be under way.
func cancelledAnywhereIsWholeOrNot(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for n := 1; n < lookMost; n++ {
		ctx := newCountdown(t, n)
		next, err := s.Append(ctx, l, head, []checkpoint.Entry{done(n), done(n)})
		release(t, s, l)
		l = owned(t, s, "run")
		got := stat(t, s, "run").Head
		switch {
		case err == nil && got != next:
			t.Fatalf("cancelled at look %d: Append = head at %d, and the head is at %d", n, next.Seq, got.Seq)
		case err == nil || errors.Is(err, checkpoint.ErrCommitUnknown) && got.Seq == head.Seq+2:
		case got != head:
			t.Fatalf("cancelled at look %d: Append = %v, and the head has moved from %d to %d", n, err, head.Seq, got.Seq)
		case !errors.Is(err, context.Canceled) && !errors.Is(err, checkpoint.ErrCommitUnknown):
			t.Fatalf("cancelled at look %d: Append = %v, want context.Canceled or ErrCommitUnknown", n, err)
		}
		if entries := read(t, s, "run", 1, 0); len(entries) != int(got.Seq) {
			t.Fatalf("cancelled at look %d: there are %d entries, and the head is at %d", n, len(entries), got.Seq)
		}
		if head = add(t, s, l, got, done(n)); ctx.passed() {
			return
		}
	}
	t.Errorf("a context that is cancelled at look %d ended no append before", lookMost)
}
