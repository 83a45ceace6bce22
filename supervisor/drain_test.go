package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// reports compares what a Drain has reported.
func reports(t *testing.T, got supervisor.Drain, want supervisor.Drain) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Drain reports %+v, want %+v", got, want)
	}
}

// A Drain lets what runs finish, refuses what waits and what comes, and leaves the rest in
// the store, from where the next process goes on. It does nothing twice.
func TestDrainLeavesEverythingRecoverable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var ran diary
		g := line(t, "line", 3, func(ctx context.Context, step int) error {
			ran.note(dag.Key(ctx))
			lasts(time.Duration(step+1) * time.Second)
			return ctx.Err()
		})
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 2}, d)
		ending := submit(t, s, d, "", "a")
		lasts(3500 * time.Millisecond) // a is in its last step when b is in its second
		middle := submit(t, s, d, "", "b")
		waits := submit(t, s, d, "", "c")
		lasts(1500 * time.Millisecond)
		began := time.Now()
		report, err := s.Drain(t.Context())
		if took := time.Since(began); err != nil || took != 1500*time.Millisecond {
			t.Errorf("Drain = %v after %v", err, took)
		}
		reports(t, report, supervisor.Drain{Finished: []string{"a"}, Left: []string{"b"}, Waiting: []string{"c"}})
		completes(t, ending)
		if _, err := middle.Wait(t.Context()); !errors.Is(err, dispatcher.ErrDrain) {
			t.Errorf("who waits for b is told %v", err)
		}
		if _, err := waits.Wait(t.Context()); !errors.Is(err, supervisor.ErrDraining) {
			t.Errorf("who waits for c is told %v", err)
		}
		if _, err := supervisor.Submit(t.Context(), s, d, "", "d", nil); !errors.Is(err, supervisor.ErrDraining) {
			t.Errorf("Submit = %v", err)
		}
		if _, err := s.Continue(t.Context(), "", "b"); !errors.Is(err, supervisor.ErrDraining) {
			t.Errorf("Continue = %v", err)
		}
		if r, err := s.Recover(t.Context()); !errors.Is(err, supervisor.ErrDraining) || len(r.Rested)+len(r.Left) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		again, err := s.Drain(t.Context())
		if reports(t, again, report); err != nil {
			t.Error(err)
		}
		next := supervise(t, &store, supervisor.Options{}, process(t, g, &store, dispatcher.Options{}))
		if r, err := next.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"b"}) || len(r.Failed)+len(r.Left)+len(r.Busy) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		ran.expect(t, "a/step-0", "a/step-1", "a/step-2", "b/step-0", "b/step-1", "b/step-2")
		for run, status := range statuses(t, &store) {
			if status != checkpoint.StatusCompleted {
				t.Errorf("run %q is %s", run, status)
			}
		}
	})
}

// What takes too long is cancelled, and what does not end then is named; Drain returns in
// time, whatever nodes do. A run that was cancelled so is left for recovery.
func TestDrainReturnsInTime(t *testing.T) {
	for _, c := range []struct {
		name      string
		ctx       func(context.Context) (context.Context, context.CancelFunc)
		soft, all time.Duration // until nodes are cancelled, and until Drain returns
	}{
		{"a deadline far away", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Second)
		}, 17 * time.Second, 20 * time.Second},
		{"a near one", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 4*time.Second)
		}, 2 * time.Second, 4 * time.Second},
		{"a cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(7*time.Second, cancel)
			return ctx, cancel
		}, 7 * time.Second, 10 * time.Second},
		{"a cancel before the deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, time.Second, 4 * time.Second},
		{"a context that is over", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, 0, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				var told time.Time
				end := make(chan struct{})
				g := line(t, "line", 2, func(ctx context.Context, _ int) error {
					if dag.Key(ctx) == "stubborn/step-0" {
						<-end
						return nil
					}
					err := heeds(ctx, time.Hour)
					told = time.Now()
					if !errors.Is(err, dispatcher.ErrDrain) {
						t.Errorf("the cause is %v", err)
					}
					return err
				})
				d := process(t, g, &store, dispatcher.Options{Grace: time.Minute}) // the dispatcher would wait for longer
				s := supervise(t, &store, supervisor.Options{Grace: 3 * time.Second}, d)
				submit(t, s, d, "", "stubborn")
				submit(t, s, d, "", "heeds")
				synctest.Wait()
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				began := time.Now()
				report, err := s.Drain(ctx)
				if took := time.Since(began); took != c.all || told.Sub(began) != c.soft {
					t.Errorf("Drain took %v and cancelled after %v, want %v and %v", took, told.Sub(began), c.all, c.soft)
				}
				if !errors.Is(err, supervisor.ErrStuck) {
					t.Errorf("Drain = %v, want ErrStuck", err)
				}
				reports(t, report, supervisor.Drain{Left: []string{"heeds"}, Stuck: []string{"stubborn"}})
				close(end)
				report, err = s.Drain(t.Context())
				if err != nil {
					t.Errorf("Drain again = %v", err)
				}
				reports(t, report, supervisor.Drain{Left: []string{"heeds", "stubborn"}})
				for run, status := range statuses(t, &store) {
					if status != checkpoint.StatusRunning {
						t.Errorf("run %q is %s", run, status)
					}
				}
			})
		})
	}
}

// A node that its dispatcher has abandoned keeps its run stuck, also when it has come back: Drain
// again does not wait.
func TestDrainNamesAbandonedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		end := make(chan struct{})
		d := process(t, line(t, "line", 1, func(context.Context, int) error { <-end; return nil }), &store, dispatcher.Options{Grace: time.Second})
		s := supervise(t, &store, supervisor.Options{}, d)
		submit(t, s, d, "", "run")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		report, err := s.Drain(ctx)
		if !errors.Is(err, supervisor.ErrStuck) {
			t.Errorf("Drain = %v", err)
		}
		reports(t, report, supervisor.Drain{Stuck: []string{"run"}})
		for _, back := range []bool{false, true} {
			if back {
				close(end)
				synctest.Wait()
			}
			began := time.Now()
			report, err = s.Drain(t.Context())
			if took := time.Since(began); !errors.Is(err, supervisor.ErrStuck) || took > 0 {
				t.Errorf("Drain again = %v after %v", err, took)
			}
			reports(t, report, supervisor.Drain{Stuck: []string{"run"}})
		}
	})
}

// Drains, submissions, waits and recoveries of all sorts at once: every run that was taken
// is reported once, and everything ends.
func TestDrainDuringEverything(t *testing.T) {
	quiet(t)
	for round := range 20 {
		var store memory.Store
		g := line(t, "line", 3, nil)
		d := process(t, g, &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 3, Queue: 50}, d)
		var all sync.WaitGroup
		var mu sync.Mutex
		taken := map[string]bool{}
		var closeOnce sync.Once
		enough := make(chan struct{})
		for w := range 4 {
			all.Go(func() {
				for i := 0; ; i++ {
					run := fmt.Sprintf("%d-%d", (w+i)%5, i/2)
					task, err := supervisor.Submit(t.Context(), s, d, fmt.Sprint(w), run, nil)
					switch {
					case errors.Is(err, supervisor.ErrDraining):
						return
					case errors.Is(err, supervisor.ErrQueueFull):
						runtime.Gosched()
					case err != nil:
						t.Error(err)
						return
					default:
						mu.Lock()
						if taken[run] = true; len(taken) == 40+round {
							closeOnce.Do(func() { close(enough) })
						}
						mu.Unlock()
						if i%7 == 0 {
							_, _ = task.Wait(t.Context())
						}
					}
				}
			})
		}
		all.Go(func() {
			for {
				if _, err := s.Recover(t.Context()); errors.Is(err, supervisor.ErrDraining) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
		<-enough
		var reported [2]supervisor.Drain
		for i := range reported {
			all.Go(func() {
				var err error
				if reported[i], err = s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		reports(t, reported[0], reported[1])
		stored := statuses(t, &store)
		for _, run := range slices.Concat(reported[0].Finished, reported[0].Left, reported[0].Waiting) {
			if !taken[run] {
				t.Errorf("round %d: run %q was reported and never taken", round, run)
			}
		}
		for run := range taken {
			_, begun := stored[run]
			if waits := slices.Contains(reported[0].Waiting, run); !begun && !waits {
				t.Errorf("round %d: run %q was taken, is not in the store and not reported", round, run)
			}
		}
		next := supervise(t, &store, supervisor.Options{}, process(t, g, &store, dispatcher.Options{}))
		if r, err := next.Recover(t.Context()); err != nil || len(r.Rested) != len(reported[0].Left) {
			t.Errorf("round %d: Recover = %+v, %v, want %q", round, r, err, reported[0].Left)
		}
		for run, status := range statuses(t, &store) {
			if status != checkpoint.StatusCompleted {
				t.Errorf("round %d: run %q is %s", round, run, status)
			}
		}
	}
}

// A supervisor in which nothing is at work drains at once.
func TestDrainOfNothing(t *testing.T) {
	var store memory.Store
	s := supervise(t, &store, supervisor.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report, err := s.Drain(ctx)
	if reports(t, report, supervisor.Drain{}); err != nil {
		t.Error(err)
	}
}
