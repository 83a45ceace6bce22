package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Promise P6 over turns: whatever call of the store hangs from some moment on, a Turn behind
// posted input returns within the grace period, never as if its input had been taken, and
// when the store is well again every input is heard once.
func TestCallsTurnOverAStoreThatHangs(t *testing.T) {
	const grace = 400 * time.Millisecond
	for _, heeding := range []bool{false, true} {
		n := 1
		for more := true; more && !t.Failed(); n++ {
			synctest.Test(t, func(t *testing.T) { more = callsHang(t, n, heeding, grace) })
		}
		if n < 20 {
			t.Errorf("only %d calls were tried", n-1)
		}
	}
}

// callsHang lets a store hang from call n of a Turn on. It reports whether there was one.
func callsHang(t *testing.T, n int, heeding bool, grace time.Duration) bool {
	var inner memory.Store
	var calls atomic.Int64
	free := make(chan struct{})
	store := &tampered{Store: &inner, before: hangsFrom(n, heeding, &calls, free)}
	slow := true
	g := callsTalk(t, func(ctx context.Context, s *Talk) error {
		if slow && s.Heard.Get() == "three" {
			return heeds(ctx, 10*time.Second)
		}
		return nil
	})
	well := process(t, g, &inner, dispatcher.Options{})
	res, err := well.Run(t.Context(), run, hear("one"))
	completes(t, res, err)
	enqueue(t, well, "bad", "two")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	res, err = process(t, g, store, dispatcher.Options{Grace: grace}).Turn(ctx, run, hear("three"))
	if took := time.Since(end); took > grace {
		t.Errorf("call %d: the turn returned %v after the end of its context", n, took)
	}
	if err == nil || res.State == nil {
		t.Errorf("call %d: the turn returned %+v, %v", n, res, err)
	}
	hung := calls.Load() >= int64(n)
	close(free)
	lasts(time.Hour)
	slow = false
	res, err = process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if !slices.Contains(heardIn(res.State), "three") {
		res, err = process(t, g, &inner, dispatcher.Options{}).Turn(t.Context(), run, hear("three"))
		completes(t, res, err)
	}
	if got := heardIn(res.State); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("call %d: heard %q", n, got)
	}
	return hung
}

// User code that ignores its context while a turn is to begin is abandoned: the call returns
// within the grace period, and the input is not taken, or goes on waiting.
func TestCallsInputThatHangs(t *testing.T) {
	for _, posted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memory.Store)
			g := callsTalk(t, nil)
			d := process(t, g, store, dispatcher.Options{Grace: time.Second})
			res, err := d.Run(t.Context(), run, hear("one"))
			completes(t, res, err)
			hangs := func(*Talk) { lasts(time.Hour) }
			if posted { // its merge hangs
				if err := d.Enqueue(t.Context(), run, func(s *Talk) { s.Best.Merge(callsBest{Hang: time.Hour}) }); err != nil {
					t.Fatal(err)
				}
				hangs = hear("two")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			_, err = d.Turn(ctx, run, hangs)
			if took := time.Since(began); took > 2*time.Second || !errors.Is(err, dispatcher.ErrStuck) {
				t.Errorf("posted=%t: after %v: %v", posted, took, err)
			}
			if _, err := d.Turn(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) {
				t.Errorf("posted=%t: beside the input that hangs: %v", posted, err)
			}
			lasts(2 * time.Hour)
			now, err := d.State(t.Context(), run)
			if err != nil || now.Status != checkpoint.StatusCompleted || now.Turn != 1 {
				t.Errorf("posted=%t: %s in turn %d, %v", posted, now.Status, now.Turn, err)
			}
			posts, err := store.Posts(t.Context(), run)
			if err != nil || fmt.Sprint(len(posts)) != map[bool]string{false: "0", true: "1"}[posted] {
				t.Errorf("posted=%t: %d posts, %v", posted, len(posts), err)
			}
		})
	}
}

// What does not return before a run can begin is named: the code that was called, and not the
// store.
func TestCallsSetUpThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Store)
		hangs := func() { lasts(time.Hour) }
		b := dag.New[Tale]("items")
		dag.Each(b, "each", func(*Tale) []int { hangs(); return []int{1} }, func(ctx context.Context, _ *Tale, _ int) error {
			_, err := dag.Ask[bool](ctx, "sure", nil)
			return err
		})
		g := frozen(t, b)
		var migrations []dispatcher.Migration
		stuck := func(input func(*Tale), want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := process(t, g, store, dispatcher.Options{Grace: time.Second, Migrations: migrations}).Run(ctx, run, input)
			if !errors.Is(err, dispatcher.ErrStuck) || !slices.Equal(res.Abandoned, []string{want}) {
				t.Errorf("abandoned %q (%v), want %q", res.Abandoned, err, want)
			}
			lasts(2 * time.Hour)
		}
		stuck(func(*Tale) { hangs() }, "the input of the run")

		free := hangs
		hangs = func() {}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "each/1")
		if err := process(t, g, store, dispatcher.Options{}).Answer(t.Context(), run, "", true); err != nil {
			t.Fatal(err)
		}
		hangs = free
		stuck(nil, "the items of an Each")

		b = dag.New[Tale]("items")
		dag.Step(b, "other", func(context.Context, *Tale) error { return nil })
		g = frozen(t, b)
		migrations = []dispatcher.Migration{{Name: "other", Nodes: map[string]string{"each": ""},
			State: func(_ string, s json.RawMessage) (json.RawMessage, error) { hangs(); return s, nil }}}
		stuck(nil, "a Migration")
	})
}

// There is one grace period for all that a call waits for at its end, from when its context is
// done.
func TestOneGracePeriodForHookAndStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 5 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
			if c.method == "Release" {
				lasts(4 * time.Second)
			}
			return nil
		}}
		var cancelled time.Time
		end := func(context.Context, dispatcher.End) error {
			cancelled = time.Now()
			cancel()
			lasts(4 * time.Second)
			return nil
		}
		g := chainOf(t, 1, func(context.Context, int, *Tale) error { return nil })
		res, err := process(t, g, store, dispatcher.Options{Grace: grace, Hooks: dispatcher.Hooks{OnEnd: end}}).Run(ctx, run, nil)
		if took := time.Since(cancelled); took > grace || res.Status != checkpoint.StatusCompleted {
			t.Errorf("the call returns %v after the cancel, %s, %v; want %v at most", took, res.Status, err, grace)
		}
		lasts(time.Minute)
	})
}

// Promise P6 for streams: whatever call of the store hangs, or is slow, from some moment on, a
// stream ends within the grace period if the store heeds its context.
func TestCallsStreamOverAStoreThatHangs(t *testing.T) {
	const grace = 400 * time.Millisecond
	for _, slow := range []bool{false, true} {
		n := 1
		for more := true; more && !t.Failed(); n++ {
			synctest.Test(t, func(t *testing.T) { more = callsStreamHangs(t, n, slow, grace) })
		}
		if n < 15 {
			t.Errorf("only %d calls were tried", n-1)
		}
	}
}

// callsStreamHangs streams the second turn of a run, over a store that hangs, or is slow, from call
// n on. It reports whether there was one.
func callsStreamHangs(t *testing.T, n int, slow bool, grace time.Duration) bool {
	var inner memory.Store
	var calls atomic.Int64
	free := make(chan struct{})
	hangs := hangsFrom(n, true, &calls, free)
	if slow {
		hangs = func(ctx context.Context, c call) error {
			if c.method == "Watch" || calls.Add(1) < int64(n) {
				return nil
			}
			return heeds(ctx, grace/3)
		}
	}
	g := callsTalk(t, func(ctx context.Context, s *Talk) error {
		if s.Heard.Get() == "two" {
			return heeds(ctx, 10*time.Second)
		}
		return nil
	})
	res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, hear("one"))
	completes(t, res, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	d := process(t, g, &tampered{Store: &inner, before: hangs}, dispatcher.Options{Grace: grace})
	for item, err := range d.StreamTurn(ctx, run, hear("two"), dispatcher.Listen{}) {
		if item.Result != nil && err == nil {
			t.Errorf("call %d, slow=%t: the stream ends without an error", n, slow)
		}
	}
	if took := time.Since(end); took > grace+grace/20 {
		t.Errorf("call %d, slow=%t: the stream ended %v after its context", n, slow, took)
	}
	hung := calls.Load() >= int64(n)
	close(free)
	lasts(time.Hour)
	return hung
}

// A stream of which the context is done still tells all that is in the log, however long the body
// of its loop takes.
func TestCallsStreamOfASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 400 * time.Millisecond
		g := callsTalk(t, nil)
		d := process(t, g, new(memory.Store), dispatcher.Options{Grace: grace})
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		told := uint64(0)
		for item, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
			if err != nil {
				t.Errorf("behind entry %d: %v", told, err)
			}
			if item.Result == nil && !item.Event.Live {
				told = item.Event.Seq
				lasts(grace)
			}
		}
		if told != res.Cursor.Seq {
			t.Errorf("the stream told %d entries of %d", told, res.Cursor.Seq)
		}
	})
}

// A stream whose context is done already has one grace period as well, for its look at where the
// run stands and for the call.
func TestCallsStreamUnderADoneContextHasOneGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const grace = 400 * time.Millisecond
		var looks atomic.Int64
		slow := func(ctx context.Context, c call) error {
			if c.method == "Watch" {
				return nil
			}
			if looks.Add(1) <= 2 { // the first look ends with the context
				return heeds(ctx, grace*6/10)
			}
			return heeds(ctx, time.Hour)
		}
		d := process(t, callsTalk(t, nil), &tampered{Store: new(memory.Store), before: slow}, dispatcher.Options{Grace: grace})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		for range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
		}
		if took := time.Since(began); took > grace+grace/10 {
			t.Errorf("the stream took %v", took)
		}
		lasts(2 * time.Hour)
	})
}
