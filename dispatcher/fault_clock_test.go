package dispatcher_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// patient returns a graph of one node that fails its first attempts, so many, and waits an
// hour between two. It notes when they begin.
func patient(t testing.TB, fails, attempts int, began *[]time.Time) *dag.Graph[Tale] {
	b := dag.New[Tale]("patient")
	dag.Step(b, "try", func(ctx context.Context, s *Tale) error {
		*began = append(*began, time.Now())
		if dag.Attempt(ctx) <= fails {
			lasts(400 * time.Microsecond) // the wait begins within a millisecond, not with one
			return errWeather
		}
		return nil
	}).With(dag.Policy{Attempts: attempts, Backoff: dag.Constant(time.Hour)})
	return frozen(t, b)
}

// wall is a clock that a test can set.
func wall(jump *atomic.Int64) func() time.Time {
	return func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
}

// The wait between two attempts survives the process, and its wall clock: a jump forwards
// may end it, a jump backwards never makes it longer than it was, and without a jump it is
// what it was, to the nanosecond.
func TestBackoffOverARestart(t *testing.T) {
	const rest = 20 * time.Minute // when the first process ends
	for _, c := range []struct {
		name string
		jump time.Duration // of the wall clock, while nobody runs
		off  time.Duration // how long nobody runs
		wait time.Duration // from the restart to the second attempt
	}{
		{"still", 0, 0, time.Hour - rest},
		{"off for a while", 0, 10 * time.Minute, 30 * time.Minute},
		{"off for longer than the wait", 0, 2 * time.Hour, 0},
		{"forwards", 15 * time.Minute, 0, 25 * time.Minute},
		{"forwards behind the wait", 24 * time.Hour, 0, 0},
		{"backwards", -10 * time.Minute, 0, 50 * time.Minute},
		{"backwards before its beginning", -24 * time.Hour, 0, time.Hour},
		{"backwards by years", -30 * 365 * 24 * time.Hour, 0, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				var began []time.Time
				var jump atomic.Int64
				g := patient(t, 1, 2, &began)
				o := dispatcher.WithNow(dispatcher.Options{}, wall(&jump))
				failed := time.Now().Add(400 * time.Microsecond)
				ctx, cancel := context.WithDeadline(t.Context(), failed.Add(rest))
				defer cancel()

				res, err := process(t, g, &store, o).Run(ctx, run, nil)
				rests(t, res, err, checkpoint.StatusTimedOut, "try")
				lasts(c.off)
				jump.Store(int64(c.jump))
				again := time.Now()
				res, err = process(t, g, &store, o).Resume(t.Context(), run)
				completes(t, res, err)
				if wait := began[1].Sub(again); wait != c.wait || len(began) != 2 {
					t.Errorf("after the restart the second attempt of %d waited %v, want %v", len(began), wait, c.wait)
				}
			})
		})
	}
}

// A wait may be so long that it ends behind the year 2262, the last instant of which 64 bits of
// nanoseconds can tell: it is no shorter in the next process, also where a snapshot tells of it.
func TestBackoffOfCenturiesOverARestart(t *testing.T) {
	for _, o := range []dispatcher.Options{{}, dispatcher.Eager(dispatcher.Options{})} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			began := 0
			b := dag.New[Tale]("patient")
			dag.Step(b, "try", func(context.Context, *Tale) error {
				began++
				return errWeather
			}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(math.MaxInt64)})
			g := frozen(t, b)
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				res, err := process(t, g, &store, o).Run(ctx, run, nil)
				cancel()
				rests(t, res, err, checkpoint.StatusTimedOut, "try")
			}
			if began != 1 {
				t.Errorf("%d attempts were made, and the wait behind the first one is not over", began)
			}
		})
	}
}

// A wall clock that jumps under a live run changes no wait at all.
func TestBackoffUnderAJumpingClock(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var began []time.Time
			var jump atomic.Int64
			time.AfterFunc(time.Minute, func() { jump.Store(int64(by)) })
			o := dispatcher.WithNow(dispatcher.Options{}, wall(&jump))
			res, err := process(t, patient(t, 1, 2, &began), &store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			if wait := began[1].Sub(began[0]); wait != time.Hour+400*time.Microsecond {
				t.Errorf("the second attempt came after %v, want an hour", wait)
			}
		})
	}
}

// A wait that several crashes cut is one wait: each restart has what is left of it, and
// crashes make neither more attempts nor fewer.
func TestBackoffOverManyRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var began []time.Time
		g := patient(t, 3, 4, &began)
		for {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Minute, dispatcher.ErrDrain)
			res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
			cancel()
			if err == nil {
				completes(t, res, err)
				break
			}
		}
		if len(began) != 4 {
			t.Fatalf("%d attempts were made, want 4", len(began))
		}
		for i := range 3 {
			if wait := began[i+1].Sub(began[i]); wait != time.Hour+400*time.Microsecond {
				t.Errorf("attempt %d came %v after the one before, want an hour", i+2, wait)
			}
		}
	})
}

// A resume of a failed run gives the visit a new budget; its attempts count on, and so does
// the shape of its back-off.
func TestAttemptsCountOnWithANewBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var attempts []int
		var began []time.Time
		b := dag.New[Tale]("budget")
		dag.Step(b, "try", func(ctx context.Context, s *Tale) error {
			attempts = append(attempts, dag.Attempt(ctx))
			began = append(began, time.Now())
			if dag.Attempt(ctx) < 5 {
				return errWeather
			}
			return nil
		}).With(dag.Policy{Attempts: 2, Backoff: dag.Linear(time.Minute, 0)})
		g := frozen(t, b)
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		for budget := 1; budget <= 2; budget++ {
			rests(t, res, err, checkpoint.StatusFailed, "try")
			var failed *dispatcher.NodeError
			if !errors.As(err, &failed) || failed.Attempt != 2*budget || res.Failures[0].Attempts != 2*budget {
				t.Errorf("after budget %d the error is %v, beside %+v", budget, err, res.Failures)
			}
			lasts(time.Hour)
			res, err = process(t, g, &store, dispatcher.Options{}).Resume(t.Context(), run)
		}
		completes(t, res, err)
		if len(attempts) != 5 || attempts[4] != 5 {
			t.Errorf("the attempts were %v, want 1 to 5", attempts)
		}
		for i, want := range map[int]time.Duration{1: time.Minute, 2: time.Hour, 3: 3 * time.Minute, 4: time.Hour} {
			if wait := began[i].Sub(began[i-1]); wait != want {
				t.Errorf("attempt %d came after %v, want %v", i+1, wait, want)
			}
		}
	})
}

// A wall clock may tell its instants in any zone, also in one in which JSON can't say them: what is
// stored is in UTC.
func TestClockOfAnyZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		o := dispatcher.WithNow(dispatcher.Options{}, func() time.Time { return time.Now().In(time.FixedZone("", 25*60*60)) })
		b := dag.New[Tale]("zones")
		dag.Step(b, "works", func(ctx context.Context, _ *Tale) error {
			if err := dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Hour}); err != nil {
				return err
			}
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 1, nil })
			if err == nil && dag.Attempt(ctx) == 1 {
				err = errFire
			}
			if err == nil {
				_, err = dag.Ask[string](ctx, "q", "?", dag.Within(time.Hour), dag.OrDefault("nothing"))
			}
			return err
		}).With(dag.Policy{Attempts: 2})
		g := frozen(t, b)
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "works")
		lasts(time.Hour)
		res, err = process(t, g, &store, o).Resume(t.Context(), run)
		completes(t, res, err)
	})
}

// A wall clock may be broken and tell instants that JSON can't say: what is stored, and what is
// counted from it, is one that it can, and the waits are those of the clock that does not jump.
func TestClockOfAnyYear(t *testing.T) {
	for _, year := range []int{-300_000, -1, 0, 9999, 10_000, 300_000} {
		t.Run(strconv.Itoa(year), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				broken := time.Date(year, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
				o := dispatcher.WithNow(dispatcher.Options{}, func() time.Time { return broken })
				b := dag.New[Tale]("years")
				dag.Step(b, "works", func(ctx context.Context, _ *Tale) error {
					if err := dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Hour}); err != nil {
						return err
					}
					_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 1, nil })
					if err == nil && dag.Attempt(ctx) == 1 {
						err = errFire
					}
					if err == nil {
						_, err = dag.Ask[string](ctx, "soon", "?", dag.Within(time.Hour), dag.OrDefault("nothing"))
					}
					if err == nil {
						_, err = dag.Ask[string](ctx, "late", "?", dag.Within(math.MaxInt64), dag.OrDefault("nothing"))
					}
					return err
				}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(time.Hour)})
				g, began := frozen(t, b), time.Now()
				res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "works")
				if took := time.Since(began); took != time.Hour {
					t.Errorf("the second attempt came after %v, want an hour", took)
				}
				if err := process(t, g, &store, o).Answer(t.Context(), run, res.Interrupts[0].ID, "yes"); err != nil {
					t.Fatal(err)
				}
				res, err = process(t, g, &store, o).Resume(t.Context(), run)
				rests(t, res, err, checkpoint.StatusInterrupted, "works")
				if res, err = process(t, g, &store, o).State(t.Context(), run); err != nil || res.Interrupts[0].Key != "late" {
					t.Errorf("read in another process the run waits for %+v, %v", res.Interrupts, err)
				}
			})
		})
	}
}
