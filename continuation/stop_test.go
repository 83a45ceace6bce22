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

func freshStore() checkpoint.Store { return &memory.Store{} }

func entryOf(k checkpoint.Kind) func(checkpoint.Kind) bool {
	return func(x checkpoint.Kind) bool { return x == k }
}

// A stop of what has ended changes nothing; one of a run that is at work behind a trigger is final,
// and reaches its node.
func TestLife29StopIsFinal(t *testing.T) {
	for _, stopped := range []continuation.Reason{continuation.CancelledByUser, continuation.CancelledByProduct, "bored"} {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		end, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: stopped, Why: "enough: really", By: "ann"})
		if err != nil || end.Reason != stopped || end.By != "ann" || end.Why != "enough: really" {
			t.Fatalf("stopped: %+v, %v", end, err)
		}
		p.stands(run, stopped.Status(), stopped)
		p.unchanged(run, func() {
			again, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByProduct, By: "bob"})
			if err != nil || again != end {
				t.Errorf("stopped again: %+v, %v", again, err)
			}
			if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); !errors.Is(err, continuation.ErrTerminal) {
				t.Errorf("a trigger: %v", err)
			}
		})
	}

	begun := make(chan struct{})
	var cause error
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, _ *Talk, _ continuation.Reply[string]) error {
		close(begun)
		<-ctx.Done()
		cause = context.Cause(ctx)
		return ctx.Err()
	}))
	var wg sync.WaitGroup
	var out continuation.Outcome
	var err error
	wg.Go(func() { out, err = p.rt.Trigger(t.Context(), reply("t", "x")) })
	<-begun
	p.stands(run, continuation.StatusClaimed, "")
	end, serr := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser, By: "ann"})
	wg.Wait()
	if serr != nil || end.Status != checkpoint.StatusCancelled || end.Reason != continuation.CancelledByUser || cause == nil {
		t.Errorf("stopped at work: %+v, %v; the node was told %v", end, serr, cause)
	}
	if err != nil || out.Status != continuation.StatusCancelled {
		t.Errorf("its trigger came to %+v, %v", out, err)
	}
	p.stands(run, continuation.StatusCancelled, continuation.CancelledByUser)
}

// A stop tells truthfully how a run has ended of which a node finishes just then: before the
// cancel, or when that has come to it. What has nothing left to do is completed all the same.
func TestStopOfARunThatFinishes(t *testing.T) {
	for name, c := range map[string]struct {
		told  bool // the node finishes when the cancel has come
		steps int  // of the run
		want  continuation.Reason
	}{
		"before the cancel":                {false, 2, continuation.Completed},
		"behind the cancel, with the run":  {true, 1, continuation.Completed},
		"behind the cancel, before others": {true, 2, continuation.CancelledByUser},
	} {
		t.Run(name, func(t *testing.T) {
			begun, free := make(chan struct{}), make(chan struct{})
			b := dag.New[Talk]("talk")
			last := dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
				if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{}); err != nil {
					return err
				}
				close(begun)
				if c.told {
					<-ctx.Done()
				} else {
					<-free
				}
				return nil
			})
			if c.steps > 1 {
				dag.Step(b, "last", func(context.Context, *Talk) error { return nil }, last)
			}
			p := talk(t, frozen(t, b))
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = p.rt.Trigger(t.Context(), reply("t", "x")) })
			<-begun
			rt, err := continuation.New(&canceller{p.d, func(string) error {
				if !c.told {
					close(free)
					wg.Wait()
				}
				return nil
			}}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			end, err := rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser})
			wg.Wait()
			if err != nil || end.Reason != c.want {
				t.Errorf("stopped: %+v, %v; want %s", end, err, c.want)
			}
			p.stands(run, continuation.StatusResolved, continuation.Completed) // its visit is done
		})
	}
}

// Runs that begin to wait in one instant have waits of their own; a run of an id that is there is
// refused.
func TestLife33WaitsHaveTheirIDs(t *testing.T) {
	p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { p.waits(fmt.Sprint("r", i)) })
	}
	wg.Wait()
	all, err := p.rt.List(t.Context(), continuation.Filter{})
	ids := map[string]bool{}
	for _, v := range all {
		ids[v.ID] = true
	}
	if err != nil || len(ids) != 50 {
		t.Errorf("%d ids of 50 waits, %v", len(ids), err)
	}
	p.unchanged("r7", func() {
		if _, err := p.d.Start(t.Context(), "r7", nil); !errors.Is(err, dispatcher.ErrExists) {
			t.Errorf("the same run once more: %v", err)
		}
	})
}

// A newer run of a scope ends what waits in the older ones, and their follow-ups.
func TestLife34NewerRunsSupersede(t *testing.T) {
	p := begin(t, waiting(t, continuation.Wait{Key: "k"}, dag.Policy{}, says), freshStore(), continuation.Options{})
	scope := map[string]string{"session": "s1"}
	for _, id := range []string{"old", "new"} {
		p.waits(id, dispatcher.Labels(continuation.Owed(scope)))
	}
	p.waits("other", dispatcher.Labels(map[string]string{"session": "s2"}))
	ends, err := p.rt.Supersede(t.Context(), scope, "new", "chat")
	if err != nil || len(ends) != 1 || ends[0].Run != "old" || ends[0].By != "chat" {
		t.Fatalf("superseded %+v, %v", ends, err)
	}
	if v := p.stands("old", continuation.StatusSuperseded, continuation.Superseded); v.Delivery != continuation.SuppressedSuperseded {
		t.Errorf("its delivery is %s", v.Delivery)
	}
	p.stands("new", continuation.StatusPending, "")
	p.stands("other", continuation.StatusPending, "")
	p.unchanged("old", func() {
		tr := reply2("t", "k")
		tr.Run = "old"
		if _, err := p.rt.Trigger(t.Context(), tr); !errors.Is(err, continuation.ErrTerminal) {
			t.Errorf("a trigger for it: %v", err)
		}
		if ends, err := p.rt.Supersede(t.Context(), scope, "new", "chat"); err != nil || len(ends) > 0 {
			t.Errorf("superseded again: %+v, %v", ends, err)
		}
	})
	views, err := p.rt.List(t.Context(), continuation.Filter{Scope: scope, Status: []continuation.Status{continuation.StatusPending}})
	if err != nil || len(views) != 1 || views[0].Run != "new" {
		t.Errorf("what waits in the scope: %+v, %v", views, err)
	}
	if slices.ContainsFunc(p.kinds("new"), entryOf(checkpoint.Cancelled)) {
		t.Error("the new run was cancelled")
	}
}

// A meddler has something happen just before a run is gone on with.
type meddler struct {
	continuation.Runs
	meddle func()
	fails  error // of Continue
}

func (m *meddler) Continue(ctx context.Context, run string, o ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	if m.meddle(); m.fails != nil {
		return nil, m.fails
	}
	return m.Runs.Continue(ctx, run, o...)
}

// A run that is stopped just before it would have been gone on with stays stopped.
func TestStopBeforeTheRunGoesOn(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
		t.Error("the body has run")
		return nil
	}))
	rt, err := continuation.New(&meddler{p.d, func() {
		if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser, By: "ann"}); err != nil {
			t.Error(err)
		}
	}, nil}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := rt.Trigger(t.Context(), reply("t", "hello"))
	if err != nil || out.Status != continuation.StatusCancelled || out.EndReason != continuation.CancelledByUser {
		t.Errorf("%+v, %v", out, err)
	}
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("recovered %q, %v", runs, err)
		}
	})
}

// What waits when a run fails for another reason, or at a deadline, has failed with it, and waits
// again when somebody resumes the run.
func TestWaitsOfARunThatFails(t *testing.T) {
	fails := true
	p := begin(t, beside(t, &fails), freshStore(), continuation.Options{})
	if _, err := p.d.Start(t.Context(), run, nil); !errors.Is(err, errWeather) {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusFailed, continuation.RunFailed)
	p.unchanged(run, func() {
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); !errors.Is(err, continuation.ErrTerminal) {
			t.Errorf("a trigger: %v", err)
		}
		if end, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil || end.Reason != continuation.RunFailed {
			t.Errorf("stopped: %+v, %v", end, err)
		}
	})
	fails = false
	if _, err := p.d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v", out, err)
	}
}

// Whoever was told to stop may die before it does: Stop sees to it then.
func TestStopOutlivesWhoeverIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		lease, err := p.store.Acquire(t.Context(), run, "somebody who dies")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() { _ = p.store.Release(context.Background(), lease) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		end, err := p.rt.Stop(ctx, run, continuation.Stopping{Reason: continuation.CancelledByUser})
		if err != nil || end.Reason != continuation.CancelledByUser {
			t.Errorf("stopped: %+v, %v", end, err)
		}
	})
}

// beside is a graph of a node that waits, and one that fails as long as it is to.
func beside(t *testing.T, fails *bool) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("beside")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		s.Said.Append(r.Payload)
		return err
	})
	dag.Step(b, "other", func(context.Context, *Talk) error {
		if *fails {
			return errWeather
		}
		return nil
	})
	return frozen(t, b)
}

// A stop holds against triggers, sweeps and recoveries. Who calls the dispatcher's Run decides that
// the run is to go on: what waited waits again, until the instant that it had.
func TestAStoppedRunThatIsBroughtBack(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), dispatcher.Labels(continuation.Owed(nil)))
	was := p.only(run)
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
		t.Fatal(err)
	}
	p.unchanged(run, func() {
		if _, err := p.rt.Trigger(t.Context(), reply("t1", "x")); !errors.Is(err, continuation.ErrTerminal) {
			t.Errorf("a trigger: %v", err)
		}
		swept, _ := p.rt.Sweep(t.Context())
		if recovered, _ := p.rt.Recover(t.Context()); len(swept)+len(recovered) > 0 {
			t.Errorf("swept %q, recovered %q", swept, recovered)
		}
	})
	if v := p.stands(run, continuation.StatusCancelled, continuation.CancelledByUser); v.Delivery != continuation.NotApplicable {
		t.Errorf("its delivery is %s", v.Delivery)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	v := p.stands(run, continuation.StatusPending, "")
	if v.ID != was.ID || !v.Until.Equal(was.Until) || v.By != "" || v.Why != "" || v.Delivery != continuation.DeliveryPending {
		t.Errorf("brought back it is %+v, and was %+v", v, was)
	}
	if out, err := p.rt.Trigger(t.Context(), reply("t1", "x")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("a trigger: %+v, %v", out, err)
	}
}

// A trigger that was accepted before the stop counts when the run is brought back, and the stop is
// no lapse of whoever was at work.
func TestAStoppedRunKeepsItsTrigger(t *testing.T) {
	begun, stopped := make(chan struct{}), false
	p := talk(t, waiting(t, continuation.Wait{MaxFailures: 1}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if !stopped {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		}
		return says(ctx, s, r)
	}))
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.rt.Trigger(t.Context(), reply("t", "hello")) })
	<-begun
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	stopped = true
	if _, err := p.d.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	v := p.stands(run, continuation.StatusResolved, continuation.Completed)
	if v.Lapses != 0 || v.Resumes != 2 || v.Trigger.Trigger != "t" {
		t.Errorf("brought back it is %+v", v)
	}
	if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
		t.Errorf("the state says %q", said)
	}
}

// A denial cancels its run once. Who brings the run back has its node hear of the denial, and
// nobody cancels it again.
func TestADeniedRunThatIsBroughtBack(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, says))
	if out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied)); err != nil || out.Status != continuation.StatusCancelled {
		t.Fatalf("denied: %+v, %v", out, err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrDenied) {
		t.Errorf("brought back it ends with %v", err)
	}
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("recovered %q, %v", runs, err)
		}
		if out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied)); err != nil || out.EndReason != continuation.ApprovalDenied {
			t.Errorf("the same denial: %+v, %v", out, err)
		}
	})
	p.stands(run, continuation.StatusCancelled, continuation.ApprovalDenied)
}

// A denial that nobody has heeded cancels its run, also if its visit has failed with it meanwhile
// and is voided then, or the frame around it.
func TestADenialInAVisitThatIsVoided(t *testing.T) {
	for _, void := range []string{"", "frame/ask", "frame"} {
		t.Run(void, func(t *testing.T) {
			in := dag.New[Talk]("inner")
			waits := func(name string, kind continuation.Kind) dag.Node[Talk] {
				return dag.Step(in, name, func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Kind: kind})
					return err
				})
			}
			ask, other := waits("ask", continuation.KindApproval), waits("other", continuation.KindReply)
			dag.Step(in, "instead", func(context.Context, *Talk) error { return nil }, dag.Any(ask, ask.Failed()), other)
			b, same := dag.New[Talk]("outer"), func(*Talk, *Talk) {}
			dag.Embed(b, "frame", frozen(t, in), same, same)
			p := talk(t, frozen(t, b))
			rt, err := continuation.New(&canceller{p.d, func(string) error { return errWeather }}, continuation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rt.Trigger(t.Context(), decide("t", continuation.Denied)); !errors.Is(err, errWeather) {
				t.Fatalf("denied: %v", err)
			}
			if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) || !slices.Contains(p.kinds(run), checkpoint.AttemptFailed) {
				t.Fatalf("the node was told, and the other one waits: %v", err)
			}
			if void != "" {
				if err := p.d.Edit(t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{void}}); err != nil {
					t.Fatal(err)
				}
			}
			if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != 1 {
				t.Errorf("recovered %q, %v", runs, err)
			}
			if v := p.at("frame/ask"); v.Status != continuation.StatusCancelled || v.Reason != continuation.ApprovalDenied || v.Why != "because" || v.By != "ann" {
				t.Errorf("the wait is %+v", v)
			}
			if res, err := p.d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
				t.Errorf("the run is %s, %v", res.Status, err)
			}
		})
	}
}

// So it is if whoever goes on with the run has its node ask again before. Who brings the run back
// behind that may approve of it.
func TestADenialOfWhatIsAskedAnew(t *testing.T) {
	b := dag.New[Talk]("outer")
	in := waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, says)
	dag.Loop(b, "frame", in, func(*Talk) bool { return true }, 2)
	p := talk(t, frozen(t, b))
	rt, err := continuation.New(&canceller{p.d, func(string) error { return errWeather }}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Trigger(t.Context(), decide("t", continuation.Denied)); !errors.Is(err, errWeather) {
		t.Fatalf("denied: %v", err)
	}
	p.voids("frame")
	p.stands(run, continuation.StatusCancelled, continuation.ApprovalDenied)
	var no *continuation.TerminalError
	if _, err := rt.Trigger(t.Context(), decide("early", continuation.Approved)); !errors.As(err, &no) {
		t.Errorf("an approval before the run is cancelled: %v", err)
	}
	for i, want := range []int{1, 0} {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != want {
			t.Errorf("recovery %d: %q, %v; want %d runs", i+1, runs, err, want)
		}
	}
	if res, err := p.d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
		t.Fatalf("the run is %s, %v", res.Status, err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusPending, "")
	if out, err := p.rt.Trigger(t.Context(), decide("late", continuation.Approved)); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("brought back: %+v, %v", out, err)
	}
}

// Who brings it back may deny again as well, which cancels the run again.
func TestADenialBehindADenial(t *testing.T) {
	b := dag.New[Talk]("outer")
	in := waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, says)
	dag.Loop(b, "frame", in, func(*Talk) bool { return true }, 2)
	p := talk(t, frozen(t, b))
	rt, err := continuation.New(&canceller{p.d, func(string) error { return errWeather }}, continuation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Trigger(t.Context(), decide("t", continuation.Denied)); !errors.Is(err, errWeather) {
		t.Fatalf("denied: %v", err)
	}
	p.voids("frame")
	if _, err := p.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusPending, "")
	if out, err := p.rt.Trigger(t.Context(), decide("again", continuation.Denied)); err != nil || out.EndReason != continuation.ApprovalDenied {
		t.Errorf("denied again: %+v, %v", out, err)
	}
	if res, err := p.d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
		t.Errorf("the run is %s, %v", res.Status, err)
	}
}

// A wait goes on whose run has failed behind its trigger, as long as it may have another one. A
// stop of that run ends it, for the reason of the stop.
func TestAStopOfAFailedRunThatMayBeTriedAgain(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
		return errWeather
	}))
	tr := reply("t", "hello")
	tr.LeaveIt = true
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Run(t.Context(), run, nil); err == nil { // a Runtime would have it ask again at once
		t.Fatal("it has not failed")
	}
	p.stands(run, continuation.StatusPending, "")
	end, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser, Why: "enough", By: "ann"})
	if err != nil || end.Reason != continuation.CancelledByUser {
		t.Errorf("stopped: %+v, %v", end, err)
	}
	if v := p.stands(run, continuation.StatusCancelled, continuation.CancelledByUser); v.Why != "enough" || v.By != "ann" {
		t.Errorf("it is %+v", v)
	}
}

// A scope that is empty would be that of every run: it is refused, and stops none.
func TestSupersedeNeedsAScope(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), dispatcher.Labels(continuation.Owed(nil)))
	for _, scope := range []map[string]string{nil, {}} {
		p.unchanged(run, func() {
			var refused *continuation.ArgumentError
			ends, err := p.rt.Supersede(t.Context(), scope, "", "chat")
			if !errors.As(err, &refused) || refused.What != "the scope" || len(ends) > 0 {
				t.Errorf("superseded %+v, %v, want an ArgumentError about the scope", ends, err)
			}
		})
	}
	p.stands(run, continuation.StatusPending, "")
}

// A stop of a run whose process has died does not end what that was at: it lapsed, before the run
// is brought back and behind that.
func TestAStopForgetsNoLapse(t *testing.T) {
	for name, stop := range map[string]func(*process) error{
		"Stop": func(p *process) error {
			_, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser})
			return err
		},
		"a Cancel with an author": func(p *process) error {
			return p.d.Cancel(t.Context(), run, errWeather, dispatcher.Author("ann"))
		},
	} {
		store := &pawltest.Mortal{Store: &memory.Store{}}
		g := waiting(t, continuation.Wait{MaxFailures: 1}, dag.Policy{}, says)
		p := begin(t, g, store, continuation.Options{})
		p.waits(run)
		left := reply("t", "hello")
		left.LeaveIt = true
		if _, err := p.rt.Trigger(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		store.DieBefore(2) // the first write says that the run goes on
		if _, err := p.rt.Recover(t.Context()); !errors.Is(err, pawltest.ErrDead) {
			t.Fatalf("recovered: %v", err)
		}
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		p = begin(t, g, store, continuation.Options{})
		if v := p.only(run); v.Resumes != 1 || v.Lapses != 1 {
			t.Fatalf("the wait of the dead process is %+v", v)
		}
		if err := stop(p); err != nil {
			t.Fatal(err)
		}
		if v := p.only(run); v.Status != continuation.StatusCancelled || v.Resumes != 1 || v.Lapses != 1 {
			t.Errorf("behind %s the wait is %+v, want one lapse", name, v)
		}
		if _, err := p.d.Run(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Resumes != 2 || v.Lapses != 1 {
			t.Errorf("brought back from %s the wait is %+v, want one lapse", name, v)
		}
	}
}

// A cause with which somebody else has cancelled a run is not that of a stop for a reason for which
// none is: a run that was cancelled is not completed, whatever its cause says.
func TestCausesThatAreLikeThoseOfStops(t *testing.T) {
	for _, cause := range []string{"stopped: completed", "stopped: completed: by hand", "stopped: " + strings.Repeat("a", 65), "stopped: at noon", "stopped: "} {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		if err := p.d.Cancel(t.Context(), run, errors.New(cause)); err != nil {
			t.Fatal(err)
		}
		if v := p.stands(run, continuation.StatusCancelled, continuation.CancelledByProduct); v.Why != cause {
			t.Errorf("it was cancelled for %q, want %q", v.Why, cause)
		}
	}
}

// Nor is the error of a node that of a bound which is used up, whatever it says: the wait goes on,
// as behind any other error.
func TestErrorsThatAreLikeThoseOfBounds(t *testing.T) {
	for _, text := range []string{"the auction ended: max_attempts", "the trip ended: max_hops are four"} {
		fails := true
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			if fails {
				return errors.New(text)
			}
			return says(ctx, s, r)
		}))
		if _, err := p.rt.Trigger(t.Context(), reply("1", "hello")); err != nil {
			t.Fatal(err)
		}
		if v := p.stands(run, continuation.StatusPending, ""); v.Failures != 1 {
			t.Errorf("behind %q the wait has %d failures", text, v.Failures)
		}
		fails = false
		if out, err := p.rt.Trigger(t.Context(), reply("2", "again")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("behind %q: %+v, %v", text, out, err)
		}
	}
}
