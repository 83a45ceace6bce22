package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
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

// timed is what a node says of a timer.
func timed(_ context.Context, s *Talk, r continuation.Reply[string]) error {
	switch {
	case r.Missed:
		s.Said.Append("missed")
	case r.Kind == continuation.KindTimer:
		s.Said.Append("on time")
	default:
		s.Said.Append(r.Payload)
	}
	return nil
}

func afterAnHour() continuation.Wait {
	return continuation.Wait{Kind: continuation.KindTimer, Key: "wake", After: time.Hour}
}

// serves runs Serve until the test is over.
func (p *process) serves(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.rt.Serve(ctx, func(err error) { p.t.Errorf("serving: %v", err) }); !errors.Is(err, context.Canceled) {
			p.t.Errorf("Serve returned %v", err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// A trigger has Serve look when its run waits again, and not while that is at work: what the run
// waits for then ends in its time.
func TestServeLooksBehindATrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("talk")
		ask := dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			if err != nil {
				return err
			}
			lasts(time.Second)
			return says(ctx, s, r)
		})
		dag.Step(b, "wake", func(ctx context.Context, s *Talk) error {
			w := continuation.Wait{Kind: continuation.KindTimer, Key: "wake", After: time.Second}
			r, err := continuation.Await[string](ctx, "wake", w)
			if err != nil {
				return err
			}
			return timed(ctx, s, r)
		}, ask)
		p := talk(t, frozen(t, b))
		defer p.serves(t.Context())()
		synctest.Wait() // Serve has looked, and nothing was due
		if _, err := p.rt.Trigger(t.Context(), reply("t1", "yes")); err != nil {
			t.Fatal(err)
		}
		lasts(time.Second)
		synctest.Wait()
		if said := p.said(run); !slices.Equal(said, []string{"yes", "on time"}) {
			t.Errorf("a second behind the trigger the run has said %q", said)
		}
	})
}

// A process dies behind a trigger that it has accepted. The wait reads as pending, with that
// trigger and with the attempt counted; another trigger is refused, and whoever recovers gives the
// node the first.
func TestLife25CrashBehindATrigger(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	bodies := 0
	dies := true
	g := waiting(t, continuation.Wait{Key: "k"}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if bodies++; dies {
			store.Kill()
		}
		return says(ctx, s, r)
	})
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply2("t1", "k")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	dies = false
	q := begin(t, g, store, continuation.Options{})
	v := q.stands(run, continuation.StatusPending, "")
	if v.Trigger == nil || v.Trigger.Trigger != "t1" || v.Resumes != 1 {
		t.Errorf("after the crash the wait is %+v", v)
	}
	q.unchanged(run, func() {
		var taken *continuation.TakenError
		if _, err := q.rt.Trigger(t.Context(), reply2("t2", "k")); !errors.As(err, &taken) || taken.Trigger != "t1" {
			t.Errorf("another trigger: %v", err)
		}
	})
	if runs, err := q.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Fatalf("recovered %q, %v", runs, err)
	}
	v = q.stands(run, continuation.StatusResolved, continuation.Completed)
	if v.Resumes != 2 || v.Lapses != 1 || bodies != 2 || len(q.said(run)) != 1 {
		t.Errorf("the wait is %+v, the body began %d times", v, bodies)
	}
	q.unchanged(run, func() { // the dead process has nothing to say any more
		if _, err := p.d.Continue(t.Context(), run); err != nil {
			t.Errorf("a process that thinks it goes on: %v", err)
		}
	})
}

// What stands behind a wait is gone on with as well if the process died when the wait had ended: in
// another node, or between two.
func TestCrashBehindAWait(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	kill := store.Kill
	b := dag.New[Talk]("talk")
	ask := dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		s.Said.Append(r.Payload)
		return err
	})
	dag.Step(b, "then", func(_ context.Context, s *Talk) error {
		kill()
		s.Said.Append("done")
		return nil
	}, ask)
	g := frozen(t, b)
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err == nil {
		t.Error("the process has not died")
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill = func() {}
	q := begin(t, g, store, continuation.Options{})
	if runs, err := q.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Errorf("recovered %q, %v", runs, err)
	}
	if said := q.said(run); !slices.Equal(said, []string{"hello", "done"}) {
		t.Errorf("the state says %q", said)
	}
}

// A wait whose processes die again and again is resumed as often as it may be, and not once more:
// the last death counts though nobody has gone on behind it.
func TestCrashesAreBounded(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			store := &pawltest.Mortal{Store: &memory.Store{}}
			deaths := 0
			g := waiting(t, continuation.Wait{Key: "k", Authority: dag.Human, MaxFailures: most}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
				deaths++
				store.Kill()
				return nil
			})
			begin(t, g, store, continuation.Options{}).waits(run)
			for n := range most + 2 {
				p := begin(t, g, store, continuation.Options{})
				if n > 0 {
					if v := p.stands(run, continuation.StatusPending, ""); v.Lapses != min(n, most) || v.Resumes != min(n, most) {
						t.Errorf("behind %d deaths there were %d resumes and %d lapses", deaths, v.Resumes, v.Lapses)
					}
				}
				_, _ = p.rt.Trigger(t.Context(), reply2("t1", "k"))
				_, _ = p.rt.Recover(t.Context())
				if err := store.Revive(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if deaths != most {
				t.Errorf("the node was gone on with %d times, and died each time; want %d", deaths, most)
			}
			begin(t, g, store, continuation.Options{}).isSpent()
		})
	}
}

// isSpent checks that the wait of the run, which has its trigger, is resumed no more.
func (p *process) isSpent() {
	t := p.t
	t.Helper()
	p.unchanged(run, func() {
		var enough *continuation.AttemptsError
		if _, err := p.rt.Recover(t.Context()); !errors.As(err, &enough) {
			t.Errorf("recovered: %v", err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply2("t2", "k")); !errors.As(err, &enough) {
			t.Errorf("a trigger: %v", err)
		}
		if out, err := p.rt.Trigger(t.Context(), reply2("t1", "k")); err != nil || out.Status.Terminal() {
			t.Errorf("the trigger that was accepted: %+v, %v", out, err)
		}
		var mismatch *continuation.MismatchError // comes before it
		tr := reply2("t3", "k")
		tr.Kind = continuation.KindExternal
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &mismatch) {
			t.Errorf("a trigger of another kind: %v", err)
		}
		var authority *continuation.AuthorityError // and so does this
		tr = reply2("t4", "k")
		tr.Actor = robot
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &authority) {
			t.Errorf("a trigger of somebody who may not: %v", err)
		}
	})
}

// A context that ends while a trigger goes on leaves the run to be recovered, and cancels nothing.
func TestAContextThatEndsLeavesTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	again := false
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(inner context.Context, s *Talk, r continuation.Reply[string]) error {
		if !again {
			again = true
			cancel()
			<-inner.Done()
			return inner.Err()
		}
		return says(inner, s, r)
	}))
	out, err := p.rt.Trigger(ctx, reply("t", "hello"))
	if !errors.Is(err, context.Canceled) || out.Trigger != "t" {
		t.Fatalf("%+v, %v", out, err)
	}
	p.stands(run, continuation.StatusPending, "")
	if _, err := p.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
}

// A timer wakes at its instant, and not before: by Serve, or by a sweep. A wake of what has ended,
// or that comes again, is nothing. A stop has no wake to cancel that could fail: nothing is armed
// but what the log says.
func TestLife30WakesAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, afterAnHour(), dag.Policy{}, timed))
		wake := continuation.Trigger{ID: "w", Run: run, Kind: continuation.KindTimer, Key: "wake", Actor: continuation.Actor{Authority: dag.System}}
		p.unchanged(run, func() {
			var early *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), wake); !errors.As(err, &early) {
				t.Errorf("a wake before its time: %v", err)
			}
			if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("swept %q, %v", runs, err)
			}
		})
		stop := p.serves(t.Context())
		lasts(time.Hour)
		synctest.Wait()
		p.stands(run, continuation.StatusResolved, continuation.Completed)
		if said := p.said(run); !slices.Equal(said, []string{"on time"}) {
			t.Errorf("said %q", said)
		}
		p.unchanged(run, func() {
			if _, err := p.rt.Trigger(t.Context(), wake); !errors.Is(err, continuation.ErrTerminal) {
				t.Errorf("a stray wake: %v", err)
			}
			lasts(48 * time.Hour)
		})
		stop()
	})
	synctest.Test(t, func(t *testing.T) { // what is stopped is not woken
		p := talk(t, waiting(t, afterAnHour(), dag.Policy{}, timed))
		stop := p.serves(t.Context())
		if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
			t.Fatal(err)
		}
		p.unchanged(run, func() { lasts(48 * time.Hour) })
		p.stands(run, continuation.StatusCancelled, continuation.CancelledByUser)
		stop()
	})
}

// A process dies at any write of a run that comes to wait for a timer. The next one arms it from
// the log; there is never a timer that nobody knows, nor one that is armed twice.
func TestLife32TimersComeFromTheLog(t *testing.T) {
	for n := 1; ; n++ {
		died := false
		synctest.Test(t, func(t *testing.T) {
			store := &pawltest.Mortal{Store: &memory.Store{}}
			g := waiting(t, afterAnHour(), dag.Policy{}, timed)
			store.DieAfter(n)
			p := begin(t, g, store, continuation.Options{})
			_, _ = p.d.Start(t.Context(), run, nil)
			if died = store.Died(); !died {
				return
			}
			if err := store.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			q := begin(t, g, store, continuation.Options{Recheck: 24 * time.Hour})
			if _, err := q.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			stop := q.serves(t.Context())
			lasts(time.Hour)
			synctest.Wait()
			stop()
			q.stands(run, continuation.StatusResolved, continuation.Completed)
			if said := q.said(run); !slices.Equal(said, []string{"on time"}) {
				t.Errorf("died after write %d, said %q", n, said)
			}
		})
		if !died {
			break
		}
	}
}

// A timer that is later than it may be says so; told to expire, it ends the wait instead. Of Any
// with a timer whatever comes first counts.
func TestMissedTimers(t *testing.T) {
	expire := afterAnHour()
	expire.OnExpire = continuation.Expire()
	for _, c := range []struct {
		wait continuation.Wait
		off  time.Duration
		want string
	}{
		{afterAnHour(), time.Hour, "on time"},
		{afterAnHour(), 2*time.Hour - 1, "on time"},
		{afterAnHour(), 2 * time.Hour, "missed"},
		{expire, 90 * time.Minute, "on time"},
		{expire, 2 * time.Hour, ""},
		{continuation.Any(continuation.Wait{}, afterAnHour()), time.Hour, "on time"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := talk(t, waiting(t, c.wait, dag.Policy{}, timed))
			lasts(c.off)
			if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) != 1 {
				t.Fatalf("swept %q, %v", runs, err)
			}
			said := p.said(run)
			if len(said) > 1 || len(said) == 1 && said[0] != c.want || len(said) == 0 && c.want != "" {
				t.Errorf("after %v said %q, want %q", c.off, said, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Any(continuation.Wait{}, afterAnHour()), dag.Policy{}, timed))
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		lasts(2 * time.Hour)
		if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("swept %q, %v", runs, err)
		}
		if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
			t.Errorf("said %q", said)
		}
	})
}

// A scheduler outside may tell that an instant has come, once or again.
func TestWakeFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, afterAnHour(), dag.Policy{}, timed))
		wake := continuation.Trigger{ID: "w", Key: "wake", Kind: continuation.KindTimer, Actor: continuation.Actor{Authority: dag.System}}
		lasts(time.Hour)
		out, err := p.rt.Trigger(t.Context(), wake)
		if err != nil || out.Status != continuation.StatusResolved || out.Trigger != "" || out.Key != "wake" {
			t.Errorf("%+v, %v", out, err)
		}
		p.unchanged(run, func() {
			if _, err := p.rt.Trigger(t.Context(), wake); !errors.Is(err, continuation.ErrTerminal) {
				t.Errorf("again: %v", err)
			}
		})
		if said := p.said(run); !slices.Equal(said, []string{"on time"}) {
			t.Errorf("said %q", said)
		}
	})
}

// A wait that nobody can end when it is due, since the store fails, is tried again, and not all the
// time.
func TestServeTriesAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		tries := 0
		rt, err := continuation.New(&meddler{p.d, func() { tries++ }, errWeather}, continuation.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 64*time.Minute+30*time.Second)
		defer cancel()
		told := 0
		if err := rt.Serve(ctx, func(err error) {
			if told++; !errors.Is(err, errWeather) {
				t.Errorf("told %v", err)
			}
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Serve returned %v", err)
		}
		if tries != told || tries < 2 || tries > 6 {
			t.Errorf("tried %d times in 4 minutes and a half, told %d times", tries, told)
		}
	})
}

// Who does not answer is asked again, or somebody else is, or a default counts.
func TestExpiriesGoOn(t *testing.T) {
	approval := continuation.Wait{Kind: continuation.KindApproval, Within: time.Hour, Authority: dag.Agent}
	synctest.Test(t, func(t *testing.T) {
		w := approval
		w.OnExpire = continuation.Escalate(dag.Human, 3*time.Hour)
		p := talk(t, waiting(t, w, dag.Policy{}, says))
		id := p.only(run).ID
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := p.stands(run, continuation.StatusPending, "")
		if v.ID != id || v.Level != 2 || v.Expects[0].Authority != dag.Human || !v.Until.Equal(time.Now().Add(3*time.Hour)) {
			t.Errorf("escalated it is %+v", v)
		}
		var no *continuation.AuthorityError
		tr := decide("t1", continuation.Approved)
		tr.Wait, tr.Actor = id, robot
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &no) {
			t.Errorf("the first authority: %v", err)
		}
		tr.ID, tr.Actor = "t2", ann
		if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("the second authority: %+v, %v", out, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := approval
		w.OnExpire = continuation.Again(2)
		p := talk(t, waiting(t, w, dag.Policy{}, says))
		stop := p.serves(t.Context())
		for level := range 3 {
			synctest.Wait()
			if v := p.stands(run, continuation.StatusPending, ""); v.Level != level+1 {
				t.Errorf("it is asked for the %d-th time, want %d", v.Level, level+1)
			}
			lasts(time.Hour)
		}
		synctest.Wait()
		stop()
		p.stands(run, continuation.StatusExpired, continuation.Expired)
	})
	synctest.Test(t, func(t *testing.T) { // as often as can be said
		w := approval
		w.OnExpire = continuation.Again(math.MaxInt)
		p := talk(t, waiting(t, w, dag.Policy{}, says))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := p.stands(run, continuation.StatusPending, ""); v.Level != 2 {
			t.Errorf("it is asked for the %d-th time, want 2", v.Level)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := continuation.Wait{OnExpire: continuation.Default("nothing")}
		p := talk(t, waiting(t, w, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			if !r.Default {
				t.Error("the reply is not marked")
			}
			return says(ctx, s, r)
		}))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said := p.said(run); !slices.Equal(said, []string{"nothing"}) {
			t.Errorf("said %q", said)
		}
		p.stands(run, continuation.StatusResolved, continuation.Completed)
	})
}

// What is safe is approved in nobody's name, unless a person is required; and a sweep tells of
// which runs.
func TestSafeToAutoExecute(t *testing.T) {
	for authority, want := range map[dag.Authority]continuation.Status{
		"": continuation.StatusPending, dag.Human: continuation.StatusPending, dag.Agent: continuation.StatusPending,
		continuation.Anybody: continuation.StatusResolved, dag.System: continuation.StatusResolved,
	} {
		w := continuation.Wait{Kind: continuation.KindApproval, Authority: authority, SafeToAutoExecute: true}
		p := talk(t, waiting(t, w, dag.Policy{}, says))
		for _, sweeps := range []bool{want == continuation.StatusResolved, false} {
			if runs, err := p.rt.Sweep(t.Context()); err != nil || slices.Contains(runs, run) != sweeps || len(runs) > 1 {
				t.Errorf("with the authority %q: swept %q, %v", authority, runs, err)
			}
		}
		v := p.only(run)
		if v.Status != want || want == continuation.StatusResolved && v.Trigger.Actor.Authority != dag.System {
			t.Errorf("with the authority %q it is %+v", authority, v)
		}
	}
}

// Of several approvals that are safe one is enough.
func TestSafeToAutoExecuteOnce(t *testing.T) {
	safe := func(key string) continuation.Wait {
		return continuation.Wait{Kind: continuation.KindApproval, Key: key, Authority: dag.System, SafeToAutoExecute: true}
	}
	p := talk(t, waiting(t, continuation.Any(safe("a"), safe("b")), dag.Policy{}, says))
	if runs, err := p.rt.Sweep(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Errorf("swept %q, %v", runs, err)
	}
	if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Trigger.Key != "a" {
		t.Errorf("it was approved under the key %q", v.Trigger.Key)
	}
}

// A torn store can't read one run.
type torn struct {
	*memory.Store
	run string
}

func (s *torn) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	if run != s.run {
		return s.Store.Read(ctx, run, from, to)
	}
	return func(yield func(checkpoint.Entry, error) bool) {
		yield(checkpoint.Entry{}, &checkpoint.CorruptError{Run: run, Seq: 1, Reason: "it is torn"})
	}
}

// A run that can't be read is told, and keeps no other from being gone on with, or delivered.
func TestARunThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory.Store{}
		w := continuation.Wait{Within: time.Hour, OnExpire: continuation.Default("none")}
		g := waiting(t, w, dag.Policy{}, says)
		p := begin(t, g, store, continuation.Options{})
		for _, id := range []string{"a", "b", "c"} {
			p.waits(id, dispatcher.Labels(continuation.Owed(nil)))
		}
		lasts(time.Hour)
		q := begin(t, g, &torn{store, "b"}, continuation.Options{Deliverer: &postman{}})
		for name, call := range map[string]func(context.Context) ([]string, error){"a sweep": q.rt.Sweep, "a recovery": q.rt.Recover} {
			if _, err := call(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if runs, err := q.rt.Deliver(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) || !slices.Equal(runs, []string{"a", "c"}) {
			t.Errorf("delivered %q, %v", runs, err)
		}
	})
}
