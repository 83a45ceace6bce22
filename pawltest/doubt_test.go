package pawltest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// With somebody who looks at the other side, runs in which an effect was under way are compared
// as well: a graph passes whose doubts are resolved by what is so, and one does not that is told
// something else. Also if the function itself does not know, and a person is asked.
func TestCrashWithDoubts(t *testing.T) {
	for _, test := range []struct {
		doubt dag.Doubt
		err   error // of the function
		lies  bool
		told  int
	}{
		{doubt: dag.DoubtTells}, {doubt: dag.DoubtFails}, {doubt: dag.DoubtAsks},
		{doubt: dag.DoubtAsks, err: errors.New("connection reset")},
		{doubt: dag.DoubtTells, lies: true, told: 1},
	} {
		var s shop
		b := dag.New[Order]("doubtful")
		dag.Step(b, "pay", func(ctx context.Context, o *Order) error {
			receipt, err := dag.Effect(ctx, "card", 5, func(ctx context.Context, cents int) (string, error) {
				receipt, _ := s.charge(ctx, cents)
				return receipt, test.err
			}, dag.InDoubt(test.doubt))
			o.Receipt.Set(receipt)
			return err
		})
		settled := 0
		settle := func(e dispatcher.OpenEffect) dispatcher.Resolution {
			settled++
			switch {
			case e.Key != "card" || string(e.Input) != "5":
				t.Errorf("asked about %+v", e)
			case test.lies:
				return dispatcher.Happened("another receipt")
			case s.charges > 0:
				return dispatcher.Happened("receipt")
			}
			return dispatcher.NotHappened("there is no charge")
		}
		var told heard
		reset := pawltest.Reset(func() { s.charges = 0 })
		pawltest.Crash(&told, built(t, b), input, pawltest.World(s.world), reset, pawltest.Doubts(settle))
		if len(told.all) != test.told || settled == 0 || s.charges != 1 {
			t.Errorf("%s, %v: settled %d times, charged %d times, told %q", test.doubt, test.err, settled, s.charges, told.all)
		}
	}
}

// An effect whose function returned an error is in doubt until its visit has ended: what comes of
// later crashes is compared as ever, whether the visit was done or has failed.
func TestCrashBehindAnEffectThatFailed(t *testing.T) {
	for _, fails := range []bool{false, true} {
		calls := 0
		b := dag.New[Order]("declined")
		pay := dag.Step(b, "pay", func(ctx context.Context, o *Order) error {
			_, err := dag.Effect(ctx, "card", 5, func(context.Context, int) (string, error) { return "", errors.New("declined") })
			if fails {
				return err
			}
			o.Receipt.Set("declined")
			return nil
		})
		after := dag.Edge[Order](pay)
		if fails {
			after = pay.Failed()
		}
		dag.Step(b, "next", func(_ context.Context, o *Order) error {
			calls++
			o.Total.Add(calls)
			return nil
		}, after)
		var told heard
		pawltest.Crash(&told, built(t, b), input, pawltest.Reset(func() { calls = 0 }))
		told.expect(t, "state differs after the crash at entry …(done next): cell Total was 1, is 2")
	}
}
