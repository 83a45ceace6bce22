package pawltest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// Runs that differ in nothing but how often a loop goes round differ.
func TestCrashTellsWhatWasDoneMoreOften(t *testing.T) {
	rounds := 0
	round := dag.New[Order]("round")
	dag.Step(round, "look", func(context.Context, *Order) error { rounds++; return nil })
	b := dag.New[Order]("order")
	dag.Loop(b, "rounds", built(t, round), func(*Order) bool { return rounds > 3 }, 10)
	var h heard
	pawltest.Crash(&h, built(t, b), nil)
	h.expect(t, "two runs without a crash differ: visits done were …rounds/2/look…")
}

// An effect that may be done again is compared when it was: what it returns is to be the same.
func TestCrashComparesWhatAReplayableEffectReturns(t *testing.T) {
	for name, careful := range map[string]bool{"the same": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			var calls int
			b := dag.New[Order]("order")
			dag.Step(b, "price", func(ctx context.Context, o *Order) error {
				price, err := dag.Effect(ctx, "price", 1, func(context.Context, int) (int, error) {
					if calls++; careful {
						return 1, nil
					}
					return calls, nil
				}, dag.Replayable)
				o.Total.Add(price)
				return err
			})
			var h heard
			pawltest.Crash(&h, built(t, b), nil, pawltest.Reset(func() { calls = 0 }))
			if careful {
				h.expect(t)
			} else {
				h.expect(t, "state differs after the crash at …(effect_ended price#price…: cell Total was 1, is 2")
			}
		})
	}
}

// What a body does behind an effect is done outside of it.
func TestCrashTellsWhatIsDoneBehindAnEffect(t *testing.T) {
	var letters int
	b := dag.New[Order]("order")
	dag.Step(b, "send", func(ctx context.Context, o *Order) error {
		_, err := dag.Effect(ctx, "charge", 1, func(context.Context, int) (int, error) { return 1, nil })
		letters++
		o.Sent.Set(true)
		return err
	})
	var h heard
	pawltest.Crash(&h, built(t, b), nil, pawltest.Reset(func() { letters = 0 }), pawltest.World(func() any { return letters }))
	h.expect(t, "node send ran twice outside an effect: visit send changed the world")
}

// A run that stood still before and behind its visits, and was resumed, is tried as any other.
func TestReplayOfARunThatPaused(t *testing.T) {
	g := versioned(t, today)
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{InterruptBefore: []string{"carrier"}, InterruptAfter: []string{"wrap"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), "order/7", input)
	pauses := 0
	for errors.Is(err, dispatcher.ErrInterrupted) {
		for _, i := range res.Interrupts {
			if i.Kind != dispatcher.KindAsked {
				pauses++
			} else if err := d.Answer(t.Context(), "order/7", i.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		res, err = d.Resume(t.Context(), "order/7")
	}
	if err != nil || pauses != 2 {
		t.Fatalf("it paused %d times: %v", pauses, err)
	}
	file := written(t, &store)
	pawltest.Replay(t, file, g)
	for want, change := range map[string]func(*version){
		"visit carrier took van, takes bicycle":                                 func(v *version) { v.to = "bicycle" },
		`wrap was entered: cell Receipt was given {"set":"x"}, now {"set":"z"}`: func(v *version) { v.given = "z" },
	} {
		v := today
		change(&v)
		var h heard
		pawltest.Replay(&h, file, versioned(t, v))
		h.expect(t, want)
	}
}

// A question that was asked for a while, and answered, is the same question whenever it is tried;
// and so it is beside another one, whose time is over by then.
func TestReplayOfQuestionsWhoseTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Order]("order")
		for _, name := range []string{"late", "soon"} {
			dag.Step(b, name, func(ctx context.Context, o *Order) error {
				said, err := dag.Ask[string](ctx, "what", "what?", dag.Within(time.Hour))
				o.Lines.Append(name + said)
				return err
			})
		}
		g := built(t, b)
		var store memory.Store
		d, err := dispatcher.New(g, &store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"soon", "late"} {
			res, err := d.Run(t.Context(), "order/7", nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			k := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Path == path })
			if err := d.Answer(t.Context(), "order/7", res.Interrupts[k].ID, "yes"); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		if _, err := d.Run(t.Context(), "order/7", nil); err != nil {
			t.Fatal(err)
		}
		file := written(t, &store)
		<-time.After(24 * time.Hour)
		pawltest.Replay(t, file, g)
	})
}

// An effect that another visit has had is none of the visit that has it now: it is told, and not
// done; nor is one that stands beside something else that has still to come.
func TestReplayOfAnEffectThatHasMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charges := 0
		graph := func(who string) *dag.Graph[Order] {
			b := dag.New[Order]("order")
			for _, name := range []string{"a", "b", "c"} {
				dag.Step(b, name, func(ctx context.Context, o *Order) error {
					if name == who {
						if _, err := dag.Effect(ctx, "card", 1, func(context.Context, int) (int, error) { charges++; return 1, nil }); err != nil {
							return err
						}
					}
					o.Prices.Put(name, 1)
					return nil
				})
			}
			return built(t, b)
		}
		store := ran(t, graph("a"), dispatcher.Options{Parallel: 1})
		for _, file := range []string{written(t, store), anew(t, store)} {
			charges = 0
			pawltest.Replay(t, file, graph("a"))
			var h heard
			pawltest.Replay(&h, file, graph("b"))
			h.expect(t, `visit b begins effect "card", which the log does not have`)
			if charges > 0 {
				t.Errorf("it was done %d times", charges)
			}
		}
	})
}
