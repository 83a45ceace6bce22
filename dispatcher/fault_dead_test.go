package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A store that hangs from one of its calls on, whatever call that is, in whatever it is asked
// from then on: the call returns within the grace period after the end of its context, and
// when the store is well again the run goes on, with nothing durable run again.
func TestStoreThatHangsFromACallOn(t *testing.T) {
	for _, heeding := range []bool{false, true} {
		for _, grace := range []time.Duration{5 * time.Second, 400 * time.Millisecond} {
			t.Run(fmt.Sprintf("heeding=%t/grace=%v", heeding, grace), func(t *testing.T) {
				n := 1
				for ; !t.Failed(); n++ {
					more := false
					synctest.Test(t, func(t *testing.T) { more = hangFrom(t, n, heeding, grace) })
					if !more {
						break
					}
				}
				if n < 10 {
					t.Errorf("only %d calls were tried", n-1)
				}
			})
		}
	}
}

// hangFrom lets a store hang from call n on. It reports whether there was one.
func hangFrom(t *testing.T, n int, heeding bool, grace time.Duration) bool {
	var w witness
	var inner memory.Store
	var calls atomic.Int64
	free := make(chan struct{})
	store := &tampered{Store: &inner, before: hangsFrom(n, heeding, &calls, free)}
	g := line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, 10*time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	time.AfterFunc(500*time.Millisecond, func() { // has the posts read beside the node
		_ = inner.Post(context.Background(), run, checkpoint.Post{ID: "greeting", Kind: "greeting"})
	})
	end := time.Now().Add(time.Second)
	res, err := process(t, g, store, dispatcher.Options{Grace: grace}).Run(ctx, run, nil)
	if took := time.Since(end); took > grace {
		t.Errorf("call %d: the run returned %v after the end of its context", n, took)
	}
	if err == nil || res == nil || res.State == nil || res.Run != run {
		t.Errorf("call %d: the run returned %+v, %v", n, res, err)
	}
	hung := calls.Load() >= int64(n)
	close(free)
	lasts(time.Hour)
	w.took()
	var done []string
	if _, err := inner.Stat(t.Context(), run); err == nil {
		done = kinds(readLog(t, &inner), checkpoint.Done)
	}
	res, err = process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "a", "b", "c")
	for _, visit := range w.took() {
		if slices.Contains(done, "done "+visit) {
			t.Errorf("call %d: %s was durable and ran again", n, visit)
		}
	}
	return hung
}

// hangsFrom makes every call from the n-th on, of all methods, wait for free, or for the end
// of its context if it heeds that.
func hangsFrom(n int, heeding bool, calls *atomic.Int64, free <-chan struct{}) func(context.Context, call) error {
	return func(ctx context.Context, c call) error {
		if c.method == "Watch" || calls.Add(1) < int64(n) {
			return nil
		}
		if !heeding {
			<-free
			return nil
		}
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
