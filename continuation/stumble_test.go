package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// stumbling is a graph whose node fails where before says so, before it comes to its wait, and
// where the payload is bad, behind it.
func stumbling(t testing.TB, w continuation.Wait, p dag.Policy, before func(attempt int) error) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		if err := before(dag.Attempt(ctx)); err != nil {
			return err
		}
		r, err := continuation.Await[string](ctx, "answer", w)
		if err != nil {
			return err
		}
		all := append([]continuation.Reply[string]{r}, r.Parts...)
		if slices.ContainsFunc(all, func(r continuation.Reply[string]) bool { return r.Payload == "bad" }) {
			return errWeather
		}
		return says(ctx, s, all[len(all)-1])
	}).With(p)
	return frozen(t, b)
}

// An attempt that fails before it comes to its wait has not failed behind a trigger: the wait is
// asked again by the next one, and takes as many triggers as it says.
func TestAFailureBeforeAWaitIsNoneBehindIt(t *testing.T) {
	weather := func(attempts ...int) func(int) error {
		return func(n int) error {
			if slices.Contains(attempts, n) {
				return errWeather
			}
			return nil
		}
	}
	one := continuation.Wait{Key: "k", MaxFailures: 2}
	for name, of := range map[string]struct {
		wait   continuation.Wait
		before func(int) error
	}{
		"once":          {one, weather(2)},
		"several times": {one, weather(2, 3, 4, 5)},
		"of an Any":     {continuation.Any(one, continuation.Wait{Key: "other"}), weather(2)},
		"of an All":     {continuation.All(continuation.Wait{Key: "other"}, one), weather(2, 3)},
	} {
		for _, frame := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := stumbling(t, of.wait, dag.Policy{Attempts: 10}, of.before)
				if frame {
					b := dag.New[Talk]("outer")
					dag.Loop(b, "loop", g, func(*Talk) bool { return true }, 3)
					g = frozen(t, b)
				}
				p := talk(t, g)
				triggers := func(id, key, text string) continuation.Outcome {
					t.Helper()
					x := reply(id, text)
					x.Key = key
					out, err := p.rt.Trigger(t.Context(), x)
					if err != nil {
						t.Fatalf("trigger %s: %v", id, err)
					}
					return out
				}
				if name == "of an All" {
					triggers("t0", "other", "good")
				}
				first := triggers("t1", "k", "bad")
				v, err := p.rt.Get(t.Context(), first.Wait)
				if err != nil || v.Status != continuation.StatusPending || v.Failures != 1 || v.Resumes != 1 {
					t.Errorf("behind one trigger the wait is %+v, %v", v, err)
				}
				if out := triggers("t2", "k", "good"); out.Status != continuation.StatusResolved || out.Wait != first.Wait {
					t.Errorf("the second trigger: %+v", out)
				}
				if said := p.said(run); !slices.Equal(said, []string{"good"}) {
					t.Errorf("the state says %q", said)
				}
			})
		}
	}
}

// Nobody goes on with a run by himself more often than the bound of its wait says, also if no
// attempt comes to ask again.
func TestFailuresBeforeAWaitAreBounded(t *testing.T) {
	ran := 0
	p := talk(t, stumbling(t, continuation.Wait{Key: "k", MaxFailures: 3}, dag.Policy{}, func(n int) error {
		if ran++; n > 1 {
			return errWeather
		}
		return nil
	}))
	out, err := p.rt.Trigger(t.Context(), reply("t1", "bad"))
	if err != nil || out.Status != continuation.StatusFailed || ran != 2+2 {
		t.Errorf("%+v, %v; the node ran %d times, want to ask, behind the trigger, and twice in vain", out, err, ran)
	}
	if v := p.stands(run, continuation.StatusFailed, continuation.RunFailed); v.Failures != 1 || v.Resumes != 1 {
		t.Errorf("%d failures, %d resumes; want one behind the trigger", v.Failures, v.Resumes)
	}
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("recovered %q, %v", runs, err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply("t2", "good")); !errors.Is(err, continuation.ErrTerminal) {
			t.Errorf("the second trigger: %v", err)
		}
	})
}

// Nor if the process dies each time before the attempt comes to ask again.
func TestCrashesBeforeAWaitAreBounded(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	dies := true
	g := stumbling(t, continuation.Wait{Key: "k", MaxFailures: 3}, dag.Policy{Attempts: 10}, func(n int) error {
		if n > 1 && dies {
			store.Kill()
			return errWeather
		}
		return nil
	})
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	_, _ = p.rt.Trigger(t.Context(), reply("t1", "bad"))
	recoveries := 0
	var spent *continuation.AttemptsError
	for ; recoveries < 10; recoveries++ {
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		p = begin(t, g, store, continuation.Options{})
		if _, err := p.rt.Recover(t.Context()); errors.As(err, &spent) {
			break
		}
	}
	if spent == nil || recoveries != 2 { // and the trigger's own resume is the first
		t.Errorf("recovered %d times, %v", recoveries, spent)
	}
	if v := p.only(run); v.Failures != 1 || v.Lapses != 0 {
		t.Errorf("it is %+v; want a failure, and no lapse behind that", v)
	}
	dies = false
	if out, err := p.rt.Trigger(t.Context(), reply("t2", "good")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("a second trigger: %+v, %v", out, err)
	}
}

// A visit that an edit runs again has its trigger as before: what fails then fails behind it.
func TestAFailureBehindAVoidCounts(t *testing.T) {
	b := dag.New[Talk]("talk")
	ask := dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "k", MaxFailures: 1}); err != nil {
			return err
		}
		return errWeather
	})
	for name, edges := range map[string][]dag.Edge[Talk]{"instead": {ask.Failed()}, "beside": nil} {
		dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			_, err := dag.Ask[string](ctx, name, name)
			return err
		}, edges...)
	}
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "k")); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusFailed, continuation.MaxAttempts)
	err := p.d.Edit(t.Context(), run, func(s *Talk) { s.Said.Append("first") }, dispatcher.EditOptions{Void: []string{"ask"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusFailed, continuation.MaxAttempts); v.Failures != 2 || v.Resumes != 2 {
		t.Errorf("%d failures, %d resumes; want two each", v.Failures, v.Resumes)
	}
}

// A trigger whose context has ended returns, also if the store does not answer any more.
func TestATriggerOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory.Faulty{}
		ctx, cancel := context.WithCancel(t.Context())
		store.FailRead = func(of context.Context, method, _ string) error {
			if ctx.Err() == nil || method != "Stat" && method != "Read" {
				return nil
			}
			<-of.Done()
			return of.Err()
		}
		p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(of context.Context, _ *Talk, _ continuation.Reply[string]) error {
			cancel()
			<-of.Done()
			return of.Err()
		}), store, continuation.Options{})
		p.waits(run)
		ended := make(chan error, 1)
		go func() { // ends ten seconds behind ctx
			_, err := p.rt.Trigger(ctx, reply("t", "hello"))
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the trigger = %v", err)
			}
		case <-time.After(time.Hour):
			t.Fatal("the trigger does not return")
		}
	})
}

// stumblesAside is a graph whose node fails behind its wait, and what follows that failure. A turn
// of which the state says something asks nothing.
func stumblesAside(t testing.TB, instead func(context.Context, *Talk) error) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("aside")
	ask := dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		if s.Said.Len() == 0 {
			if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{}); err != nil {
				return err
			}
		}
		return errWeather
	})
	dag.Step(b, "instead", instead, ask.Failed())
	return frozen(t, b)
}

// A visit that has failed behind a trigger, and whose failure was followed, is not tried again: a
// run that fails behind that is left as it is, and why the wait has ended stays what it was.
func TestAFailureThatWasFollowedIsNotTriedAgain(t *testing.T) {
	ran := 0
	p := talk(t, stumblesAside(t, func(context.Context, *Talk) error {
		ran++
		return errors.New("a wall")
	}))
	out, err := p.rt.Trigger(t.Context(), reply("t", "x"))
	if err != nil || out.Status != continuation.StatusFailed || out.EndReason != continuation.RunFailed {
		t.Errorf("%+v, %v", out, err)
	}
	if v := p.stands(run, continuation.StatusFailed, continuation.RunFailed); v.Why != errWeather.Error() {
		t.Errorf("why is %q", v.Why)
	}
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("recovered %q, %v", runs, err)
		}
	})
	if ran != 1 {
		t.Errorf("what follows the failure has run %d times, and may once", ran)
	}
}

// What has failed behind a trigger in a turn has ended there, and waits no more when a later turn
// fails.
func TestAFailureOfAnEarlierTurnWaitsNoMore(t *testing.T) {
	fails := false
	p := talk(t, stumblesAside(t, func(_ context.Context, s *Talk) error {
		s.Said.Append("instead")
		if fails {
			return errors.New("a wall")
		}
		return nil
	}))
	if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil {
		t.Fatal(err)
	}
	fails = true
	if res, err := p.d.Turn(t.Context(), run, nil); err == nil || res.Status != checkpoint.StatusFailed {
		t.Fatalf("the next turn is %s, %v", res.Status, err)
	}
	p.stands(run, continuation.StatusFailed, continuation.RunFailed)
	if _, err := p.rt.Trigger(t.Context(), reply("t2", "x")); !errors.Is(err, continuation.ErrTerminal) {
		t.Errorf("a trigger for it: %v", err)
	}
}

// Nor does what has failed before a rewind, when the run fails behind that.
func TestAFailureBeforeARewindWaitsNoMore(t *testing.T) {
	b := dag.New[Talk]("rewound")
	awaits := func(name string, most int) dag.Node[Talk] {
		return dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name, MaxFailures: most}); err != nil {
				return err
			}
			return errWeather
		})
	}
	dag.Step(b, "instead", func(context.Context, *Talk) error { return nil }, awaits("one", 2).Failed())
	awaits("two", 1)
	p := talk(t, frozen(t, b))
	if out, err := p.rt.Trigger(t.Context(), reply2("t1", "one")); err != nil || out.EndReason != continuation.RunFailed {
		t.Fatalf("%+v, %v", out, err)
	}
	if err := p.d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("t2", "two")); err != nil || out.EndReason != continuation.MaxAttempts {
		t.Fatalf("%+v, %v", out, err)
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, v := range all {
		if !v.Status.Terminal() {
			t.Errorf("wait %s of %s is %s, and the run has failed", v.ID, v.Path, v.Status)
		}
	}
}

// Nor is an item tried again of an Each that is done without it, though the superstep of that has
// not ended.
func TestAFailureInAnEachThatIsDoneIsNotTriedAgain(t *testing.T) {
	fails := func(key string, most int) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: key, MaxFailures: most}); err != nil {
				return err
			}
			return errWeather
		}
	}
	b := dag.New[Talk]("items")
	dag.Each(b, "each", func(*Talk) []string { return []string{"item"} }, func(ctx context.Context, _ *Talk, key string) error {
		return fails(key, 3)(ctx)
	}).With(dag.Policy{Errors: dag.Collect})
	dag.Step(b, "beside", func(ctx context.Context, _ *Talk) error { return fails("beside", 1)(ctx) })
	p := talk(t, frozen(t, b))
	item, err := p.rt.Trigger(t.Context(), reply2("t1", "item"))
	if err != nil || item.EndReason != continuation.RunFailed {
		t.Fatalf("%+v, %v", item, err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("t2", "beside")); err != nil || out.EndReason != continuation.MaxAttempts {
		t.Fatalf("%+v, %v", out, err)
	}
	if v, err := p.rt.Get(t.Context(), item.Wait); err != nil || v.Status != continuation.StatusFailed || v.Why != errWeather.Error() {
		t.Errorf("the wait of the item is %s since %q, %v", v.Status, v.Why, err)
	}
}

// A wait that came to its default has ended, and counts as a hop.
func TestADefaultIsAHop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("hops")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			if _, err := continuation.Await[string](ctx, "one", continuation.Wait{OnExpire: continuation.Default("x")}); err != nil {
				return err
			}
			_, err := continuation.Await[string](ctx, "two", continuation.Wait{MaxHops: 1})
			return err
		})
		p := talk(t, frozen(t, b))
		lasts(continuation.DefaultWithin)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.stands(run, continuation.StatusFailed, continuation.MaxHops)
	})
}

// So has one that nobody answered in time: reminders end.
func TestAnExpiryIsAHop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("hops")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			for k := range 9 {
				_, err := continuation.Await[string](ctx, fmt.Sprint("reminder ", k), continuation.Wait{Within: time.Hour, MaxHops: 3})
				if ended := (*continuation.Ended)(nil); !errors.As(err, &ended) || ended.Reason != continuation.Expired {
					return err
				}
			}
			return nil
		})
		p := talk(t, frozen(t, b))
		for range 3 {
			lasts(2 * time.Hour)
			if _, err := p.rt.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all, err := p.rt.List(t.Context(), continuation.Filter{})
		if err != nil || len(all) != 3 {
			t.Fatalf("the waits are %+v, %v; want three", all, err)
		}
		for _, v := range all {
			if v.Status != continuation.StatusExpired {
				t.Errorf("%s is %s (%s)", v.Name, v.Status, v.Reason)
			}
		}
		if res, err := p.d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusFailed {
			t.Errorf("the run is %s, %v", res.Status, err)
		}
	})
}

// A wait beside one whose visit has failed and is tried again goes on with the run: it has not
// ended, and takes its trigger.
func TestAWaitBesideAFailureThatIsTriedAgain(t *testing.T) {
	store, fails := &pawltest.Mortal{Store: &memory.Store{}}, true
	b := dag.New[Talk]("talk")
	for _, name := range []string{"left", "right"} {
		dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Any(continuation.Wait{Key: name},
				continuation.Wait{Kind: continuation.KindTimer, Key: "wake " + name, After: time.Hour}))
			if err == nil && fails {
				return errWeather
			}
			s.Said.Append(r.Payload)
			return err
		})
	}
	g := frozen(t, b)
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	store.DieAfter(3) // the trigger, that the run goes on, and that it has failed
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "left")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	fails = false
	p = begin(t, g, store, continuation.Options{})
	if res, err := p.d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusFailed {
		t.Fatalf("the run is %s, %v; want failed", res.Status, err)
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 2 || all[0].Status != continuation.StatusPending || all[1].Status != continuation.StatusPending {
		t.Fatalf("of a run that is tried again the waits are %+v, %v; want them pending", all, err)
	}
	early := continuation.Trigger{ID: "w", Run: run, Kind: continuation.KindTimer, Key: "wake right", Actor: continuation.Actor{Authority: dag.System}}
	if _, err := p.rt.Trigger(t.Context(), early); !errors.As(err, new(*continuation.MismatchError)) {
		t.Errorf("a wake before its time: %v", err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("u", "right")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("the wait beside it: %+v, %v", out, err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("v", "left")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("the wait that is asked again: %+v, %v", out, err)
	}
}

// diesBeside has a run whose visits wait, left fail behind its trigger, and the process die in
// right. It returns the next process.
func (p *process) diesBeside(g *dag.Graph[Talk], store *pawltest.Mortal) *process {
	p.t.Helper()
	p.waits(run)
	first := reply2("t", "left")
	first.LeaveIt = true
	if _, err := p.rt.Trigger(p.t.Context(), first); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.rt.Trigger(p.t.Context(), reply2("u", "right")); !errors.Is(err, pawltest.ErrDead) {
		p.t.Fatalf("the trigger of the other: %v", err)
	}
	if err := store.Revive(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	return begin(p.t, g, store, continuation.Options{})
}

// A visit that has failed behind a trigger beside one that goes on waiting is not tried again where
// its failure is followed: while its superstep is open too, and also if the process dies then.
func TestAFailureThatWillBeFollowedIsNotTriedAgain(t *testing.T) {
	store, failed, died := &pawltest.Mortal{Store: &memory.Store{}}, make(chan struct{}), false
	b := dag.New[Talk]("aside")
	awaits := func(name string, p dag.Policy, then func(trigger string) error) dag.Node[Talk] {
		return dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name, MaxFailures: 9})
			if err != nil {
				return err
			}
			return then(r.Trigger)
		}).With(p)
	}
	left := awaits("left", dag.Policy{}, func(string) error { return errWeather })
	right := awaits("right", dag.Policy{Attempts: 9}, func(trigger string) error {
		switch {
		case trigger == "well":
			return nil
		case !died:
			<-failed
			died = true
			store.Kill()
		}
		return errWeather
	})
	dag.Step(b, "instead", func(context.Context, *Talk) error { return nil }, dag.Any(left, left.Failed()), right)
	g := frozen(t, b)
	p := under(t, dispatcher.Options{Paranoid: true, Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.AttemptFailed {
			close(failed)
		}
	}}, g, store, continuation.Options{})
	p = p.diesBeside(g, store)
	if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != 1 {
		t.Fatalf("recovered %q, %v; want the run", runs, err)
	}
	for _, c := range []struct {
		trigger string
		want    continuation.Status
	}{{"v", continuation.StatusPending}, {"well", continuation.StatusResolved}} {
		p.unchanged(run, func() {
			if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("before %s were recovered %q, %v", c.trigger, runs, err)
			}
		})
		if out, err := p.rt.Trigger(t.Context(), reply2(c.trigger, "right")); err != nil || out.Status != c.want {
			t.Errorf("%s: %+v, %v", c.trigger, out, err)
		}
		if v := p.at("left"); v.Status != continuation.StatusFailed || v.Reason != continuation.RunFailed || v.Why != errWeather.Error() {
			t.Errorf("behind %s the wait that failed is %+v", c.trigger, v)
		}
	}
}

// While a run is at work nobody knows whether a failure behind a trigger is followed: the wait has
// not ended, and takes another trigger when the run has come to rest.
func TestAFailureBesideWhatIsAtWorkEndsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := true
		b := dag.New[Talk]("talk")
		dag.Step(b, "left", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "left"})
			if err == nil && fails {
				return errWeather
			}
			s.Said.Append(r.Payload)
			return err
		})
		dag.Step(b, "right", func(ctx context.Context, _ *Talk) error {
			if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "right"}); err != nil {
				return err
			}
			lasts(time.Minute)
			fails = false
			return nil
		})
		p := talk(t, frozen(t, b))
		first := reply2("t", "left")
		first.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if out, err := p.rt.Trigger(t.Context(), reply2("u", "right")); err != nil || out.Status != continuation.StatusResolved {
				t.Errorf("the trigger of the other: %+v, %v", out, err)
			}
		})
		lasts(time.Second)
		all, err := p.rt.List(t.Context(), continuation.Filter{Status: []continuation.Status{continuation.StatusClaimed}})
		if err != nil || len(all) != 2 {
			t.Errorf("at work the waits are %+v, %v; want two that are claimed", all, err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply2("v", "left")); !errors.Is(err, continuation.ErrTaken) {
			t.Errorf("another trigger at once: %v", err)
		}
		both.Wait()
		if out, err := p.rt.Trigger(t.Context(), reply2("v", "left")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("another trigger behind that: %+v, %v", out, err)
		}
	})
}

// A wait whose trigger came while its run was live was gone on with, and that failed: its view
// counts one of each.
func TestAFailureInALiveRun(t *testing.T) {
	asked, free, ended := make(chan struct{}, 2), make(chan struct{}), make(chan error, 1)
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{}); err != nil {
			return err
		}
		return errWeather
	}).With(dag.Policy{Attempts: 2})
	dag.Step(b, "work", func(context.Context, *Talk) error { <-free; return nil })
	p := under(t, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitInterrupted {
			asked <- struct{}{}
		}
	}}, frozen(t, b), freshStore(), continuation.Options{})
	go func() { // waited for below
		_, err := p.d.Start(context.Background(), run, nil)
		ended <- err
	}()
	<-asked
	tr := reply("t", "hello")
	tr.LeaveIt = true
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Error(err)
	}
	<-asked
	if v := p.only(run); v.Resumes != 1 || v.Failures != 1 || v.Lapses != 0 {
		t.Errorf("it was resumed %d times, %d of them failed and %d lapsed", v.Resumes, v.Failures, v.Lapses)
	}
	close(free)
	if err := <-ended; !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Error(err)
	}
}

// A visit that has failed behind a trigger, and whose failure will be followed, or that of the
// frame around it, has failed however often the run is gone on with and cancelled while its
// superstep is open: the log says so with the failure.
func TestAFailureThatWillBeFollowedStaysThatInACancelledRun(t *testing.T) {
	fails := func(ctx context.Context, _ *Talk) error {
		if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "left", MaxFailures: 9}); err != nil {
			return err
		}
		return errWeather
	}
	for path, add := range map[string]func(*dag.Builder[Talk]) dag.Edge[Talk]{
		"left": func(b *dag.Builder[Talk]) dag.Edge[Talk] { return dag.Step(b, "left", fails).Failed() },
		"around/left": func(b *dag.Builder[Talk]) dag.Edge[Talk] {
			inner := dag.New[Talk]("inner")
			dag.Step(inner, "left", fails)
			return dag.Embed(b, "around", frozen(t, inner), func(*Talk, *Talk) {}, func(*Talk, *Talk) {}).Failed()
		},
	} {
		t.Run(path, func(t *testing.T) { failsAndIsCancelled(t, path, add) })
	}
}

func failsAndIsCancelled(t *testing.T, path string, add func(*dag.Builder[Talk]) dag.Edge[Talk]) {
	t.Helper()
	store, failed, begun, died := &pawltest.Mortal{Store: &memory.Store{}}, make(chan struct{}), make(chan struct{}), false
	b := dag.New[Talk]("aside")
	left := add(b)
	right := dag.Step(b, "right", func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "right"})
		switch {
		case err != nil:
			return err
		case !died:
			<-failed
			died = true
			store.Kill()
			return errWeather
		}
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	dag.Step(b, "instead", func(context.Context, *Talk) error { return nil }, dag.Any(left, right))
	g := frozen(t, b)
	p := under(t, dispatcher.Options{Paranoid: true, Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.AttemptFailed && e.Path == strings.TrimSuffix(path, "/left") {
			close(failed)
		}
	}}, g, store, continuation.Options{})
	p = p.diesBeside(g, store)
	for again := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if res, err := p.d.Run(ctx, run, nil); res.Status != checkpoint.StatusCancelled {
			t.Fatalf("it is %s, %v; want it cancelled", res.Status, err)
		}
		if v := p.at(path); v.Status != continuation.StatusFailed || v.Reason != continuation.RunFailed || v.Why != errWeather.Error() {
			t.Errorf("cancelled %d times, the wait that failed is %+v", again+1, v)
		}
	}
}
