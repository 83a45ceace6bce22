package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A deadline that passes while an append is under way: what it holds is kept.
func TestDeadlineDuringACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if c.method == "Append" && c.n == 2 { // holds what a did
				lasts(3 * time.Second)
			}
			return nil
		}}
		g := line(t, &w, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		if took := time.Since(began); took != 3*time.Second || len(res.Abandoned) > 0 {
			t.Errorf("the call returned after %v and abandoned %q, want 3s and nothing", took, res.Abandoned)
		}
		says(t, res.State, "a")
		res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "a", "b", "c")
	})
}

func TestDeadlineDuringABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var attempts []time.Time
		g := patient(t, 1, 3, &attempts)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "try")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call returned after %v, want one minute", took)
		}
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
	})
}

// A deadline that has passed when a run is resumed: nothing runs, whatever it was at.
func TestDeadlineDuringAResume(t *testing.T) {
	for _, slow := range []string{"", "Acquire", "Read", "Append"} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			g := line(t, &w, nil)
			o := dispatcher.Options{InterruptAfter: []string{"a"}}
			res, err := process(t, g, &inner, o).Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			w.took()
			store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
				if c.method == slow && c.n == 1 {
					lasts(2 * time.Second)
				}
				return nil
			}}
			timeout := time.Second
			if slow == "" {
				timeout = 0
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			res, err = process(t, g, store, o).Resume(ctx, run)
			rests(t, res, err, checkpoint.StatusTimedOut, "b")
			w.expect(t)
			res, err = process(t, g, store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "b", "c")
		})
	}
}

// What a node returns once its context is done is neither a failure nor an attempt; what it
// returns without an error counts.
func TestErrorsAfterTheEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func() error
		cursor []string
		rest   []string
	}{
		{"context", nil, []string{"b"}, []string{"b", "c"}},
		{"another error", func() error { return errWeather }, []string{"b"}, []string{"b", "c"}},
		{"wrapped", func() error { return fmt.Errorf("far away: %w", context.Canceled) }, []string{"b"}, []string{"b", "c"}},
		{"nil", func() error { return nil }, []string{"c"}, []string{"c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				g := line(t, &w, func(ctx context.Context, _ *Tale) error {
					err := heeds(ctx, time.Minute)
					if c.end != nil {
						err = c.end()
					}
					return err
				})
				res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
				rests(t, res, err, checkpoint.StatusCancelled, c.cursor...)
				if n := len(kinds(readLog(t, &store), checkpoint.AttemptFailed)); n != 0 {
					t.Errorf("%d attempts were counted as failed, want none", n)
				}
				w.expect(t, "a", "b")
				if c.end != nil {
					c.end = func() error { return nil }
				}
				res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
				completes(t, res, err)
				w.expect(t, c.rest...)
			})
		})
	}
}

// A panic is a failure whenever it comes. The run was cancelled first, and fails next.
func TestPanicAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		g := line(t, &w, func(ctx context.Context, _ *Tale) error {
			if heeds(ctx, time.Minute) != nil {
				panic(errWeather)
			}
			return nil
		})
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "b")
		if len(res.Failures) != 1 || res.Failures[0].Kind != dag.FailedPanic {
			t.Errorf("the failures are %+v, want the panic", res.Failures)
		}
		w.expect(t, "a", "b")
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "b")
		w.expect(t)
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "b#2", "c")
	})
}

// The time limit of an attempt: it ends the attempt's context and nothing else, another
// attempt has a new one, and what the node makes of it is its own.
func TestTimeoutOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		var began []time.Time
		b := dag.New[Tale]("timeouts")
		dag.Step(b, "slow", w.sees(func(ctx context.Context, _ *Tale) error {
			began = append(began, time.Now())
			if err := heeds(ctx, time.Hour); err != nil {
				return fmt.Errorf("the library is closed: %w", err)
			}
			return nil
		})).With(dag.Policy{Timeout: time.Minute, Attempts: 3, Backoff: dag.Constant(10 * time.Second)})
		dag.Step(b, "late", w.sees(func(context.Context, *Tale) error { lasts(time.Hour); return nil })).
			With(dag.Policy{Timeout: time.Minute}) // it takes too long, and is done
		g := frozen(t, b)
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "slow")
		w.expect(t, "slow", "slow#2", "slow#3", "late")
		if !slices.Equal(res.Finished, []string{"late"}) {
			t.Errorf("finished: %q, want late", res.Finished)
		}
		for i := range 2 {
			if wait := began[i+1].Sub(began[i]); wait != 70*time.Second {
				t.Errorf("attempt %d came after %v, want 1m10s", i+2, wait)
			}
		}
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Kind != dag.FailedTimeout || failed.Budget != time.Minute || failed.Attempt != 3 {
			t.Errorf("the error is %#v, want a time-out of the third attempt", failed)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(failed, context.DeadlineExceeded) {
			t.Error("a node's own time-out is found as a deadline of the run")
		}
		if len(res.Failures) != 1 || res.Failures[0].Kind != dag.FailedTimeout || res.Failures[0].Attempts != 3 {
			t.Errorf("the failures are %+v", res.Failures)
		}
	})
}

// A deadline of the caller and a time limit of the node that pass in one moment: the run has
// timed out, and the node has not failed for good.
func TestTimeoutAndDeadlineAtOnce(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			b := dag.New[Tale]("at-once")
			dag.Step(b, "slow", w.sees(func(ctx context.Context, _ *Tale) error {
				return heeds(ctx, time.Hour)
			})).With(dag.Policy{Timeout: time.Minute, Attempts: 2})
			g := frozen(t, b)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
			rests(t, res, err, checkpoint.StatusTimedOut, "slow")
		})
	}
}

// Of what ends one superstep the highest rank names the status; the rest is kept, and comes
// up in turn: cancelled, failed, interrupted.
func TestRanking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		fails := true
		b := dag.New[Tale]("ranks")
		asks := dag.Step(b, "asks", w.sees(func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "word", "which?")
			s.Word.Set(word)
			return err
		}))
		breaks := dag.Step(b, "breaks", w.sees(func(context.Context, *Tale) error {
			if fails {
				return errWeather
			}
			return nil
		}))
		waits := dag.Step(b, "waits", w.sees(func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }))
		dag.Step(b, "last", w.sees(nil), asks, breaks, waits)
		g := frozen(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "asks", "breaks", "waits")
		w.expect(t, "asks", "breaks", "waits")
		if len(res.Interrupts) != 1 || len(res.Failures) != 1 {
			t.Errorf("kept are %+v and %+v, want one interrupt and one failure", res.Interrupts, res.Failures)
		}
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "asks", "breaks")
		w.expect(t, "waits")
		fails = false
		res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		w.expect(t, "breaks#2")
		d := process(t, g, &store, dispatcher.Options{})
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "this"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "asks", "last")
		says(t, res.State, "asks", "breaks", "waits", "last")
	})
}
