package continuation_test

import (
	"context"
	"errors"
	"slices"
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

// looped is a process of which a loop asks for the third time, in its third iteration.
func looped(t *testing.T, w continuation.Wait) *process {
	t.Helper()
	b := dag.New[Talk]("looped")
	dag.Loop(b, "loop", waiting(t, w, dag.Policy{}, says), func(*Talk) bool { return false }, 4)
	p := talk(t, frozen(t, b))
	for _, id := range []string{"t1", "t2"} {
		if _, err := p.rt.Trigger(t.Context(), reply(id, id)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// voids has a frame begin anew, and the run go on.
func (p *process) voids(path string) {
	p.t.Helper()
	if err := p.d.Edit(p.t.Context(), run, func(s *Talk) { s.Said.Append("first") }, dispatcher.EditOptions{Void: []string{path}}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.d.Run(p.t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		p.t.Fatal(err)
	}
}

// A loop that an edit has voided asks in its first iteration again. A trigger that names the run,
// or the key, is for that, and not for what waited in iterations to which the run has still to
// come: each of them takes another one.
func TestALoopThatIsVoidedAsksOnceAtATime(t *testing.T) {
	p := looped(t, continuation.Wait{Key: "chat"})
	p.voids("loop")
	if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("recovered %q, %v, though nothing has its trigger", runs, err)
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, v := range all {
		if v.Status != continuation.StatusPending || v.Trigger != nil {
			t.Errorf("%s is %s, and has %+v", v.Path, v.Status, v.Trigger)
		}
	}
	for _, i := range []int{1, 2} { // one that had its trigger, and one that had none
		tr := reply("early", "x")
		tr.Wait = all[i].ID
		p.unchanged(run, func() {
			var no *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &no) || no.Wait != tr.Wait {
				t.Errorf("a trigger for %s: %v; want that the run is not there", all[i].Path, err)
			}
		})
	}
	for i, tr := range []continuation.Trigger{reply("t3", "x"), reply2("t4", "chat"), reply("t5", "x"), reply2("t6", "chat")} {
		out, err := p.rt.Trigger(t.Context(), tr)
		if err != nil || out.Status != continuation.StatusResolved || i < 3 && out.Wait != all[i].ID {
			t.Fatalf("trigger %s: %+v, %v", tr.ID, out, err)
		}
	}
	if _, err := p.d.Run(t.Context(), run, nil); err != nil {
		t.Error(err)
	}
}

// A trigger that was accepted and not heard when its frame is voided has the run go on, once, and
// is the same when it is repeated.
func TestATriggerInAFrameThatIsVoided(t *testing.T) {
	p := looped(t, continuation.Wait{})
	left := reply("t3", "x")
	left.LeaveIt = true
	first, err := p.rt.Trigger(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.d.Edit(t.Context(), run, func(s *Talk) { s.Said.Append("first") }, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0} {
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != want {
			t.Errorf("recovery %d: %q, %v; want %d runs", i+1, runs, err, want)
		}
	}
	if again, err := p.rt.Trigger(t.Context(), left); err != nil || again.Receipt != first.Receipt || again.Status != continuation.StatusPending {
		t.Errorf("repeated it is %+v, %v; was %+v", again, err, first)
	}
	if out, err := p.rt.Trigger(t.Context(), reply("t4", "x")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("what is asked anew: %+v, %v", out, err)
	}
}

// A trigger for a wait that is still to be asked again, by somebody who has the run, waits for
// that, however long it takes, and is what the wait takes. One whose context ends before has
// changed nothing.
func TestATriggerForWhatIsStillToBeAskedAgain(t *testing.T) {
	for name, voids := range map[string]bool{"its frame was voided": true, "it has expired": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slow time.Duration
				in := dag.New[Talk]("inner")
				dag.Step(in, "ask", func(ctx context.Context, s *Talk) error {
					lasts(slow)
					r, err := continuation.Await[string](ctx, "answer", continuation.Wait{OnExpire: continuation.Again(1)})
					if err != nil {
						return err
					}
					return says(ctx, s, r)
				})
				b := dag.New[Talk]("outer")
				dag.Loop(b, "loop", frozen(t, in), func(*Talk) bool { return true }, 3)
				p := talk(t, frozen(t, b))
				if !voids {
					lasts(time.Hour)
				} else if err := p.d.Edit(t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
					t.Fatal(err)
				}
				slow = time.Minute
				ended := make(chan error, 1)
				go func() { // waited for below
					_, err := p.d.Run(context.Background(), run, nil)
					ended <- err
				}()
				lasts(time.Second)
				short, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				p.unchanged(run, func() {
					if _, err := p.rt.Trigger(short, reply("early", "x")); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a trigger that has ten seconds: %v", err)
					}
				})
				if out, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil || out.Status != continuation.StatusResolved {
					t.Errorf("while the run is at work: %+v, %v", out, err)
				}
				if err := <-ended; err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Error(err)
				}
				if said := p.said(run); !slices.Equal(said, []string{"x"}) {
					t.Errorf("said %q", said)
				}
			})
		})
	}
}

// Failures and deaths behind triggers are those of a visit: the one that comes in its place, when
// its frame was voided, may have as many again.
func TestAFrameThatIsVoidedForgetsFailures(t *testing.T) {
	in := waiting(t, continuation.Wait{MaxFailures: 1}, dag.Policy{Attempts: 2}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if r.Payload == "bad" {
			return errWeather
		}
		return says(ctx, s, r)
	})
	b := dag.New[Talk]("outer")
	dag.Loop(b, "loop", in, func(*Talk) bool { return false }, 2)
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Trigger(t.Context(), reply("t1", "good")); err != nil {
		t.Fatal(err)
	}
	failed, err := p.rt.Trigger(t.Context(), reply("t2", "bad"))
	if err != nil || failed.EndReason != continuation.MaxAttempts {
		t.Fatalf("%+v, %v", failed, err)
	}
	p.voids("loop")
	for _, id := range []string{"t3", "t4"} {
		if v, err := p.rt.Get(t.Context(), failed.Wait); err != nil || v.Status != continuation.StatusPending || v.Failures != 0 || v.Resumes != 0 {
			t.Errorf("before %s the wait that had failed is %+v, %v", id, v, err)
		}
		if out, err := p.rt.Trigger(t.Context(), reply(id, "good")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("trigger %s: %+v, %v", id, out, err)
		}
	}
}

// So it is of a death of which the log does not tell yet when the frame is voided.
func TestAFrameThatIsVoidedForgetsADeath(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	in := waiting(t, continuation.Wait{}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
		store.Kill()
		return nil
	})
	b := dag.New[Talk]("outer")
	dag.Loop(b, "loop", in, func(*Talk) bool { return true }, 2)
	p := begin(t, frozen(t, b), store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = begin(t, frozen(t, b), store, continuation.Options{})
	if v := p.only(run); v.Lapses != 1 {
		t.Errorf("behind the death it is %+v", v)
	}
	if err := p.d.Edit(t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
		t.Fatal(err)
	}
	if v := p.only(run); v.Lapses != 0 {
		t.Errorf("behind the edit it is %+v", v)
	}
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
		t.Fatal(err)
	}
	if v := p.only(run); v.Lapses != 0 {
		t.Errorf("behind the stop it is %+v", v)
	}
}

// A trigger that was left in a frame that is voided ends nothing: what is asked anew takes another.
func TestATriggerThatIsLeftInAFrameThatIsVoided(t *testing.T) {
	b := dag.New[Talk]("outer")
	dag.Loop(b, "loop", waiting(t, continuation.Wait{}, dag.Policy{}, says), func(*Talk) bool { return true }, 2)
	p := talk(t, frozen(t, b))
	tr := reply("t", "left")
	tr.LeaveIt = true
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if err := p.d.Edit(t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
		t.Fatal(err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply("u", "hello")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("another trigger: %+v, %v", out, err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
		t.Errorf("said %q", said)
	}
}

// Where a superstep can't be merged its visits are voided: a wait of one is not resolved, and its
// trigger counts when the run is gone on with.
func TestAWaitInASuperstepThatConflicts(t *testing.T) {
	conflicts := true
	b := dag.New[Talk]("conflict")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		if err == nil {
			s.Said.Append(r.Payload)
		}
		return err
	})
	dag.Step(b, "beside", func(_ context.Context, s *Talk) error {
		if conflicts {
			s.Said.Replace([]string{"mine"})
		}
		return nil
	})
	p := talk(t, frozen(t, b))
	if out, err := p.rt.Trigger(t.Context(), reply("t", "hello")); out.Status == continuation.StatusResolved {
		t.Errorf("where it conflicts: %+v, %v", out, err)
	}
	if v := p.only(run); !slices.Contains(p.kinds(run), checkpoint.Voided) || v.Status == continuation.StatusResolved {
		t.Errorf("behind the conflict it is %+v; the log has %v", v, p.kinds(run))
	}
	conflicts = false
	if _, err := p.d.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
	if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
		t.Errorf("said %q", said)
	}
}

// twice is a process of which a visit inside a frame asks one thing, and then two.
func twice(t *testing.T) *process {
	t.Helper()
	in := dag.New[Talk]("inner")
	first := dag.Step(in, "first", func(context.Context, *Talk) error { return nil })
	dag.Step(in, "ask", func(ctx context.Context, s *Talk) error {
		for _, name := range []string{"one", "two"} {
			r, err := continuation.Await[string](ctx, name, continuation.Wait{Key: name})
			if err != nil {
				return err
			}
			s.Said.Append(r.Payload)
		}
		return nil
	}, first)
	b := dag.New[Talk]("outer")
	same := func(from, to *Talk) {}
	dag.Embed(b, "frame", frozen(t, in), same, same)
	return talk(t, frozen(t, b))
}

// What its visit has asked behind it before is not waited for: the visit runs again for the trigger
// of what it asks anew, and that is counted.
func TestAWaitAskedAnewIsHeardByItself(t *testing.T) {
	p := twice(t)
	one := p.only(run).ID
	for _, id := range []string{"t1", "t2"} {
		if out, err := p.rt.Trigger(t.Context(), reply2(id, "one")); err != nil || out.Status != continuation.StatusResolved {
			t.Fatalf("%+v, %v", out, err)
		}
		if v, err := p.rt.Get(t.Context(), one); err != nil || v.Resumes != 1 {
			t.Errorf("behind %s its visit was gone on with %d times, %v", id, v.Resumes, err)
		}
		if id == "t1" {
			p.voids("frame")
		}
	}
}

// A wait that was asked anew keeps its id in what is told of its trigger, also when the log is
// trimmed of how it was asked first.
func TestAWaitAskedAnewKeepsItsIDBehindATrim(t *testing.T) {
	p := twice(t)
	id := p.only(run).ID
	p.voids("frame")
	tr := reply("t", "x")
	tr.Wait = id
	first, err := p.rt.Trigger(t.Context(), tr)
	if err != nil || first.Wait != id {
		t.Fatalf("%+v, %v; want the wait %s", first, err, id)
	}
	if err := p.d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	if again, err := p.rt.Trigger(t.Context(), tr); err != nil || again != first {
		t.Errorf("behind the trim it is %+v, %v; was %+v", again, err, first)
	}
	if v, err := p.rt.Get(t.Context(), id); err != nil || v.ID != id || v.Status != continuation.StatusResolved {
		t.Errorf("the wait is %+v, %v", v, err)
	}
}
