package continuation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// What fails behind a default, or behind the wake of a timer, is not tried again, also if an
// attempt has failed behind a trigger before: nothing is asked again then.
func TestAFailureBehindADefaultIsFinal(t *testing.T) {
	for name, w := range map[string]continuation.Wait{
		"default": {OnExpire: continuation.Default("nobody")},
		"timer":   continuation.Any(continuation.Wait{Kind: continuation.KindTimer, After: time.Hour}, continuation.Wait{}),
	} {
		for triggers, of := range []string{"behind none", "behind a trigger"} {
			t.Run(name+" "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					bodies := 0
					p := talk(t, waiting(t, w, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
						if bodies++; bodies == 100 {
							cancel() // it would go on for ever
						}
						return errWeather
					}))
					if triggers > 0 {
						if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil {
							t.Fatal(err)
						}
						p.stands(run, continuation.StatusPending, "") // it is asked again
					}
					lasts(2 * time.Hour)
					if _, err := p.rt.Sweep(ctx); err != nil {
						t.Errorf("swept: %v", err)
					}
					if bodies != triggers+1 {
						t.Errorf("the node ran %d times behind its wait, want %d", bodies, triggers+1)
					}
					p.stands(run, continuation.StatusFailed, continuation.RunFailed)
				})
			})
		}
	}
}

// Nor is what fails behind a denial that its node was told of: that stays what it was.
func TestAFailureBehindADenialIsFinal(t *testing.T) {
	bodies := 0
	w := continuation.Wait{Kind: continuation.KindApproval, OnDeny: continuation.Feed}
	p := talk(t, waiting(t, w, dag.Policy{}, func(_ context.Context, _ *Talk, r continuation.Reply[string]) error {
		if bodies++; !r.Denied {
			t.Error("the node was told of no denial")
		}
		return errWeather
	}))
	out, err := p.rt.Trigger(t.Context(), decide("t", continuation.Denied))
	if err != nil || out.Status != continuation.StatusFailed || out.EndReason != continuation.RunFailed || bodies != 1 {
		t.Errorf("%+v, %v; the node ran %d times behind it, want once", out, err, bodies)
	}
	p.failedOnce(&bodies)
}

// Nor is what fails where the visit was answered something else last that it has asked by itself,
// be the node called something else before that, or behind it.
func TestAFailureBehindAnotherAnswerIsFinal(t *testing.T) {
	for name, nodes := range map[string][2]string{ // that is answered, and that runs behind it
		"of the same node":      {"ask", "ask"},
		"of a node called anew": {"asks", "asks"},
		"called anew behind it": {"ask", "asks"},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := 0
			graph := func(node string) *dag.Graph[Talk] {
				b := dag.New[Talk]("beside")
				dag.Step(b, node, func(ctx context.Context, _ *Talk) error {
					_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
					_, also := dag.Ask[string](ctx, "coat", "coat?")
					if err = errors.Join(err, also); err != nil {
						return err
					}
					bodies++
					return errWeather
				})
				return frozen(t, b)
			}
			p := talk(t, graph("ask"))
			if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil {
				t.Fatal(err)
			}
			now := func(node string) {
				p = under(t, dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{
					{Name: "renamed", Nodes: map[string]string{"ask": node}},
				}}, graph(node), p.store, continuation.Options{})
			}
			now(nodes[0])
			res, err := p.d.Run(t.Context(), run, nil)
			if len(res.Interrupts) != 1 {
				t.Fatalf("%+v, %v; want one interrupt", res, err)
			}
			if err := p.d.Answer(t.Context(), run, res.Interrupts[0].ID, "no"); err != nil {
				t.Fatal(err)
			}
			now(nodes[1])
			if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, errWeather) || bodies != 1 {
				t.Fatalf("the node ran %d times behind its answers: %v", bodies, err)
			}
			p.failedOnce(&bodies)
		})
	}
}

// Of several waits the one whose trigger came last is asked again, whatever they are called and
// however fast the triggers came.
func TestTheLastWaitIsAskedAgainAtOneInstant(t *testing.T) {
	for _, second := range []string{"before", "then"} {
		synctest.Test(t, func(t *testing.T) {
			b := dag.New[Talk]("talk")
			dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
				for _, name := range []string{"first", second} {
					if _, err := continuation.Await[string](ctx, name, continuation.Wait{Key: name}); err != nil {
						return err
					}
				}
				return errWeather
			}).With(dag.Policy{Attempts: 2})
			p := talk(t, frozen(t, b))
			for _, key := range []string{"first", second} {
				if _, err := p.rt.Trigger(t.Context(), reply2("to "+key, key)); err != nil {
					t.Fatal(err)
				}
			}
			all, err := p.rt.List(t.Context(), continuation.Filter{Status: []continuation.Status{continuation.StatusPending}})
			if err != nil || len(all) != 1 || all[0].Name != second || all[0].Failures != 1 {
				t.Errorf("asked again is %+v, %v; want %s", all, err, second)
			}
		})
	}
}

// A wait that is asked again takes its trigger, however often a process has died behind one before:
// its node asks as often as MaxFailures says, and knows nothing of that. A death behind this
// trigger uses up as much as a failure.
func TestALapseIsOfOneTrigger(t *testing.T) {
	store, dies := &pawltest.Mortal{Store: &memory.Store{}}, true
	g := waiting(t, continuation.Wait{Key: "k", MaxFailures: 3}, dag.Policy{Attempts: 10}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
		if dies {
			store.Kill()
		}
		if r.Payload == "bad" {
			return errWeather
		}
		return says(ctx, s, r)
	})
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	pull := func(id, payload string) error {
		t.Helper()
		_, err := p.rt.Trigger(t.Context(), reply(id, payload))
		return err
	}
	revives := func() error {
		t.Helper()
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		p = begin(t, g, store, continuation.Options{})
		_, err := p.rt.Recover(t.Context())
		return err
	}
	if err := pull("t1", "bad"); !errors.Is(err, pawltest.ErrDead) {
		t.Fatal(err)
	}
	dies = false
	if err := errors.Join(revives(), pull("t2", "bad")); err != nil {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusPending, ""); v.Failures != 2 || v.Lapses != 1 {
		t.Errorf("%d failures, %d lapses; want two, and one", v.Failures, v.Lapses)
	}
	dies = true
	if err := pull("t3", "good"); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("asked again it is refused: %v", err)
	}
	var enough *continuation.AttemptsError
	if err := revives(); !errors.As(err, &enough) { // two failures, and this one
		t.Errorf("recovered behind the third time: %v", err)
	}
	dies = false
	if _, err := p.d.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
}

// keysOfQuestions are some that a node may give to what it asks by itself. The last ones look like
// those of a wait that is asked again.
var keysOfQuestions = []string{"sure", "sure~x", "answer~x", "~", "~1"}

// What a visit asks by itself is one of its hops, whatever its key is.
func TestAQuestionIsAHop(t *testing.T) {
	for _, key := range keysOfQuestions {
		b := dag.New[Talk]("sure")
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			if _, err := dag.Ask[string](ctx, key, "sure?"); err != nil {
				return err
			}
			_, err := continuation.Await[string](ctx, "answer", continuation.Wait{MaxHops: 1})
			return err
		})
		p := talk(t, frozen(t, b))
		p.answersOne(run, key, "yes")
		_, err := p.d.Run(t.Context(), run, nil)
		var ended *continuation.Ended
		if !errors.As(err, &ended) || ended.Reason != continuation.MaxHops {
			t.Errorf("behind %q: %v, want %s", key, err, continuation.MaxHops)
		}
	}
}

// And if it was answered last, no wait is asked again.
func TestAQuestionIsTheLastAnswer(t *testing.T) {
	for _, key := range keysOfQuestions {
		b := dag.New[Talk]("sure")
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
			_, also := dag.Ask[string](ctx, key, "sure?")
			if err = errors.Join(err, also); err != nil {
				return err
			}
			return errWeather
		}).With(dag.Policy{Attempts: 2})
		p := talk(t, frozen(t, b))
		if _, err := p.rt.Trigger(t.Context(), reply("t", "x")); err != nil {
			t.Fatal(err)
		}
		p.answersOne(run, key, "yes")
		if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, errWeather) {
			t.Errorf("behind %q: %v, want that both attempts fail", key, err)
		}
	}
}

// failedOnce checks that the only wait of the run has failed, and that nobody tries it again.
func (p *process) failedOnce(bodies *int) {
	p.t.Helper()
	before := *bodies
	p.stands(run, continuation.StatusFailed, continuation.RunFailed)
	p.unchanged(run, func() {
		if runs, err := p.rt.Recover(context.Background()); err != nil || len(runs) > 0 {
			p.t.Errorf("recovered %q, %v", runs, err)
		}
	})
	if *bodies != before {
		p.t.Errorf("the node ran %d times more", *bodies-before)
	}
}
