package pawltest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// gateEverything stands before all that a graph does; reject names the effect that a person
// rejects.
func gateEverything(reject string) pawltest.Option {
	return pawltest.Approvals(dispatcher.Gates{Preset: dispatcher.GateEverything}, func(a dispatcher.Action) dispatcher.Verdict {
		if a.Effect == reject {
			return dispatcher.Reject
		}
		return dispatcher.Approve
	})
}

// gateOrder is a graph that charges a card, and writes a letter unless a person says no. It
// calls careless before the effect.
func gateOrder(t testing.TB, s *shop, careless func()) *dag.Graph[Order] {
	b := dag.New[Order]("gated")
	pay := dag.Step(b, "pay", func(ctx context.Context, o *Order) error {
		careless()
		receipt, err := dag.Effect(ctx, "card", 5, s.charge)
		o.Receipt.Set(receipt)
		return err
	})
	dag.Step(b, "mail", func(ctx context.Context, o *Order) error {
		sent, err := dag.Effect(ctx, "letter", o.Receipt.Get(), func(_ context.Context, to string) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.letters = append(s.letters, to)
			return true, nil
		})
		if errors.Is(err, dag.ErrDenied) {
			return nil
		}
		o.Sent.Set(sent)
		return err
	}, pay)
	return built(t, b)
}

// A careful graph behind gates passes, whatever is decided; one that does something before an
// effect that has to be approved does it twice.
func TestCrashBehindGates(t *testing.T) {
	for _, reject := range []string{"nothing", "letter"} {
		s := &shop{}
		pawltest.Crash(t, gateOrder(t, s, func() {}), input, pawltest.World(s.world), gateEverything(reject))
		if wrote := len(s.letters) > 0; wrote == (reject == "letter") {
			t.Errorf("rejected is %s, and there are the letters %q", reject, s.letters)
		}
	}
	s := &shop{}
	var h heard
	pawltest.Crash(&h, gateOrder(t, s, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.letters = append(s.letters, "careless")
	}), input, pawltest.World(s.world), gateEverything("nothing"))
	h.expect(t, "node pay ran twice outside an effect: visit pay changed the world before its question was answered (from…")

	h = heard{}
	pawltest.Crash(&h, gateOrder(t, &shop{}, func() {}), input, pawltest.Approvals(dispatcher.Gates{Preset: dispatcher.GateWrites}, nil))
	h.expect(t, "undisturbed the run does not come to its end: gate asks before pay: …and Approvals have nobody who decides…")
}

// Replay needs no approval: what was approved has happened, and what was rejected is in the log.
func TestReplayBehindGates(t *testing.T) {
	for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
		s := &shop{}
		g := gateOrder(t, s, func() {})
		file := gateExport(t, g, verdict)
		charges, letters := s.charges, len(s.letters)
		pawltest.Replay(t, file, g)
		if s.charges != charges || charges != 1 || len(s.letters) != letters {
			t.Errorf("%d charges and %d letters, %d charges and %d letters before", s.charges, len(s.letters), charges, letters)
		}
		var h heard
		b := dag.New[Order]("gated")
		pay := dag.Step(b, "pay", func(context.Context, *Order) error { return nil })
		dag.Step(b, "mail", func(context.Context, *Order) error { return nil }, pay)
		pawltest.Replay(&h, file, built(t, b))
		if len(h.all) == 0 {
			t.Error("a graph without the effects agrees with the log")
		}
	}
	var h heard
	pawltest.Replay(&h, "none", gateOrder(t, &shop{}, func() {}), gateEverything(""))
	h.expect(t, "Replay takes Migrations and SinceChange alone…")
}

// gateExport runs a graph behind gates, and exports the run. The verdict is of its letter; all
// else is approved.
func gateExport(t testing.TB, g *dag.Graph[Order], verdict dispatcher.Verdict) string {
	t.Helper()
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{Gates: dispatcher.Gates{Preset: dispatcher.GateEverything}})
	if err != nil {
		t.Fatal(err)
	}
	for {
		res, err := d.Run(t.Context(), "order/7", input)
		if err == nil {
			return written(t, &store)
		}
		if len(res.Interrupts) == 0 {
			t.Fatal(err)
		}
		for _, i := range res.Interrupts {
			v := dispatcher.Approve
			if i.Key == "letter" {
				v = verdict
			}
			if err := d.Answer(t.Context(), "order/7", i.ID, v); err != nil {
				t.Fatal(err)
			}
		}
	}
}
