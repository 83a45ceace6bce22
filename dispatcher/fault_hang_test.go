package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// stuck checks what a call returned that a store held up: in time, with an error that says
// so, and a result that names what hangs, once.
func stuck(t *testing.T, res *dispatcher.Result[Tale], err error, end time.Time, names string) {
	t.Helper()
	if took := time.Since(end); took > 5*time.Second || took < 0 {
		t.Errorf("the call returned %v after the end of its context, the grace period is 5s", took)
	}
	if !errors.Is(err, dispatcher.ErrStuck) {
		t.Errorf("the call returned %v, want ErrStuck", err)
	}
	if res == nil || res.State == nil || res.Run != run {
		t.Fatalf("the result beside %v is not valid: %+v", err, res)
	}
	if !slices.ContainsFunc(res.Abandoned, func(s string) bool { return strings.Contains(s, names) }) {
		t.Errorf("abandoned: %q, want %q named", res.Abandoned, names)
	}
	once(t, res.Abandoned)
}

// once checks that nothing is named twice.
func once(t testing.TB, names []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(sorted)) < len(names) {
		t.Errorf("%q: each is to be named once", names)
	}
}

// An append that hangs: whatever append it is, and wherever in the store it does, the call
// returns in time and says that the outcome is unknown. When the store comes back the run
// can go on, from what has become durable or from what was.
func TestHangingAppend(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("append=%d/durable=%t", n, durable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { hangAppend(t, n, durable) })
			})
		}
	}
}

func hangAppend(t *testing.T, n int, durable bool) {
	var w witness
	var inner memory.Store
	free := make(chan struct{})
	hang := hangs("Append", n, free)
	store := &tampered{Store: &inner, before: hang}
	if durable {
		store.before = nil
		store.after = func(c call, err error) error { return errors.Join(err, hang(t.Context(), c)) }
	}
	g := line(t, &w, nil)
	d := process(t, g, store, dispatcher.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	input := func(s *Tale) { s.Word.Set("kept") }

	res, err := d.Run(ctx, run, input)
	stuck(t, res, err, end, "append")
	if !errors.Is(err, dispatcher.ErrCommitUnknown) {
		t.Errorf("the call returned %v, want ErrCommitUnknown", err)
	}
	ran := w.took()
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) ||
		!strings.Contains(err.Error(), strings.Join(res.Abandoned, ", ")) || !strings.Contains(err.Error(), "the store") {
		t.Errorf("a run beside it returned %v, want ErrStillRunning of %q", err, res.Abandoned)
	}
	if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("a run beside it in another process returned %v, want ErrBusy", err)
	}
	close(free)
	synctest.Wait()
	if !durable && len(ran) > 0 {
		ran = ran[:len(ran)-1] // when the store heard of it nobody waited any more
	}
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, input)
	completes(t, res, err)
	says(t, res.State, "a", "b", "c")
	w.expect(t, []string{"a", "b", "c"}[len(ran):]...)
	if res.State.Word.Get() != "kept" {
		t.Error("the input is lost")
	}
}

// An append that hangs and then fails has changed nothing, and nothing ran after it.
func TestHangingAppendThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		store := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
			if c.method != "Append" || c.n != 3 {
				return nil
			}
			<-free
			return checkpoint.ErrFull
		}}
		g := line(t, &w, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
		stuck(t, res, err, end, "append")
		before, _ := inner.Stat(t.Context(), run)
		ran := w.took()
		close(free)
		synctest.Wait()
		if after, _ := inner.Stat(t.Context(), run); after.Head != before.Head {
			t.Errorf("the log went from %d to %d entries", before.Head.Seq, after.Head.Seq)
		}
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, []string{"a", "b", "c"}[len(ran)-1:]...)
	})
}

// A store that heeds its context is let go of like one that doesn't.
func TestHangingStoreThatHeedsItsContext(t *testing.T) {
	for _, method := range []string{"Append", "Acquire", "Posts", "Read"} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			g := line(t, &w, nil)
			res, err := process(t, g, &inner, dispatcher.Options{InterruptAfter: []string{"a"}}).Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			well := false
			store := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
				if c.method == method && !well {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			end := time.Now().Add(time.Second)
			res, err = process(t, g, store, dispatcher.Options{}).Resume(ctx, run)
			if took := time.Since(end); err == nil || took > 5*time.Second || res.State == nil {
				t.Errorf("%s hangs: the call returned %v, %v after the end of its context", method, err, took)
			}
			synctest.Wait()
			well = true
			res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
			completes(t, res, err)
			w.expect(t, "a", "b", "c")
			lasts(time.Minute) // what looks for cancels behind the call that was given up has a context too
		})
	}
}

// Whatever the store hangs in before a run begins, the call returns in time, and the store's
// coming back lets the run begin or go on.
func TestHangingStoreBeforeTheStart(t *testing.T) {
	for _, c := range []struct {
		method string
		fresh  bool // of a run that there is not yet
	}{
		{"Acquire", true}, {"Stat", true}, {"PutGraph", true},
		{"Acquire", false}, {"Stat", false}, {"Snapshot", false}, {"Read", false}, {"Posts", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			g := line(t, &w, nil)
			if !c.fresh {
				res, err := process(t, g, &inner, dispatcher.Options{InterruptAfter: []string{"a"}}).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "b")
			}
			free := make(chan struct{})
			store := &tampered{Store: &inner, before: hangs(c.method, 1, free)}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			end := time.Now().Add(time.Second)
			res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
			stuck(t, res, err, end, "store")
			close(free)
			synctest.Wait()
			d := process(t, g, store, dispatcher.Options{})
			if c.fresh {
				res, err = d.Run(t.Context(), run, nil)
			} else {
				res, err = d.Resume(t.Context(), run)
			}
			completes(t, res, err)
			w.expect(t, "a", "b", "c")
		})
	}
}

// A lease that can't be given back doesn't hold up the call for longer than the grace period.
func TestHangingRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		store := &tampered{Store: &inner, before: hangs("Release", 1, free)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		g := line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) })
		res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
		if took := time.Since(end); took > 5*time.Second {
			t.Errorf("the call returned %v after the end of its context", took)
		}
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		close(free)
		synctest.Wait()
		if _, err := inner.Acquire(t.Context(), run, "somebody"); err != nil {
			t.Errorf("the lease was not given back: %v", err)
		}
	})
}

// Until it has been given back, whether before the end of the call or behind its OnEnd, the call
// that has abandoned that is named.
func TestHangingReleaseIsNamed(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			free := make(chan struct{})
			store := &tampered{Store: &inner, before: hangs("Release", 1, free)}
			var o dispatcher.Options
			if ends {
				o.Hooks.OnEnd = func(context.Context, dispatcher.End) error { return nil }
			}
			g := line(t, &w, nil)
			d := process(t, g, store, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := d.Run(ctx, run, nil)
			completes(t, res, err)
			if want := []string{"releasing the lease in the store"}; !slices.Equal(res.Abandoned, want) {
				t.Errorf("OnEnd %t: the call abandoned %q, want %q", ends, res.Abandoned, want)
			}
			if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.Contains(err.Error(), "releasing") {
				t.Errorf("OnEnd %t: a run beside it returned %v, want ErrStillRunning that names it", ends, err)
			}
			if _, err := process(t, g, &inner, o).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
				t.Errorf("OnEnd %t: a run beside it in another process returned %v, want ErrBusy", ends, err)
			}
			close(free)
			synctest.Wait()
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
		})
	}
}

// Nor does a store that hangs where the run is trimmed: that is named, and the run is none the
// worse for it.
func TestHangingRetention(t *testing.T) {
	for _, method := range []string{"Acquire", "Stat", "Read", "Trim", "Release"} {
		for _, streams := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { hangRetention(t, method, streams) })
		}
	}
}

func hangRetention(t *testing.T, method string, streams bool) {
	var w witness
	var inner memory.Store
	var trims, hung atomic.Bool
	free := make(chan struct{})
	store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
		if c.method == "Acquire" && c.n == 2 { // the first one was for the run itself
			trims.Store(true)
		}
		if trims.Load() && c.method == method && !hung.Swap(true) {
			<-free
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	d := process(t, line(t, &w, nil), store, dispatcher.Options{Retention: dispatcher.Retention{Last: 1}})
	var res *dispatcher.Result[Tale]
	var err error
	if streams {
		_, res, err = eventsStreamed(t, d.Stream(ctx, run, nil, dispatcher.Listen{}))
	} else {
		res, err = d.Run(ctx, run, nil)
	}
	if took := time.Since(end); took < 0 || took > 5*time.Second {
		t.Errorf("%s hangs: the call returned %v after the end of its context", method, took)
	}
	completes(t, res, err)
	if want := []string{"trimming the run in the store"}; !slices.Equal(res.Abandoned, want) || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "the past was not trimmed") {
		t.Errorf("%s hangs: the call abandoned %q, and warns of %q", method, res.Abandoned, res.Warnings)
	}
	more := func(s *Tale) { s.Word.Set("more") }
	if _, err := d.Turn(t.Context(), run, more); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.Contains(err.Error(), "trimming") {
		t.Errorf("%s hangs: a turn meanwhile returned %v", method, err)
	}
	close(free)
	synctest.Wait()
	if method != "Release" {
		w.took()
		res, err := d.Turn(t.Context(), run, more)
		completes(t, res, err)
		return
	}
	w.expect(t, "a", "b", "c")
}

// large is more than the store may be asked to replay without a snapshot.
var large = strings.Repeat("all work and no play ", 8<<10)

// A snapshot that hangs is named; the run goes on without it.
func TestHangingSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		store := &tampered{Store: &inner, before: hangs("PutSnapshot", 1, free)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		big := dag.New[Tale]("big")
		var after []dag.Edge[Tale]
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			after = []dag.Edge[Tale]{dag.Step(big, name, w.sees(func(_ context.Context, s *Tale) error {
				s.Word.Set(large)
				return nil
			}), after...)}
		}
		g := frozen(t, big)
		res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
		completes(t, res, err) // no node waits for a snapshot, only the end of the call does
		if got, want := res.Abandoned, []string{"a snapshot of the store"}; !slices.Equal(got, want) {
			t.Errorf("the call abandoned %q, want %q", got, want)
		}
		if late := time.Since(end); late > 5*time.Second {
			t.Errorf("the call returned %v after the end of its context", late)
		}
		close(free)
		synctest.Wait()
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "a", "b", "c", "d", "e", "f", "g", "h")
	})
}

// A snapshot that hangs is named as well where the call ends since something else hangs.
func TestHangingSnapshotBesideAnAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		free, snaps := make(chan struct{}), make(chan struct{})
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			switch {
			case c.method == "PutSnapshot":
				close(snaps)
				<-free
			case c.method == "Append" && c.n == 9:
				<-snaps
				<-free
			}
			return nil
		}}
		big := dag.New[Tale]("big")
		var after []dag.Edge[Tale]
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			after = []dag.Edge[Tale]{dag.Step(big, name, func(_ context.Context, s *Tale) error {
				s.Word.Set(large)
				return nil
			}, after...)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := process(t, frozen(t, big), store, dispatcher.Options{}).Run(ctx, run, nil)
		if !errors.Is(err, dispatcher.ErrStuck) || !errors.Is(err, dispatcher.ErrCommitUnknown) {
			t.Errorf("the call returned %v", err)
		}
		if want := []string{"an append to the store", "a snapshot of the store"}; !slices.Equal(res.Abandoned, want) {
			t.Errorf("the call abandoned %q, want %q", res.Abandoned, want)
		}
		close(free)
	})
}

// Beside an error of the store a Result doesn't say where the run stands; State does.
func TestResultBesideAnErrorOfTheStore(t *testing.T) {
	for n := 2; n <= 4; n++ {
		var w witness
		var inner memory.Store
		g := line(t, &w, nil)
		store := &tampered{Store: &inner, before: fails("Append", n, checkpoint.ErrFull)}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if !errors.Is(err, checkpoint.ErrFull) {
			t.Fatalf("append %d fails: the call returned %v", n, err)
		}
		bare := dispatcher.Result[Tale]{Run: run, Status: checkpoint.StatusRunning, State: res.State, Cursor: checkpoint.Cursor{Run: run}}
		if !reflect.DeepEqual(*res, bare) || res.State.Said.Len() != 0 {
			t.Errorf("append %d fails: the result is %+v, want the run and its status", n, res)
		}
		before := len(w.took()) - 1 // nobody waited for the last one
		if res, err = process(t, g, &inner, dispatcher.Options{}).State(t.Context(), run); err != nil || res.Superstep != before {
			t.Errorf("append %d fails: the run stands behind superstep %d, %v, want %d", n, res.Superstep, err, before)
		}
	}
}

// The Result of a call that was refused says of which run, and knows nothing else of it.
func TestResultOfARefusedCall(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{})
	for name, call := range map[string]func() (*dispatcher.Result[Tale], error){
		"Resume": func() (*dispatcher.Result[Tale], error) { return d.Resume(t.Context(), run) },
		"Turn":   func() (*dispatcher.Result[Tale], error) { return d.Turn(t.Context(), run, nil) },
		"State":  func() (*dispatcher.Result[Tale], error) { return d.State(t.Context(), run) },
		"At":     func() (*dispatcher.Result[Tale], error) { return d.At(t.Context(), run, "1") },
	} {
		res, err := call()
		bare := dispatcher.Result[Tale]{Run: run, State: new(Tale), Cursor: checkpoint.Cursor{Run: run}}
		if !errors.Is(err, dispatcher.ErrNotFound) || !reflect.DeepEqual(*res, bare) {
			t.Errorf("%s of a run that is not there returned %+v, %v", name, res, err)
		}
	}
}

// A store that panics in an append of effects of several nodes, or ends its goroutine, leaves none
// of them waiting.
func TestAnAppendOfEffectsThatDoesNotReturn(t *testing.T) {
	for name, breaks := range map[string]func(){"a panic": func() { panic("the store") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := 0
				var staged sync.WaitGroup
				staged.Add(2)
				store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
					if len(c.entries) == 0 || c.entries[0].Kind != checkpoint.EffectBegun {
						return nil
					}
					if begun++; begun == 1 {
						staged.Wait()
						lasts(time.Second) // until both are in line
						return nil
					}
					breaks()
					return nil
				}}
				b := dag.New[Tale]("pays")
				for i := range 3 {
					dag.Step(b, fmt.Sprint("pay-", i), func(ctx context.Context, _ *Tale) error {
						if i > 0 {
							lasts(time.Duration(i) * time.Millisecond)
							staged.Done()
						}
						_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "receipt", nil })
						return err
					})
				}
				d := process(t, frozen(t, b), store, dispatcher.Options{})
				if res, err := d.Run(t.Context(), run, nil); err == nil {
					t.Errorf("the run is %s", res.Status)
				}
			})
		})
	}
}
