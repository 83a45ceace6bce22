package continuation_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// Lapses and failures use up one bound: a wait that has no attempt left fails with its run.
func TestLapsesAndFailuresHaveOneBound(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	dies := true
	g := waiting(t, continuation.Wait{MaxFailures: 2}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
		if dies {
			store.Kill()
		}
		return errWeather
	})
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	_, _ = p.rt.Trigger(t.Context(), reply("t1", "hello"))
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	dies = false
	q := begin(t, g, store, continuation.Options{})
	if runs, err := q.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Fatalf("recovered %q, %v", runs, err)
	}
	if v := q.stands(run, continuation.StatusFailed, continuation.RunFailed); v.Lapses != 1 || v.Failures != 1 {
		t.Errorf("%d lapses, %d failures", v.Lapses, v.Failures)
	}
}

// Whoever skips the question of a wait cancels it, and the node hears of that.
func TestAWaitThatIsSkipped(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	if err := p.d.Skip(t.Context(), run, p.only(run).ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrSkipped) {
		t.Errorf("the run has ended with %v", err)
	}
	p.stands(run, continuation.StatusCancelled, continuation.CancelledByUser)
}

// What comes behind the end of a run changes nothing about how its wait has ended.
func TestAnAnswerBehindAStop(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByProduct}); err != nil {
		t.Fatal(err)
	}
	if err := p.d.Skip(t.Context(), run, p.only(run).ID); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusCancelled, continuation.CancelledByProduct)
}

// A default counts on when its run has failed behind it and is resumed: the wait is resolved in the
// end.
func TestADefaultBehindAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := true
		p := talk(t, waiting(t, continuation.Wait{OnExpire: continuation.Default("nothing")}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			if fails {
				return errWeather
			}
			return says(ctx, s, r)
		}))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.stands(run, continuation.StatusFailed, continuation.RunFailed)
		fails = false
		if _, err := p.d.Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		p.stands(run, continuation.StatusResolved, continuation.Completed)
	})
}

// A trigger that comes while its run is at work on something else is gone on with once.
func TestATriggerOfALiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		b := dag.New[Talk]("talk")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			s.Said.Append(r.Payload)
			return err
		})
		dag.Step(b, "beside", func(context.Context, *Talk) error {
			<-free
			return nil
		})
		p := begin(t, frozen(t, b), freshStore(), continuation.Options{})
		go func() { // ends with the run, which the trigger waits for
			if _, err := p.d.Start(context.Background(), run, nil); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		time.AfterFunc(time.Minute, func() { close(free) })
		if out, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("%+v, %v", out, err)
		}
		if v := p.only(run); v.Resumes != 1 || v.Lapses > 0 {
			t.Errorf("it was resumed %d times, and lapsed %d", v.Resumes, v.Lapses)
		}
	})
}

// What is due is a sweep's, and no recovery's; what somebody is at work on is neither's.
func TestSweepsAndRecoveriesPickTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		lease, err := p.store.Acquire(t.Context(), run, "somebody")
		if err != nil {
			t.Fatal(err)
		}
		lasts(time.Hour)
		picks := func(name string, want int, call func(context.Context) ([]string, error)) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if runs, err := call(ctx); err != nil || len(runs) != want {
				t.Errorf("%s: %q, %v; want %d", name, runs, err, want)
			}
		}
		picks("swept beside a lease", 0, p.rt.Sweep)
		if err := p.store.Release(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		picks("recovered", 0, p.rt.Recover)
		picks("swept", 1, p.rt.Sweep)
		p.stands(run, continuation.StatusExpired, continuation.Expired)
	})
}

// A stop of a run at work may outlive both who was told and who told: whoever recovers takes it.
func TestAStopThatWasPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &pawltest.Mortal{Store: &memory.Store{}}
		b := dag.New[Talk]("talk")
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			return err
		})
		dag.Step(b, "beside", func(ctx context.Context, _ *Talk) error {
			<-ctx.Done()
			return ctx.Err()
		})
		g := frozen(t, b)
		p := begin(t, g, store, continuation.Options{})
		ctx, dies := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.d.Start(ctx, run, nil) })
		synctest.Wait()
		store.Kill()
		q := begin(t, g, store.Store, continuation.Options{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.rt.Stop(short, run, continuation.Stopping{Reason: continuation.CancelledByUser, By: "ann"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("stopped: %v", err)
		}
		dies()
		wg.Wait()
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if runs, err := q.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
			t.Errorf("recovered %q, %v", runs, err)
		}
		if v := q.stands(run, continuation.StatusCancelled, continuation.CancelledByUser); v.By != "ann" {
			t.Errorf("by %q", v.By)
		}
	})
}

// Of the parts of All that have their triggers a failure has the one asked again whose trigger came
// last, and counts for no other; nor is it a lapse of one that others are still waited for.
func TestAFailureBehindAll(t *testing.T) {
	fails := true
	w := continuation.All(continuation.Wait{Key: "a"}, continuation.Wait{Key: "b"}, continuation.Wait{Key: "c"})
	p := talk(t, waiting(t, w, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if fails {
			fails = false
			return errWeather
		}
		return says(ctx, s, r)
	}))
	for _, key := range []string{"b", "a", "c"} {
		if _, err := p.rt.Trigger(t.Context(), reply2("t-"+key, key)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, v := range all {
		last := v.Expects[0].Key == "c"
		if v.Failures == 1 != last || v.Trigger == nil != last || v.Lapses > 0 {
			t.Errorf("the part %s has failed %d times and lapsed %d, its trigger is %+v", v.Expects[0].Key, v.Failures, v.Lapses, v.Trigger)
		}
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("t-again", "c")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v", out, err)
	}
}

// A wait that has ended with its run has ended, though the run was rewound since: who has stopped
// it, and why, stays known.
func TestAStopBeforeARewindStays(t *testing.T) {
	b := dag.New[Talk]("stopped")
	dag.Step(b, "node", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		return err
	})
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser, Why: "enough", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	before, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(before) != 1 || before[0].Reason != continuation.CancelledByUser {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := p.d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	after, err := begin(t, frozen(t, b), p.store, continuation.Options{}).rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(after) != 1 || after[0].Status != before[0].Status || after[0].Reason != before[0].Reason ||
		after[0].Why != before[0].Why || after[0].By != before[0].By {
		t.Errorf("behind a rewind the wait is %+v, %v; want %+v", after, err, before)
	}
}

// Recover goes on with what has its trigger, and with what a process has left that died, also if
// something else that waits in the run is overdue.
func TestRecoverBesideWhatIsOverdue(t *testing.T) {
	for name, dies := range map[string]bool{"left": false, "died": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &pawltest.Mortal{Store: &memory.Store{}}
				b := dag.New[Talk]("talk")
				for name, within := range map[string]time.Duration{"a": 24 * time.Hour, "b": time.Hour} {
					dag.Step(b, name, func(ctx context.Context, s *Talk) error {
						if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name, Within: within}); err != nil {
							return err
						}
						s.Said.Append(name)
						return nil
					})
				}
				g := frozen(t, b)
				p := begin(t, g, store, continuation.Options{})
				p.waits(run)
				tr := reply2("t", "a")
				tr.LeaveIt = !dies
				if dies {
					store.DieAfter(2) // the trigger, and that the run goes on
				}
				if _, err := p.rt.Trigger(t.Context(), tr); (err != nil) != dies {
					t.Fatal(err)
				}
				if dies {
					if err := store.Revive(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				p = begin(t, g, store, continuation.Options{})
				lasts(2 * time.Hour)
				if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != 1 {
					t.Errorf("recovered %q, %v; want the run", runs, err)
				}
				if v := p.at("a"); v.Status != continuation.StatusResolved {
					t.Errorf("what has its trigger is %s (%s: %s)", v.Status, v.Reason, v.Why)
				}
			})
		})
	}
}

// A trigger for a timer of a run at work, whose instant has come by the Runtime's clock alone, is
// refused as one that comes at a bad moment: nothing has expired, and the timer wakes.
func TestATimerOfARunAtWorkByAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("talk")
		dag.Step(b, "sleeps", func(ctx context.Context, s *Talk) error {
			_, err := continuation.Await[string](ctx, "wake", continuation.Wait{Kind: continuation.KindTimer, Key: "wake", After: time.Hour})
			if err == nil {
				s.Said.Append("woken")
			}
			return err
		})
		dag.Step(b, "works", func(context.Context, *Talk) error { lasts(2 * time.Hour); return nil })
		p := under(t, dispatcher.Options{}, frozen(t, b), &memory.Store{}, continuation.Options{Now: func() time.Time { return time.Now().Add(time.Minute) }})
		var wg sync.WaitGroup
		wg.Go(func() {
			if res, err := p.d.Run(t.Context(), run, nil); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("the run is %s, %v", res.Status, err)
			}
		})
		lasts(time.Hour - 30*time.Second)
		early := continuation.Trigger{ID: "w", Run: run, Kind: continuation.KindTimer, Key: "wake", Actor: continuation.Actor{Authority: dag.System}}
		var bad *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), early); !errors.As(err, &bad) || errors.Is(err, dag.ErrExpired) {
			t.Errorf("the trigger: %v", err)
		}
		wg.Wait()
		p.stands(run, continuation.StatusResolved, continuation.Completed)
	})
}
