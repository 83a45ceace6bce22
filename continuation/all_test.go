package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A part of an All that has expired is asked of somebody else, or again, when the others have
// ended, and not before: until then a trigger for it is refused at once, and says so, and the part
// is pending.
func TestAPartOfAllThatExpiresIsAskedBehindTheOthers(t *testing.T) {
	for name, then := range map[string]continuation.OnExpire{
		"escalated": continuation.Escalate(dag.Human, 2*time.Hour),
		"again":     continuation.Again(1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { behindTheOthers(t, then) })
		})
	}
}

func behindTheOthers(t *testing.T, then continuation.OnExpire) {
	b := dag.New[Talk]("all")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "both", continuation.All(
			continuation.Wait{Key: "word", Within: time.Hour, OnExpire: then},
			continuation.Wait{Kind: continuation.KindApproval, Key: "yes"},
		))
		if err == nil {
			s.Said.Append(r.Payload)
		}
		return err
	})
	p := talk(t, frozen(t, b))
	part := func() continuation.View {
		t.Helper()
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
		k := slices.IndexFunc(all, func(v continuation.View) bool { return v.Name == "both/1" })
		if err != nil || k < 0 {
			t.Fatalf("the waits are %+v, %v", all, err)
		}
		return all[k]
	}
	lasts(time.Hour)
	if _, err := p.rt.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	p.unchanged(run, func() {
		var early *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), reply2("early", "word")); !errors.As(err, &early) || !strings.Contains(err.Error(), "it is asked again when") {
			t.Errorf("while the other waits: %v", err)
		}
	})
	if v, took := part(), time.Since(before); took > 0 || v.Status != continuation.StatusPending || v.Level != 1 {
		t.Errorf("refused after %v it is %+v", took, v)
	}
	tr := decide("yes", continuation.Approved)
	tr.Key = "yes"
	if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if v := part(); v.Level != 2 || !v.Until.After(time.Now()) {
		t.Errorf("behind the other it is %+v", v)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("word", "word")); err != nil || out.Status != continuation.StatusResolved {
		t.Errorf("asked again: %+v, %v", out, err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"x"}) {
		t.Errorf("said %q", said)
	}
}

// So it is while something beside its visit is at work.
func TestAPartOfAllThatExpiresBesideWhatIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("all")
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "both", continuation.All(
				continuation.Wait{Key: "word", Within: time.Hour, OnExpire: continuation.Again(1)},
				continuation.Wait{Kind: continuation.KindApproval, Key: "yes"},
			))
			return err
		})
		dag.Step(b, "aside", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "aside", continuation.Wait{Key: "aside", Within: 5 * time.Hour})
			if err == nil {
				lasts(time.Minute)
			}
			return err
		})
		p := talk(t, frozen(t, b))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { // waited for below
			_, err := p.rt.Trigger(context.Background(), reply2("a", "aside"))
			ended <- err
		}()
		lasts(time.Second)
		before := time.Now()
		var early *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), reply2("early", "word")); !errors.As(err, &early) || time.Since(before) > 0 {
			t.Errorf("while the other waits: %v after %v", err, time.Since(before))
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// So it is of a wait beside which its visit asks by other means.
func TestAWaitThatExpiresBesideAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Talk]("beside")
		dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, "answer", continuation.Wait{Key: "word", OnExpire: continuation.Again(1)})
			_, other := dag.Ask[string](ctx, "coat", "coat?")
			if err = errors.Join(err, other); err == nil {
				s.Said.Append(r.Payload)
			}
			return err
		})
		p := talk(t, frozen(t, b))
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		p.unchanged(run, func() {
			if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("recovered %q, %v, though its visit does not run again", runs, err)
			}
			var early *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), reply2("early", "word")); !errors.As(err, &early) || time.Since(before) > 0 {
				t.Errorf("while the question is open: %v after %v", err, time.Since(before))
			}
		})
		p.answers(run, "no")
		if out, err := p.rt.Trigger(t.Context(), reply2("word", "word")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("asked again: %+v, %v", out, err)
		}
	})
}

// What a visit waits for beside a wait keeps it from running again behind the trigger of that:
// there is nothing to recover until it is answered, and nothing has lapsed. If the frame of both
// has begun anew it is asked anew, and so is the question.
func TestAQuestionBesideAWaitThatHasItsTrigger(t *testing.T) {
	for _, c := range []struct {
		name        string
		trims, void bool
	}{{name: "it is answered"}, {name: "the log is trimmed", trims: true}, {name: "its frame is voided", void: true}} {
		t.Run(c.name, func(t *testing.T) {
			in := dag.New[Talk]("inner")
			dag.Step(in, "ask", func(ctx context.Context, s *Talk) error {
				r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
				_, other := dag.Ask[string](ctx, "coat", "coat?")
				if err = errors.Join(err, other); err == nil {
					s.Said.Append(r.Payload)
				}
				return err
			})
			b := dag.New[Talk]("outer")
			dag.Loop(b, "loop", frozen(t, in), func(*Talk) bool { return true }, 2)
			p := talk(t, frozen(t, b))
			if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
				t.Fatal(err)
			}
			if c.trims {
				if err := p.d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
					t.Errorf("recovered %q, %v", runs, err)
				}
			}
			if c.void {
				if err := p.d.Edit(t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
					t.Fatal(err)
				}
				if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) != 1 {
					t.Errorf("behind the void it has recovered %q, %v", runs, err)
				}
				if _, err := p.rt.Trigger(t.Context(), reply("again", "hello")); err != nil {
					t.Fatal(err)
				}
			}
			p.answers(run, "no")
			if v := p.stands(run, continuation.StatusResolved, continuation.Completed); v.Resumes != 1 || v.Lapses != 0 {
				t.Errorf("it was gone on with %d times, and has lapsed %d times", v.Resumes, v.Lapses)
			}
			if said := p.said(run); !slices.Equal(said, []string{"hello"}) {
				t.Errorf("the state says %q", said)
			}
		})
	}
}

// A visit that fails since something that it waits for ended without a trigger stays failed,
// whatever triggers it has had: there is nothing to try again, until somebody resumes the run,
// which asks anew.
func TestATriggerBesideAWaitThatEndedIsNotTriedAgain(t *testing.T) {
	word, other := continuation.Wait{Key: "word"}, continuation.Wait{Key: "other", Within: time.Hour}
	both := func(ctx context.Context) (continuation.Reply[string], error) {
		return continuation.Await[string](ctx, "both", continuation.All(word, other))
	}
	coat := func(ctx context.Context) (continuation.Reply[string], error) { // which each attempt asks anew
		r, err := continuation.Await[string](ctx, "word", word)
		_, asked := dag.Ask[string](ctx, fmt.Sprint("coat", dag.Attempt(ctx)), "coat?", dag.Within(time.Hour))
		return r, errors.Join(err, asked)
	}
	for name, c := range map[string]struct {
		await      func(context.Context) (continuation.Reply[string], error)
		bad        bool // the first attempt fails behind its triggers
		skip, loop bool
	}{
		"a part has expired":                       {await: both},
		"a part was skipped":                       {await: both, skip: true},
		"in a loop":                                {await: both, loop: true},
		"a question has expired":                   {await: coat},
		"a question was skipped":                   {await: coat, skip: true},
		"a question has expired behind a failure":  {await: coat, bad: true},
		"a question was skipped behind a failure":  {await: coat, bad: true, skip: true},
		"in a loop, a question, behind a failure":  {await: coat, bad: true, loop: true},
		"a timer has expired, since it was missed": {await: missed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := dag.New[Talk]("beside")
				dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
					r, err := c.await(ctx)
					if err == nil && r.Payload == "bad" {
						return errWeather
					}
					s.Said.Append(r.Payload)
					return err
				}).With(dag.Policy{Attempts: 5})
				g := frozen(t, b)
				if c.loop {
					outer := dag.New[Talk]("outer")
					dag.Loop(outer, "loop", g, func(*Talk) bool { return true }, 3)
					g = frozen(t, outer)
				}
				p := talk(t, g)
				triggers := func(id, text string) {
					t.Helper()
					tr := reply(id, text)
					tr.Key = "word"
					if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
						t.Fatal(err)
					}
				}
				failures := 0
				if c.bad { // the trigger comes last, so that it is the wait which is asked again
					p.answersOne(run, "coat1", "no")
					triggers("t0", "bad")
					failures = 1
				}
				triggers("t1", "good")
				if c.skip {
					o, err := p.d.Open(t.Context(), run)
					if err != nil || len(o.Interrupts) != 1 {
						t.Fatalf("%+v, %v; want one interrupt", o, err)
					}
					if err := p.d.Skip(t.Context(), run, o.Interrupts[0].ID); err != nil {
						t.Fatal(err)
					}
				}
				lasts(3 * time.Hour)
				if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrExpired) && !errors.Is(err, dag.ErrSkipped) {
					t.Fatalf("the run ends with %v", err)
				}
				p.unchanged(run, func() {
					for range 2 {
						swept, err := p.rt.Sweep(t.Context())
						recovered, also := p.rt.Recover(t.Context())
						if err = errors.Join(err, also); err != nil || len(swept)+len(recovered) > 0 {
							t.Errorf("swept %q, recovered %q, %v", swept, recovered, err)
						}
					}
				})
				all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
				if err != nil || !all[0].Status.Terminal() || all[0].Failures != failures {
					t.Errorf("the wait with its trigger is %+v, %v; want it to have ended, with %d failures", all, err, failures)
				}
			})
		})
	}
}

// What was to be asked once more, or anew, and is not since its visit has failed for good, has
// failed with that: the run, which has gone on behind the failure, has nothing to do for it, and no
// trigger is meant for it.
func TestWhatIsNotAskedOnceMoreHasFailed(t *testing.T) {
	expires, again := continuation.Wait{Key: "one", Within: time.Hour}, continuation.Wait{Key: "two", Within: time.Hour}
	again.OnExpire = continuation.Escalate(dag.Human, time.Hour)
	for name, c := range map[string]struct {
		w     continuation.Wait
		last  string // of its waits: the one that is not asked
		voids bool   // its frame begins anew before it has expired
		fails bool   // before it comes to ask
		why   string
	}{
		"another part has expired for good": {w: continuation.All(expires, again), last: "answer/2", why: `continuation: wait "answer/1" ended: expired_ttl: nobody ended it in time`},
		"an attempt has failed before":      {w: again, last: "answer", fails: true, why: errWeather.Error()},
		"its frame was voided":              {w: again, last: "answer", voids: true, fails: true, why: errWeather.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := false
				in := dag.New[Talk]("inner")
				left := dag.Step(in, "left", func(ctx context.Context, _ *Talk) error {
					if fails {
						return errWeather
					}
					_, err := continuation.Await[string](ctx, "answer", c.w)
					return err
				})
				dag.Step(in, "right", func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "answer", continuation.Wait{Within: 24 * time.Hour})
					return err
				}, left.Failed())
				b, same := dag.New[Talk]("outer"), func(*Talk, *Talk) {}
				dag.Embed(b, "frame", frozen(t, in), same, same)
				p := talk(t, frozen(t, b))
				if fails = c.fails; c.voids {
					p.voids("frame")
				}
				lasts(time.Hour)
				if _, err := p.rt.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
				k := slices.IndexFunc(all, func(v continuation.View) bool { return v.Name == c.last && v.Path == "frame/left" })
				if err != nil || k < 0 || all[k].Status != continuation.StatusFailed || all[k].Reason != continuation.RunFailed || all[k].Why != c.why {
					t.Errorf("the waits are %+v, %v; want that %s has failed: %s", all, err, c.last, c.why)
				}
				p.unchanged(run, func() {
					if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
						t.Errorf("recovered %q, %v", runs, err)
					}
				})
				if out, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil || out.Status != continuation.StatusResolved {
					t.Errorf("a trigger for the run: %+v, %v", out, err)
				}
			})
		})
	}
}

// missed is an All of which a timer is missed that expires then.
func missed(ctx context.Context) (continuation.Reply[string], error) {
	word := continuation.Wait{Key: "word", Within: 4 * time.Hour}
	return continuation.Await[string](ctx, "both", continuation.All(word, late(continuation.Expire())))
}

// A run that somebody resumes then asks anew, and goes on.
func TestAnAllOfWhichAPartEndedIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.All(continuation.Wait{Key: "word", Within: 9 * time.Hour}, continuation.Wait{Key: "other"}), dag.Policy{}, says))
		pull := func(id, key string) {
			t.Helper()
			if _, err := p.rt.Trigger(t.Context(), reply2(id, key)); err != nil {
				t.Fatal(err)
			}
		}
		pull("t1", "word")
		lasts(time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("resumed: %v", err)
		}
		pull("t2", "word")
		pull("t3", "other")
		if said := p.said(run); !slices.Equal(said, []string{"x"}) {
			t.Errorf("said %q", said)
		}
	})
}

// While another part of its All is open, a part that has its trigger is nothing to go on with.
func TestRecoverLeavesHalfAnAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.All(continuation.Wait{Key: "word"}, continuation.Wait{Key: "other"}), dag.Policy{}, says))
		if _, err := p.rt.Trigger(t.Context(), reply2("t1", "word")); err != nil {
			t.Fatal(err)
		}
		if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("one trigger is missing: Recover goes on with %q, %v", runs, err)
		}
		if _, err := p.rt.Trigger(t.Context(), reply2("t2", "other")); err != nil {
			t.Fatal(err)
		}
		if said := p.said(run); !slices.Equal(said, []string{"x"}) {
			t.Errorf("said %q", said)
		}
	})
}

// An Any that is asked again goes on without the part of which the instant has passed meanwhile.
func TestAnAnyIsAskedAgainWithoutAPartThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Any(
			continuation.Wait{Key: "word", Within: 2 * time.Hour, OnExpire: continuation.Again(1)},
			continuation.Wait{Key: "by one", Until: time.Now().Add(time.Hour)},
		), dag.Policy{}, says))
		id := p.only(run).ID
		lasts(2 * time.Hour)
		if _, err := p.rt.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := p.stands(run, continuation.StatusPending, "")
		if v.ID != id || v.Level != 2 || !v.Until.Equal(time.Now().Add(2*time.Hour)) {
			t.Errorf("asked again it is %+v", v)
		}
		var late *continuation.ExpiredError
		if _, err := p.rt.Trigger(t.Context(), reply2("t1", "by one")); !errors.As(err, &late) || late.Key != "by one" {
			t.Errorf("%v; want that this part is over", err)
		}
		if out, err := p.rt.Trigger(t.Context(), reply2("t2", "word")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("the part that is asked again: %+v, %v", out, err)
		}
	})
}

// Where a visit has failed behind the last of its triggers and is tried again, none of its waits
// has ended.
func TestAFailureBehindAllEndsNoPart(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	g := waiting(t, continuation.All(continuation.Wait{Key: "a"}, continuation.Wait{Key: "b"}), dag.Policy{},
		func(context.Context, *Talk, continuation.Reply[string]) error { return errWeather })
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "a")); err != nil {
		t.Fatal(err)
	}
	store.DieAfter(3) // the trigger, that the run goes on, and that it has failed
	if _, err := p.rt.Trigger(t.Context(), reply2("u", "b")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the second trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = begin(t, g, store, continuation.Options{})
	all, err := p.rt.List(t.Context(), continuation.Filter{})
	if err != nil || len(all) != 2 || all[0].Status != continuation.StatusPending || all[1].Status != continuation.StatusPending {
		t.Errorf("the parts are %+v, %v; want them pending", all, err)
	}
	if _, err := p.rt.Trigger(t.Context(), reply2("v", "a")); !errors.Is(err, continuation.ErrTaken) {
		t.Errorf("another trigger for the first: %v", err)
	}
	if out, err := p.rt.Trigger(t.Context(), reply2("w", "b")); err != nil || out.Status != continuation.StatusPending {
		t.Errorf("another trigger for the second: %+v, %v; want it to fail once more", out, err)
	}
}

// Of an All it is told that something was denied, whichever of its parts that was.
func TestAllOfWhichOneIsDenied(t *testing.T) {
	for _, denied := range []string{"first", "second"} {
		part := func(key string) continuation.Wait {
			return continuation.Wait{Kind: continuation.KindApproval, Key: key, OnDeny: continuation.Feed}
		}
		p := talk(t, waiting(t, continuation.All(part("first"), part("second")), dag.Policy{}, func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
			s.Said.Append(fmt.Sprint(r.Denied, r.Parts[0].Denied, r.Parts[1].Denied))
			return nil
		}))
		for _, key := range []string{"first", "second"} {
			tr := decide("to "+key, continuation.Approved)
			if tr.Key = key; key == denied {
				tr.Decision = continuation.Denied
			}
			if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := p.said(run), fmt.Sprint(true, denied == "first", denied == "second"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s is denied: the node was told %q, want %s", denied, got, want)
		}
	}
}

// Nor is a visit tried again that returns, behind a failure, what it was told of a wait, or of a
// question, that has expired before.
func TestAnExpiryThatIsReturnedBehindAFailure(t *testing.T) {
	for name, first := range map[string]func(context.Context) error{
		"of a wait": func(ctx context.Context) error {
			_, err := continuation.Await[string](ctx, "first", continuation.Wait{Within: time.Minute})
			return err
		},
		"of a question": func(ctx context.Context) error {
			_, err := dag.Ask[string](ctx, "coat", "coat?", dag.Within(time.Minute))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { returnsAnExpiry(t, first) })
		})
	}
}

func returnsAnExpiry(t *testing.T, first func(context.Context) error) {
	b := dag.New[Talk]("reminds")
	dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
		late := first(ctx)
		if late != nil && !errors.Is(late, dag.ErrExpired) || dag.Attempt(ctx) > 1 {
			return late
		}
		if _, err := continuation.Await[string](ctx, "second", continuation.Wait{Key: "second"}); err != nil {
			return err
		}
		return errWeather
	}).With(dag.Policy{Attempts: 9})
	p := talk(t, frozen(t, b))
	lasts(time.Minute)
	if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	out, err := p.rt.Trigger(t.Context(), reply2("t", "second"))
	if err != nil || out.Status != continuation.StatusFailed || out.EndReason != continuation.RunFailed {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := p.rt.Trigger(t.Context(), reply2("u", "second")); !errors.Is(err, continuation.ErrTerminal) {
		t.Errorf("another trigger: %v", err)
	}
}
