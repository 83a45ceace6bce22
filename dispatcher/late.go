package dispatcher

import (
	"context"
	"sync"
	"time"
)

// A lateContext is the context of a run that nothing but its parent and the end of the call
// cancels. To be its parent's child, with a channel of its own, costs more than a whole short run
// does, and most functions never ask for it: it becomes one when somebody does.
type lateContext struct {
	context.Context // the parent

	mu     sync.Mutex
	child  context.Context // nil as long as nobody has asked
	cancel context.CancelCauseFunc
	cause  error // why it ended, if that was neither with the parent nor with child
}

// Done, Value and Err are those of a child of the parent. Value is how package context finds out
// whose child a context is, and why it has ended.
func (c *lateContext) Done() <-chan struct{} { return c.real().Done() }
func (c *lateContext) Value(key any) any     { return c.real().Value(key) }

// Attended says to a store that the call of a run gives up its appends itself: see
// [checkpoint.Attended].
func (*lateContext) Attended() {}

func (c *lateContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.child != nil:
		return c.child.Err()
	case c.cause != nil:
		return context.Canceled
	}
	return c.Context.Err()
}

func (c *lateContext) real() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.child != nil:
	case c.cause != nil: // whatever becomes of the parent later on
		c.child, c.cancel = context.WithCancelCause(context.WithoutCancel(c.Context))
		c.cancel(c.cause)
	default:
		c.child, c.cancel = context.WithCancelCause(c.Context)
	}
	return c.child
}

// end cancels it, unless it has ended.
func (c *lateContext) end(cause error) {
	if cancel := c.ended(cause); cancel != nil {
		cancel(cause) // without the mutex: a parent of the user's own making may look at c
	}
}

// ended remembers why c has ended, or returns how to cancel its child.
func (c *lateContext) ended(cause error) context.CancelCauseFunc {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.child == nil && c.cause == nil && c.Context.Err() == nil {
		c.cause = cause
	}
	return c.cancel
}

// late reports whether nothing but the caller cancels the runs of c, and nobody has to be waited
// for but nodes: without a store and without user code beside them.
func (c *core) late() bool {
	return c.store == nil && c.opts.Observe == nil && c.opts.Hooks.OnStart == nil && c.opts.Hooks.OnEnd == nil &&
		len(c.interceptors) == 0
}

// A graceContext ends at an instant, or with the call. The timer of one of package context costs
// more than what it is for, which is done at once with most stores: it is made when somebody waits.
type graceContext struct {
	until time.Time

	mu     sync.Mutex
	child  context.Context // nil as long as nobody has asked
	cancel context.CancelFunc
	err    error // why it has ended, as far as is known without child
}

// Deadline, Done, Value and Err are those of a context that ends then.
func (c *graceContext) Deadline() (time.Time, bool) { return c.until, true }
func (c *graceContext) Done() <-chan struct{}       { return c.real().Done() }
func (c *graceContext) Value(key any) any           { return c.real().Value(key) }

func (c *graceContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.child != nil {
		return c.child.Err()
	}
	c.look()
	return c.err
}

// look sees whether the instant has come. The mutex is held.
func (c *graceContext) look() {
	if c.err == nil && !time.Now().Before(c.until) {
		c.err = context.DeadlineExceeded
	}
}

func (c *graceContext) real() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.child != nil:
	case c.err == context.Canceled: // whatever the time is by now
		c.child, c.cancel = context.WithCancel(context.Background())
		c.cancel()
	default:
		c.child, c.cancel = context.WithDeadline(context.Background(), c.until)
	}
	return c.child
}

// end cancels it, also for whoever asks behind that.
func (c *graceContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
		return
	}
	if c.look(); c.err == nil {
		c.err = context.Canceled
	}
}
