package continuation_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An approval without a key that is asked again, because what stood behind it failed, is the same
// approval still: no reply goes round it, and nobody ends it who could not before.
func TestAnApprovalAskedAgainIsOne(t *testing.T) {
	fails := true
	p := talk(t, waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
		if fails {
			fails = false
			return errWeather
		}
		s.Said.Append("approved by " + r.Actor.ID)
		return nil
	}))
	first := p.only(run)
	if _, err := p.rt.Trigger(t.Context(), decide("t1", continuation.Approved)); err != nil {
		t.Fatal(err)
	}
	again := p.stands(run, continuation.StatusPending, "")
	if again.ID != first.ID || !reflect.DeepEqual(again.Expects, first.Expects) {
		t.Errorf("asked again it is %+v, was %+v", again, first)
	}
	p.unchanged(run, func() {
		var mismatch *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), reply("t2", "yes")); !errors.As(err, &mismatch) {
			t.Errorf("a reply: %v", err)
		}
		agent := decide("t3", continuation.Approved)
		agent.Actor = robot
		var no *continuation.AuthorityError
		if _, err := p.rt.Trigger(t.Context(), agent); !errors.As(err, &no) {
			t.Errorf("an agent: %v", err)
		}
	})
	if _, err := p.rt.Trigger(t.Context(), decide("t4", continuation.Approved)); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
	if said := p.said(run); !slices.Equal(said, []string{"approved by ann"}) {
		t.Errorf("the state says %q", said)
	}
}

// A wait that was asked again counts anew: its second trigger is the one that it has, and that is
// gone on with once.
func TestTheSecondTriggerOfAWait(t *testing.T) {
	fails := true
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if fails {
			fails = false
			return errWeather
		}
		return says(ctx, s, r)
	}))
	if _, err := p.rt.Trigger(t.Context(), reply("t1", "one")); err != nil {
		t.Fatal(err)
	}
	second := reply("t2", "two")
	second.LeaveIt = true
	if out, err := p.rt.Trigger(t.Context(), second); err != nil || out.Trigger != "t2" {
		t.Fatalf("%+v, %v; want the receipt of t2", out, err)
	}
	p.unchanged(run, func() {
		var taken *continuation.TakenError
		if _, err := p.rt.Trigger(t.Context(), reply("t3", "three")); !errors.As(err, &taken) || taken.Trigger != "t2" {
			t.Errorf("a third: %v", err)
		}
	})
	if _, err := p.rt.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Resumes != 2 || v.Failures != 1 || v.Lapses != 0 {
		t.Errorf("%d resumes, %d failures, %d lapses", v.Resumes, v.Failures, v.Lapses)
	}
}

// What a visit asks behind a wait by other means is no lapse of it: the wait has ended, and nobody
// is to go on with it.
func TestQuestionsBehindAWait(t *testing.T) {
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		if err != nil {
			return err
		}
		for _, name := range []string{"one", "two", "three", "four"} {
			said, err := dag.Ask[string](ctx, name, name)
			if err != nil {
				return err
			}
			s.Said.Append(said)
		}
		return says(ctx, s, r)
	})
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Trigger(t.Context(), reply("t", "last")); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Lapses > 0 || v.Resumes != 1 {
			t.Errorf("it was resumed %d times, and lapsed %d", v.Resumes, v.Lapses)
		}
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("recovered %q, %v", runs, err)
		}
		p.answers(run, "x")
	}
	if said := p.said(run); !slices.Equal(said, []string{"x", "x", "x", "x", "last"}) {
		t.Errorf("the state says %q", said)
	}
}

// Nor is it when a gate wants an approval of what the visit does with its trigger.
func TestAGateBehindAWait(t *testing.T) {
	g := waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		for _, key := range []string{"one", "two", "three", "four"} {
			if _, err := dag.Effect(ctx, key, key, func(context.Context, string) (int, error) { return 1, nil }); err != nil {
				return err
			}
		}
		return says(ctx, s, r)
	})
	gates := dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"ask#*"}}}
	p := under(t, gates, g, freshStore(), continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if v := p.stands(run, continuation.StatusPending, ""); v.Lapses > 0 || v.Trigger == nil {
			t.Errorf("it has lapsed %d times, and its trigger is %v", v.Lapses, v.Trigger)
		}
		p.answers(run, dispatcher.Approve)
	}
	if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Lapses > 0 || v.Failures > 0 {
		t.Errorf("in the end it has lapsed %d times, and failed %d", v.Lapses, v.Failures)
	}
}

// A visit that an edit has run again keeps its trigger, and Recover goes on with it.
func TestAVisitThatIsVoidedKeepsItsTrigger(t *testing.T) {
	b := dag.New[Talk]("talk")
	ran := 0
	for _, name := range []string{"ask", "beside"} {
		dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: name})
			if err == nil {
				ran++
			}
			s.Said.Append(r.Payload)
			return err
		})
	}
	p := talk(t, frozen(t, b))
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "ask")); err != nil {
		t.Fatal(err)
	}
	err := p.d.Edit(t.Context(), run, func(s *Talk) { s.Said.Append("first") }, dispatcher.EditOptions{Void: []string{"ask"}})
	if err != nil {
		t.Fatal(err)
	}
	stands := func(want continuation.Status) {
		t.Helper()
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
		k := slices.IndexFunc(all, func(v continuation.View) bool { return v.Path == "ask" })
		if err != nil || k < 0 || all[k].Status != want || all[k].Trigger == nil {
			t.Errorf("the waits are %+v, %v; want that of ask to be %s", all, err, want)
		}
	}
	stands(continuation.StatusPending)
	if runs, err := p.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) || ran != 2 {
		t.Errorf("recovered %q, %v; the visit has run %d times", runs, err, ran)
	}
	stands(continuation.StatusResolved)
}

// What waits in a frame that an edit has voided does not wait any more, and can't expire: a trigger
// for it has the run ask again, and counts.
func TestAWaitInAFrameThatIsVoided(t *testing.T) {
	for _, later := range []time.Duration{0, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := continuation.Any(continuation.Wait{Key: "soon", Within: time.Hour}, continuation.Wait{Key: "late", Within: 90 * time.Minute})
			b := dag.New[Talk]("looped")
			dag.Loop(b, "loop", waiting(t, w, dag.Policy{}, says), func(*Talk) bool { return true }, 3)
			p := talk(t, frozen(t, b))
			id := p.only(run).ID
			if err := p.d.Edit(t.Context(), run, func(s *Talk) { s.Said.Append("first") }, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
				t.Fatal(err)
			}
			lasts(later)
			if runs, err := p.rt.Sweep(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("swept %q, %v", runs, err)
			}
			p.stands(run, continuation.StatusPending, "")
			if out, err := p.rt.Trigger(t.Context(), reply2("t", "soon")); err != nil || out.Status != continuation.StatusResolved || out.Wait != id {
				t.Errorf("%+v, %v; want the wait %s", out, err, id)
			}
			if said := p.said(run); !slices.Equal(said, []string{"first", "x"}) {
				t.Errorf("the state says %q", said)
			}
		})
	}
}

// A frame of which something has failed does not end before what waits in it.
func TestAWaitInAFrameThatFails(t *testing.T) {
	fails := true
	b := dag.New[Talk]("outer")
	frame := dag.Loop(b, "frame", beside(t, &fails), func(*Talk) bool { return true }, 3)
	dag.Step(b, "instead", func(_ context.Context, s *Talk) error {
		s.Said.Append("instead")
		return nil
	}, frame.Failed())
	p := begin(t, frozen(t, b), freshStore(), continuation.Options{})
	p.waits(run)
	p.stands(run, continuation.StatusPending, "")
	if out, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("%+v, %v", out, err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"hello", "instead"}) {
		t.Errorf("the state says %q", said)
	}
}

// answers answers the only interrupt of a run, and goes on.
func (p *process) answers(run string, value any) {
	p.t.Helper()
	o, err := p.d.Open(p.t.Context(), run)
	if err != nil || len(o.Interrupts) != 1 {
		p.t.Fatalf("%+v, %v; want one interrupt", o, err)
	}
	if err := p.d.Answer(p.t.Context(), run, o.Interrupts[0].ID, value); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.d.Run(p.t.Context(), run, nil); err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
		p.t.Fatal(err)
	}
}

// answersOne answers one of several interrupts, and leaves the run.
func (p *process) answersOne(run, key string, value any) {
	p.t.Helper()
	o, err := p.d.Open(p.t.Context(), run)
	if err != nil {
		p.t.Fatal(err)
	}
	k := slices.IndexFunc(o.Interrupts, func(i dispatcher.Interrupt) bool { return i.Key == key })
	if k < 0 {
		p.t.Fatalf("%+v; want %s among them", o.Interrupts, key)
	}
	if err := p.d.Answer(p.t.Context(), run, o.Interrupts[k].ID, value); err != nil {
		p.t.Fatal(err)
	}
}

// A run that has failed since nobody answered, and fails again when it is resumed, is told how,
// also if that is told in the same words.
func TestFollowUpOfWhatFailsInTheWordsOfAnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("talk")
		resumed := false
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			if resumed {
				return errors.New(dag.ErrExpired.Error())
			}
			if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{}); !errors.Is(err, dag.ErrExpired) {
				return err
			}
			return dag.ErrExpired
		})
		p := begin(t, frozen(t, b), freshStore(), continuation.Options{Deliverer: &postman{}})
		p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.follows(continuation.FollowUp{Status: continuation.SuppressedExpired})
		resumed = true
		if res, err := p.d.Resume(t.Context(), run); res.Status != checkpoint.StatusFailed {
			t.Fatal(err)
		}
		if _, err := p.rt.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.follows(continuation.FollowUp{Status: continuation.Delivered})
	})
}

// A wait that was escalated, and whose attempt fails behind its trigger, is asked of the same ones
// again.
func TestAnEscalatedWaitStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := continuation.Wait{Authority: dag.Agent, Within: time.Hour, OnExpire: continuation.Escalate(dag.Human, 0)}
		p := talk(t, waiting(t, w, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error { return errWeather }))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		v := p.stands(run, continuation.StatusPending, "")
		if v.Failures != 1 || v.Level != 2 || v.Expects[0].Authority != dag.Human {
			t.Errorf("behind a failure it is asked at level %d of %+v, want at level 2 of a person", v.Level, v.Expects)
		}
	})
}

// Waits that a program makes once are what it made, whatever becomes of the slice that they were
// made of, and whoever was asked before.
func TestWaitsThatAreMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := []continuation.Wait{
			{Key: "a", Authority: dag.Agent, Within: time.Hour, OnExpire: continuation.Escalate(dag.Human, 0)},
			{Key: "b", Authority: dag.Agent, Within: time.Hour},
		}
		w := continuation.Any(parts...)
		parts[0].Key, parts[1].Authority = "other", dag.System
		p := begin(t, waiting(t, w, dag.Policy{}, says), freshStore(), continuation.Options{})
		p.waits("first")
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.waits("second")
		for run, authority := range map[string]dag.Authority{"first": dag.Human, "second": dag.Agent} {
			want := []continuation.Expected{
				{Kind: continuation.KindReply, Key: "a", Authority: authority}, {Kind: continuation.KindReply, Key: "b", Authority: authority},
			}
			if v := p.only(run); !slices.Equal(v.Expects, want) {
				t.Errorf("the %s run expects %+v, want %+v", run, v.Expects, want)
			}
		}
	})
}

// A wait until an instant that has passed when it is asked again expires, and is no mistake of the
// node.
func TestAWaitAskedAgainBehindItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{Until: time.Now().Add(time.Hour)}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
			lasts(2 * time.Hour)
			return errWeather
		}))
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		if v := p.only(run); v.Status != continuation.StatusExpired {
			t.Errorf("the wait is %s (%s: %s)", v.Status, v.Reason, v.Why)
		}
	})
}

// What has expired, or was skipped, and failed with its run, has ended for good: nobody brings the
// run back by himself for a visit beside it that may be tried again, which would have it wait anew.
// Where its failure is followed it does not.
func TestWhatHasExpiredIsNotAskedAnewForAnother(t *testing.T) {
	for name, c := range map[string]struct {
		followed, skipped, old bool
		right                  continuation.Status
	}{
		"expired":              {right: continuation.StatusFailed},
		"in an earlier build":  {old: true, right: continuation.StatusPending}, // which did not say what is followed
		"skipped":              {skipped: true, right: continuation.StatusFailed},
		"expired and followed": {followed: true, right: continuation.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := dag.New[Talk]("aside")
				left := dag.Step(b, "left", func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "left", Within: time.Minute})
					return err
				})
				dag.Step(b, "right", func(ctx context.Context, _ *Talk) error {
					if _, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "right", Within: time.Hour, MaxFailures: 9}); err != nil {
						return err
					}
					return errWeather
				})
				if c.followed {
					dag.Step(b, "instead", func(context.Context, *Talk) error { return nil }, left.Failed())
				}
				p := talk(t, frozen(t, b))
				if c.old {
					p = begin(t, frozen(t, b), earlier{p.store}, continuation.Options{})
				}
				if c.skipped {
					if err := p.d.Skip(t.Context(), run, p.at("left").ID); err != nil {
						t.Fatal(err)
					}
				} else {
					lasts(2 * time.Minute)
				}
				if _, err := p.rt.Trigger(t.Context(), reply2("t", "right")); err != nil {
					t.Fatal(err)
				}
				if v := p.at("right"); v.Status != c.right {
					t.Errorf("the wait that may be tried again is %+v; want %s", v, c.right)
				}
				if c.old {
					return
				}
				was := p.at("left")
				if !was.Status.Terminal() {
					t.Fatalf("the other one is %+v", was)
				}
				_, err := p.rt.Trigger(t.Context(), reply2("u", "right"))
				if c.followed != (err == nil) || err != nil && !errors.Is(err, continuation.ErrTerminal) {
					t.Errorf("another trigger: %v", err)
				}
				if _, err := p.rt.Recover(t.Context()); err != nil {
					t.Error(err)
				}
				if is := p.at("left"); !reflect.DeepEqual(is, was) {
					t.Errorf("the other one is %+v, and was %+v", is, was)
				}
			})
		})
	}
}

// A node that has handled that one of its waits expired, or was skipped, and fails behind the
// trigger of the next one, is tried again.
func TestAnExpiryThatWasHandledEndsNoRun(t *testing.T) {
	for name, skipped := range map[string]bool{"expired": false, "skipped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := dag.New[Talk]("reminds")
				dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "one", continuation.Wait{Key: "one", Within: time.Hour})
					if ended := (*continuation.Ended)(nil); !errors.As(err, &ended) {
						return err
					}
					if _, err := continuation.Await[string](ctx, "two", continuation.Wait{Key: "two", Within: 24 * time.Hour, MaxFailures: 9}); err != nil {
						return err
					}
					return errWeather
				})
				p := talk(t, frozen(t, b))
				if skipped {
					if err := p.d.Skip(t.Context(), run, p.only(run).ID); err != nil {
						t.Fatal(err)
					}
				} else {
					lasts(2 * time.Hour)
				}
				if res, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Fatalf("the run is %s, %v, want that it waits", res.Status, err)
				}
				for _, id := range []string{"t", "u"} {
					if out, err := p.rt.Trigger(t.Context(), reply2(id, "two")); err != nil || out.Status != continuation.StatusPending {
						t.Fatalf("a trigger for what may be tried again: %+v, %v", out, err)
					}
				}
			})
		})
	}
}

// An earlier store has logs of a build that did not say of a failure whether it is followed.
type earlier struct{ checkpoint.Store }

func (s earlier) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, run, from, to) {
			e.Data = bytes.ReplaceAll(bytes.ReplaceAll(e.Data, []byte(`,"followed":true`), nil), []byte(`,"followed":false`), nil)
			if !yield(e, err) {
				return
			}
		}
	}
}
