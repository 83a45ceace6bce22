package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type coins struct{ Total state.Sum[int] }

type coinsOfNow struct{ Total state.Sum[int64] }

// What an Each or a Loop under way has written to a cell that is of another type now no State
// changes. The error says so, and not that a State may, and what it advises helps.
func TestAdviceCellThatIsNotMerged(t *testing.T) {
	asks := func(ctx context.Context) error {
		_, err := dag.Ask[bool](ctx, "ok", "on?")
		return err
	}
	asItIs := func(_ string, s json.RawMessage) (json.RawMessage, error) { return s, nil }
	two := func() []int { return []int{1, 2} }
	body := func(b *dag.Builder[coins]) *dag.Graph[coins] {
		add := dag.Step(b, "add", func(_ context.Context, s *coins) error { s.Total.Add(1); return nil })
		dag.Step(b, "ask", func(ctx context.Context, s *coins) error {
			if s.Total.Get() < 2 {
				return nil
			}
			return asks(ctx)
		}, add)
		return frozen(t, b)
	}
	bodyOfNow := func(b *dag.Builder[coinsOfNow]) *dag.Graph[coinsOfNow] {
		add := dag.Step(b, "add", func(_ context.Context, s *coinsOfNow) error { s.Total.Add(1); return nil })
		dag.Step(b, "ask", nothing[coinsOfNow], add)
		return frozen(t, b)
	}
	for name, test := range map[string]struct {
		was  func(*dag.Builder[coins])
		is   func(*dag.Builder[coinsOfNow], string)
		says string
		sum  int64
	}{
		"Each": {
			func(b *dag.Builder[coins]) {
				dag.Each(b, "work", func(*coins) []int { return two() }, func(ctx context.Context, s *coins, i int) error {
					if s.Total.Add(1); i == 2 {
						return asks(ctx)
					}
					return nil
				})
			},
			func(b *dag.Builder[coinsOfNow], name string) {
				dag.Each(b, name, func(*coinsOfNow) []int { return two() }, func(_ context.Context, s *coinsOfNow, _ int) error {
					s.Total.Add(10)
					return nil
				})
			},
			"and what visit work/1 has written to it is not merged yet: no Migration changes that: ", 20,
		},
		"Loop": {
			func(b *dag.Builder[coins]) {
				dag.Loop(b, "work", body(dag.New[coins]("body")), func(s *coins) bool { return s.Total.Get() > 2 }, 5)
			},
			func(b *dag.Builder[coinsOfNow], name string) {
				dag.Loop(b, name, bodyOfNow(dag.New[coinsOfNow]("body")), func(s *coinsOfNow) bool { return s.Total.Get() > 2 }, 5)
			},
			"and what iterations have written to it is not merged yet: no Migration changes that: ", 3,
		},
	} {
		var store memory.Store
		b := dag.New[coins]("till")
		test.was(b)
		_, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("%s: %v", name, err)
		}
		next := func(called string, nodes map[string]string) *dispatcher.Dispatcher[coinsOfNow] {
			b := dag.New[coinsOfNow]("till")
			test.is(b, called)
			return process(t, frozen(t, b), &store, migrating(dispatcher.Migration{Name: "m", Nodes: nodes, State: asItIs}))
		}
		unchanged(t, &store, run, func() {
			_, err = next("work", nil).Resume(t.Context(), run)
			advises(t, err, test.says, "or give the node another name")
		})
		res, err := next("work-2", map[string]string{"work": ""}).Resume(t.Context(), run)
		if completes(t, res, err); res.State.Total.Get() != test.sum {
			t.Errorf("%s: begun anew it comes to %d", name, res.State.Total.Get())
		}
	}
}
