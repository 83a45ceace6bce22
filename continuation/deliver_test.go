package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// A postman delivers as do says, and remembers the keys.
type postman struct {
	do func(d continuation.Delivery) (continuation.DeliveryStatus, error)

	mu   sync.Mutex
	keys []string
}

func (m *postman) Deliver(_ context.Context, d continuation.Delivery) (continuation.DeliveryStatus, error) {
	m.mu.Lock()
	m.keys = append(m.keys, d.Key)
	m.mu.Unlock()
	if m.do == nil {
		return continuation.Delivered, nil
	}
	return m.do(d)
}

// finished is a process whose run has come to its end, with a follow-up that is owed.
func finished(t *testing.T, store checkpoint.Store, o continuation.Options) *process {
	p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, o)
	p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
	if v := p.only(run); v.Delivery != continuation.DeliveryPending {
		t.Errorf("the delivery of a run that waits is %s", v.Delivery)
	}
	if runs, err := p.rt.Deliver(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("delivered before the end: %q, %v", runs, err)
	}
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
		t.Fatal(err)
	}
	return p
}

// delivers checks what came of a Deliver.
func (p *process) delivers(want continuation.DeliveryStatus) {
	p.t.Helper()
	if _, err := p.rt.Deliver(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	if v := p.only(run); v.Delivery != want || v.Status != continuation.StatusResolved {
		p.t.Errorf("the wait is %s, its delivery %s, want %s", v.Status, v.Delivery, want)
	}
}

// How a run ended is durable before its follow-up is brought; what came of that is kept once.
func TestLife36Deliveries(t *testing.T) {
	t.Run("delivered once", func(t *testing.T) {
		var man postman
		var p *process
		man.do = func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
			if !slices.Contains(p.kinds(run), checkpoint.Completed) || d.End.Reason != continuation.Completed {
				t.Errorf("delivered before the end is durable: %+v", d)
			}
			return continuation.Delivered, nil
		}
		p = finished(t, freshStore(), continuation.Options{Deliverer: &man})
		p.delivers(continuation.Delivered)
		p.unchanged(run, func() { p.delivers(continuation.Delivered) })
		if len(man.keys) != 1 {
			t.Errorf("delivered %q", man.keys)
		}
	})
	t.Run("a crash behind the delivery", func(t *testing.T) {
		store := &pawltest.Mortal{Store: &memory.Store{}}
		man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
			store.Kill()
			return continuation.Delivered, nil
		}}
		p := finished(t, store, continuation.Options{Deliverer: &man})
		if _, err := p.rt.Deliver(t.Context()); !errors.Is(err, pawltest.ErrDead) {
			t.Errorf("delivered: %v", err)
		}
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		man.do = nil
		q := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, continuation.Options{Deliverer: &man})
		q.delivers(continuation.Delivered)
		if len(man.keys) != 2 || man.keys[0] != man.keys[1] {
			t.Errorf("the keys are %q", man.keys)
		}
	})
	t.Run("failures are tried again, so often", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
			p := finished(t, freshStore(), continuation.Options{Deliverer: &man, Deliveries: 2})
			p.delivers(continuation.DeliveryPending)
			p.unchanged(run, func() { p.delivers(continuation.DeliveryPending) }) // it is too early
			p.follows(continuation.FollowUp{Status: continuation.DeliveryPending, Tries: 1, Error: errWeather.Error()})
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			var told []error
			_ = p.rt.Serve(ctx, func(err error) { told = append(told, err) })
			var failed *continuation.DeliveryError
			if len(told) != 1 || !errors.As(told[0], &failed) || !failed.Final || failed.Tries != 2 || !errors.Is(failed, errWeather) {
				t.Errorf("Serve has told %v", told)
			}
			p.follows(continuation.FollowUp{Status: continuation.DeliveryFailed, Tries: 2, Error: errWeather.Error()})
			if p.delivers(continuation.DeliveryFailed); len(man.keys) != 2 || man.keys[0] != man.keys[1] {
				t.Errorf("tried %q", man.keys)
			}
		})
	})
	t.Run("suppressed", func(t *testing.T) {
		for _, s := range []continuation.DeliveryStatus{
			continuation.SuppressedReengaged, continuation.SuppressedSuperseded, continuation.SuppressedExpired,
		} {
			man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return s, nil }}
			finished(t, freshStore(), continuation.Options{Deliverer: &man}).delivers(s)
		}
	})
	t.Run("nothing is owed", func(t *testing.T) {
		var man postman
		p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{Deliverer: &man})
		p.waits(run)
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		if p.delivers(continuation.NotApplicable); len(man.keys) > 0 {
			t.Errorf("delivered %q", man.keys)
		}
	})
	t.Run("never downgraded", func(t *testing.T) {
		var p, q *process
		store := freshStore()
		second := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
		first := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
			return continuation.Delivered, nil
		}}
		second.do = func(continuation.Delivery) (continuation.DeliveryStatus, error) {
			p.delivers(continuation.Delivered) // somebody else is faster
			return "", errWeather
		}
		p = finished(t, store, continuation.Options{Deliverer: &first})
		q = begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, continuation.Options{Deliverer: &second})
		q.delivers(continuation.Delivered)
		if _, err := q.rt.Supersede(t.Context(), continuation.Owed(nil), "", ""); err != nil {
			t.Fatal(err)
		}
		q.delivers(continuation.Delivered)
	})
	t.Run("superseded before it was delivered", func(t *testing.T) {
		var man postman
		p := finished(t, freshStore(), continuation.Options{Deliverer: &man})
		if _, err := p.rt.Supersede(t.Context(), continuation.Owed(nil), "", ""); err != nil {
			t.Fatal(err)
		}
		if p.delivers(continuation.SuppressedSuperseded); len(man.keys) > 0 {
			t.Errorf("delivered %q", man.keys)
		}
	})
}

// A store that can't be read is told, and not taken for one that owes nothing.
func TestDeliverTellsOfItsStore(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	p := finished(t, store, continuation.Options{Deliverer: &postman{}})
	store.Kill()
	if runs, err := p.rt.Deliver(t.Context()); !errors.Is(err, pawltest.ErrDead) {
		t.Errorf("delivered %q, %v", runs, err)
	}
}

// Nor has anything failed yet of a run that has begun another turn.
func TestTriesAreThoseOfTheLastTurn(t *testing.T) {
	man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
	p := finished(t, freshStore(), continuation.Options{Deliverer: &man})
	p.delivers(continuation.DeliveryPending)
	p.follows(continuation.FollowUp{Status: continuation.DeliveryPending, Tries: 1, Error: errWeather.Error()})
	if _, err := p.d.Turn(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	p.follows(continuation.FollowUp{Status: continuation.DeliveryPending})
}

// What a Deliverer is given is its own: what it does to that changes nothing that others read.
func TestADelivererHasItsOwnLabels(t *testing.T) {
	var p *process
	man := postman{do: func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
		clear(d.Labels)
		if v := p.only(run); v.Delivery != continuation.DeliveryPending || len(v.Labels) != 1 {
			t.Errorf("while it is brought the delivery is %s, of labels %v", v.Delivery, v.Labels)
		}
		return continuation.Delivered, nil
	}}
	p = finished(t, freshStore(), continuation.Options{Deliverer: &man})
	p.delivers(continuation.Delivered)

	labels := map[string]string{"session": "s1"}
	if all := continuation.Owed(labels); len(all) != 2 || len(labels) != 1 {
		t.Errorf("Owed of %v is %v", labels, all)
	}
}

// A run that was brought back from its end comes to another one, with a follow-up of its own.
func TestEachEndHasItsFollowUp(t *testing.T) {
	var ends []continuation.Reason
	man := postman{do: func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
		ends = append(ends, d.End.Reason)
		return continuation.Delivered, nil
	}}
	fails := true
	p := begin(t, beside(t, &fails), freshStore(), continuation.Options{Deliverer: &man})
	if _, err := p.d.Start(t.Context(), run, nil, dispatcher.Labels(continuation.Owed(nil))); !errors.Is(err, errWeather) {
		t.Fatal(err)
	}
	if _, err := p.rt.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	fails = false
	if _, err := p.d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
		t.Fatal(err)
	}
	p.delivers(continuation.Delivered)
	if !slices.Equal(ends, []continuation.Reason{continuation.RunFailed, continuation.Completed}) || man.keys[0] == man.keys[1] {
		t.Errorf("the ends %q were delivered under the keys %q", ends, man.keys)
	}
}

// follows checks what came of the follow-up of the run.
func (p *process) follows(want continuation.FollowUp) {
	p.t.Helper()
	if got, err := p.rt.DeliveryOf(p.t.Context(), run); err != nil || got != want {
		p.t.Errorf("its follow-up is %+v, %v; want %+v", got, err, want)
	}
}

// A deliverer that panics, or whose error no log could hold, has failed: it is tried again, and the
// others have their turn.
func TestADelivererThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var man postman
		man.do = func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
			switch d.Tries {
			case 0:
				panic("out of paper")
			case 1:
				return "", errors.New(strings.Repeat("\xff€", 1<<20))
			}
			return continuation.Delivered, nil
		}
		p := finished(t, freshStore(), continuation.Options{Deliverer: &man})
		p.delivers(continuation.DeliveryPending)
		up, err := p.rt.DeliveryOf(t.Context(), run)
		if err != nil || up.Tries != 1 || !strings.HasSuffix(up.Error, "panicked: out of paper") {
			t.Errorf("behind a panic: %+v, %v", up, err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_ = p.rt.Serve(ctx, nil)
		p.follows(continuation.FollowUp{Status: continuation.Delivered, Tries: 2})
	})
}

// A fork tries something out: its end is nobody's follow-up, unless it is given one of its own.
func TestForksOweNothing(t *testing.T) {
	var man postman
	p := finished(t, &memory.Store{}, continuation.Options{Deliverer: &man})
	_, err := p.d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Talk]{Into: []string{"tries"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Talk]{Into: []string{"tells"}, Labels: continuation.Owed(nil)}); err != nil {
		t.Fatal(err)
	}
	for i, fork := range []string{"tries", "tells"} {
		if _, err := p.d.Run(t.Context(), fork, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		trigger := reply(string(rune('a'+i)), "hello")
		trigger.Run = fork
		if _, err := p.rt.Trigger(t.Context(), trigger); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := p.rt.Deliver(t.Context())
	if slices.Sort(runs); err != nil || !slices.Equal(runs, []string{run, "tells"}) {
		t.Errorf("delivered %q, %v", runs, err)
	}
	if v := p.only("tries"); v.Delivery != continuation.NotApplicable {
		t.Errorf("the delivery of a fork is %s", v.Delivery)
	}
}

// Who stops a run knows how it has ended: nothing is owed of it then, for whatever reason that was,
// though waits may read as failed. Of one that is brought back the next end is told.
func TestStoppedRunsOweNothing(t *testing.T) {
	for reason, status := range map[continuation.Reason]continuation.Status{
		continuation.CancelledByUser:    continuation.StatusCancelled,
		continuation.CancelledByProduct: continuation.StatusCancelled,
		continuation.RunTimedOut:        continuation.StatusFailed,
		"quota_exceeded":                continuation.StatusFailed,
	} {
		t.Run(string(reason), func(t *testing.T) {
			var man postman
			p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), freshStore(), continuation.Options{Deliverer: &man})
			p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
			if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: reason}); err != nil {
				t.Fatal(err)
			}
			p.stands(run, status, reason)
			if runs, err := p.rt.Deliver(t.Context()); err != nil || len(runs) > 0 {
				t.Errorf("delivered %q, %v", runs, err)
			}
			p.follows(continuation.FollowUp{Status: continuation.NotApplicable})
			if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
				t.Fatal(err)
			}
			p.delivers(continuation.Delivered)
		})
	}
}

// A clock that was set back does not keep a delivery from being tried again.
func TestClockSetBackDelaysNoDelivery(t *testing.T) {
	var jump atomic.Int64
	fails := true
	man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
		if fails {
			return "", errWeather
		}
		return continuation.Delivered, nil
	}}
	p := finished(t, &memory.Store{}, continuation.Options{Deliverer: &man, Now: wall(&jump)})
	p.delivers(continuation.DeliveryPending)
	fails = false
	p.delivers(continuation.DeliveryPending) // a minute has to pass
	jump.Store(-int64(year))
	p.delivers(continuation.Delivered)
}

// Serve tries a delivery again at its instant, whether it has failed under this Serve or before it.
func TestServeDeliversAgainInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) {
			at = append(at, time.Since(began))
			return "", errWeather
		}}
		o := continuation.Options{Deliverer: &man, Deliveries: 3, Redeliver: 10 * time.Minute, Recheck: 24 * time.Hour}
		p := finished(t, freshStore(), o)
		p.delivers(continuation.DeliveryPending)
		lasts(time.Minute)
		p.waits("later", dispatcher.Labels(continuation.Owed(nil)))
		tr := reply("t2", "hello")
		tr.Run = "later"
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 12*time.Hour)
		defer stop()
		_ = p.rt.Serve(ctx, nil)
		if want := []time.Duration{0, time.Minute, 10 * time.Minute, 11 * time.Minute, 20 * time.Minute, 21 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("tried after %v, want %v", at, want)
		}
	})
}

// A run that is brought back owes another follow-up, of which nothing has failed yet.
func TestTriesAreThoseOfTheLastEnd(t *testing.T) {
	man := postman{do: func(continuation.Delivery) (continuation.DeliveryStatus, error) { return "", errWeather }}
	fails := true
	p := begin(t, beside(t, &fails), freshStore(), continuation.Options{Deliverer: &man})
	if _, err := p.d.Start(t.Context(), run, nil, dispatcher.Labels(continuation.Owed(nil))); !errors.Is(err, errWeather) {
		t.Fatal(err)
	}
	if _, err := p.rt.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.follows(continuation.FollowUp{Status: continuation.DeliveryPending, Tries: 1, Error: errWeather.Error()})
	fails = false
	if _, err := p.d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	p.follows(continuation.FollowUp{Status: continuation.DeliveryPending})
}

// The follow-up of a run that has failed since nobody answered is suppressed; one that has ended
// for another reason, though a wait of it has expired, is told.
func TestFollowUpsOfWhatHasExpired(t *testing.T) {
	awaits := func(ctx context.Context, _ *Talk) error {
		_, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		return err
	}
	instead := func(comes error) func(context.Context, *Talk) error {
		return func(ctx context.Context, s *Talk) error {
			if err := awaits(ctx, s); !errors.Is(err, dag.ErrExpired) {
				return err
			}
			return comes
		}
	}
	well := func(context.Context, *Talk) error { return nil }
	fails := func(context.Context, *Talk) error { return errWeather }
	for name, c := range map[string]struct {
		node       func(context.Context, *Talk) error
		then       func(context.Context, *Talk) error // a node behind it
		instead    func(context.Context, *Talk) error // a node behind its failure
		skip, loop bool
		want       continuation.DeliveryStatus
	}{
		"it has expired":                            {node: awaits, want: continuation.SuppressedExpired},
		"it has expired in a loop":                  {node: awaits, loop: true, want: continuation.SuppressedExpired},
		"its failure is followed":                   {node: awaits, instead: well, want: continuation.Delivered},
		"what follows its failure fails":            {node: awaits, instead: fails, want: continuation.Delivered},
		"what follows the loop fails":               {node: awaits, instead: fails, loop: true, want: continuation.Delivered},
		"what follows its failure has expired too":  {node: awaits, instead: awaits, want: continuation.SuppressedExpired},
		"it was skipped":                            {node: awaits, skip: true, want: continuation.Delivered},
		"handled, and failed further":               {node: instead(nil), then: fails, want: continuation.Delivered},
		"handled, and failed for something else":    {node: instead(errWeather), want: continuation.Delivered},
		"told in other words":                       {node: instead(fmt.Errorf("too late: %w", dag.ErrExpired)), want: continuation.SuppressedExpired},
		"told in more words than anybody would say": {node: instead(fmt.Errorf("%s%w", strings.Repeat("so late ", 1<<17), dag.ErrExpired)), want: continuation.SuppressedExpired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := dag.New[Talk]("talk")
				ask := dag.Step(b, "ask", c.node)
				failed := ask.Failed()
				if c.then != nil {
					dag.Step(b, "then", c.then, ask)
				}
				if c.loop {
					inner := frozen(t, b)
					b = dag.New[Talk]("outer")
					failed = dag.Loop(b, "loop", inner, func(*Talk) bool { return true }, 3).Failed()
				}
				if c.instead != nil {
					dag.Step(b, "instead", c.instead, failed)
				}
				p := begin(t, frozen(t, b), freshStore(), continuation.Options{Deliverer: &postman{}})
				p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
				if c.skip {
					if err := p.d.Skip(t.Context(), run, p.only(run).ID); err != nil {
						t.Fatal(err)
					}
					_, _ = p.d.Run(t.Context(), run, nil)
				}
				for range 2 {
					lasts(time.Hour)
					if _, err := p.rt.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := p.rt.Deliver(t.Context()); err != nil {
					t.Fatal(err)
				}
				p.follows(continuation.FollowUp{Status: c.want})
			})
		})
	}
}

// While somebody has the lease of a run, who might bring it back, its follow-up is not brought.
func TestNoDeliveryBesideALease(t *testing.T) {
	var man postman
	p := finished(t, freshStore(), continuation.Options{Deliverer: &man})
	lease, err := p.store.Acquire(t.Context(), run, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := p.rt.Deliver(t.Context()); err != nil || len(runs) > 0 || len(man.keys) > 0 {
		t.Errorf("delivered %q (%q), %v", runs, man.keys, err)
	}
	if err := p.store.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	p.delivers(continuation.Delivered)
}

// Whoever has the lease of a run that has ended is perhaps to go on with it: when that turns out
// nothing is suppressed, and what the run comes to then is told.
func TestSupersedeLeavesTheFollowUpOfARunAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var man postman
		var starts, works time.Duration
		g := waiting(t, continuation.Wait{}, dag.Policy{}, func(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
			lasts(works)
			return says(ctx, s, r)
		})
		p := under(t, dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error {
			lasts(starts)
			return nil
		}}}, g, freshStore(), continuation.Options{Deliverer: &man})
		p.waits(run, dispatcher.Labels(continuation.Owed(nil)))
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		starts, works = 2*time.Second, time.Minute
		done := make(chan error, 1)
		go func() { // waited for below
			_, err := p.d.Turn(context.Background(), run, nil)
			done <- err
		}()
		lasts(time.Second)
		if info, err := p.store.Stat(t.Context(), run); err != nil || info.Owner == "" || info.Status != checkpoint.StatusCompleted {
			t.Fatalf("before it has begun the run is %+v, %v", info, err)
		}
		if ends, err := p.rt.Supersede(t.Context(), continuation.Owed(nil), "", ""); err != nil || len(ends) > 0 {
			t.Errorf("superseded %+v, %v", ends, err)
		}
		if err := <-done; !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if slices.Contains(p.kinds(run), checkpoint.Noted) {
			t.Errorf("the log is %q", p.kinds(run))
		}
		if _, err := p.rt.Trigger(t.Context(), reply("u", "hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := p.rt.Deliver(t.Context()); err != nil || len(man.keys) != 1 {
			t.Errorf("delivered %q, %v; want the last end", man.keys, err)
		}
	})
}

// While one follow-up is brought that of another run may be suppressed, or brought by somebody
// else, or come to be that of an end which is past, or its run may be deleted: it is not brought
// then.
func TestWhatHappensToAFollowUpBeforeItsTurn(t *testing.T) {
	g := waiting(t, continuation.Wait{}, dag.Policy{}, says)
	for name, happens := range map[string]func(p, q *process, brought, other string) error{
		"it is superseded": func(p, _ *process, brought, _ string) error {
			_, err := p.rt.Supersede(p.t.Context(), map[string]string{"chat": "1"}, brought, "me")
			return err
		},
		"somebody else brings it": func(_, q *process, _, _ string) error {
			_, err := q.rt.Deliver(q.t.Context())
			return err
		},
		"its run is brought back": func(p, _ *process, _, other string) error {
			if _, err := p.d.Turn(p.t.Context(), other, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				return err
			}
			return nil
		},
		"its run is deleted": func(p, _ *process, _, other string) error { return p.store.Delete(p.t.Context(), other) },
	} {
		t.Run(name, func(t *testing.T) {
			var p, q *process
			man := &postman{}
			man.do = func(d continuation.Delivery) (continuation.DeliveryStatus, error) {
				other := map[string]string{"a": "b", "b": "a"}[d.End.Run]
				if err := happens(p, q, d.End.Run, other); err != nil {
					t.Error(err)
				}
				return continuation.Delivered, nil
			}
			p = begin(t, g, freshStore(), continuation.Options{Deliverer: man})
			q = begin(t, g, p.store, continuation.Options{Deliverer: &postman{}})
			for _, id := range []string{"a", "b"} {
				p.waits(id, dispatcher.Labels(continuation.Owed(map[string]string{"chat": "1"})))
				tr := reply(id, "hello")
				tr.Run = id
				if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
					t.Fatal(err)
				}
			}
			if runs, err := p.rt.Deliver(t.Context()); err != nil || len(runs) != 1 || len(man.keys) != 1 {
				t.Errorf("delivered %q of %q, %v; want the first of them", man.keys, runs, err)
			}
		})
	}
}
