package dispatcher_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// leavingText is an error whose text ends the goroutine that asks for it the n-th time.
type leavingText struct {
	asked *int
	n     int
}

func (e leavingText) Error() string {
	if *e.asked++; *e.asked == e.n {
		runtime.Goexit()
	}
	return "enough"
}

// A cause whose text ends its goroutine, whichever time it is asked, leaves no run that nobody can
// go on with.
func TestCauseWhoseTextEndsItsGoroutine(t *testing.T) {
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { leavesByItsText(t, n) }) })
	}
}

func leavesByItsText(t *testing.T, n int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	asked, calls := 0, 0
	b := dag.New[Tale]("tale")
	dag.Step(b, "a", func(c context.Context, _ *Tale) error {
		if calls++; calls > 1 {
			return nil
		}
		cancel(leavingText{&asked, n})
		return c.Err()
	})
	o := dispatcher.Options{Observe: func(dispatcher.Event) {}}
	o.Hooks.OnEnd = func(context.Context, dispatcher.End) error { return nil }
	d := process(t, frozen(t, b), &memory.Store{}, o)
	returned, over := false, make(chan struct{})
	go func() {
		defer close(over)
		_, _ = d.Run(ctx, run, nil)
		returned = true
	}()
	if <-over; !returned {
		t.Error("the caller's goroutine was ended")
	}
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
}
