package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// everything is a careful graph of everything that a graph can be made of.
func everything(t testing.TB, s *shop) *dag.Graph[Order] {
	part := dag.New[Order]("part")
	fetch := dag.Step(part, "fetch", func(ctx context.Context, o *Order) error {
		_, err := dag.Effect(ctx, "letter", o.Receipt.Get(), func(_ context.Context, to string) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.letters = append(s.letters, to)
			return true, nil
		}, dag.Replayable)
		o.Total.Add(len(o.Receipt.Get()))
		return err
	})
	dag.Step(part, "pay", func(ctx context.Context, o *Order) error {
		_, err := dag.Effect(ctx, "card", o.Total.Get(), s.charge)
		return err
	}, fetch)
	round := dag.New[Order]("round")
	dag.EachGraph(round, "parts", func(o *Order) []string { return o.Items.Slice()[:2] }, built(t, part),
		func(_ *Order, item string, to *Order) { to.Receipt.Set(item) },
		func(from *Order, item string, to *Order) { to.Prices.Put(item, from.Total.Get()) })
	dag.Step(round, "add", func(_ context.Context, o *Order) error { o.Total.Add(1); return nil })

	b := dag.New[Order]("everything")
	first := dag.Step(b, "first", func(ctx context.Context, o *Order) error {
		if dag.Attempt(ctx) == 1 {
			return errors.New("not yet")
		}
		return nil
	}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(time.Minute)})
	rounds := dag.Loop(b, "rounds", built(t, round), func(o *Order) bool { return o.Total.Get() >= 2 }, 5, first)
	lines := dag.Each(b, "lines", func(o *Order) []string { return o.Items.Slice() },
		func(_ context.Context, o *Order, item string) error {
			if item == "ink" {
				return errors.New("sold out")
			}
			o.Lines.Append(item)
			return nil
		}, first).With(dag.Policy{Errors: dag.Collect})
	dag.Step(b, "last", func(ctx context.Context, o *Order) error {
		sure, err := dag.Ask[bool](ctx, "received", "?")
		limit, serr := dag.Settings[int](ctx)
		o.Sent.Set(sure && limit == 7)
		o.Lines.Append(fmt.Sprint(len(dag.Failures(ctx)), " missing"))
		return errors.Join(err, serr)
	}, rounds, lines)
	return built(t, b)
}

func TestCrashPassesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		processes := 0
		pawltest.Crash(t, nil, input, pawltest.World(s.world), pawltest.Answers(map[string]any{"received": true}),
			pawltest.Run(dispatcher.Settings(7, "test")),
			pawltest.Rebuild(func() *dag.Graph[Order] {
				processes++
				return everything(t, s)
			}))
		if processes < 80 {
			t.Errorf("only %d processes", processes)
		}
	})
}

// A run that fails is compared like any other: it has to fail for the same reason. Who did not mean
// it to is told.
func TestCrashOfAGraphThatFails(t *testing.T) {
	graph := func(cause func() error) *dag.Graph[Order] {
		b := dag.New[Order]("fails")
		first := dag.Step(b, "first", func(context.Context, *Order) error { return nil })
		dag.Step(b, "second", func(context.Context, *Order) error { return cause() }, first)
		return built(t, b)
	}
	var fails pastLogger
	pawltest.Crash(&fails, graph(func() error { return errors.New("sold out") }), input)
	fails.expect(t)
	out := heard{all: fails.logged}
	out.expect(t, "undisturbed the run fails, …sold out")
	if len(fails.logged) != 1 {
		t.Errorf("logged %q, want one line", fails.logged)
	}
	var fine pastLogger
	pawltest.Crash(&fine, graph(func() error { return nil }), input)
	if fine.expect(t); len(fine.logged) > 0 {
		t.Errorf("logged of a run that is completed: %q", fine.logged)
	}
	var h heard
	n := 0
	pawltest.Crash(&h, graph(func() error {
		if n++; n > 3 {
			return nil
		}
		return errors.New("sold out")
	}), input)
	h.expect(t, "the run differs after the crash at entry …the run was failed, is completed")
}

// What failed for good is not tried again by the next process, and of an Each that stops at an item
// it is chance which of those behind had begun.
func TestCrashOfAnEachThatStops(t *testing.T) {
	b := dag.New[Order]("stops")
	lines := dag.Each(b, "line", func(*Order) []int { return []int{1, 2, 3, 4} }, func(ctx context.Context, o *Order, i int) error {
		if i == 2 && dag.Attempt(ctx) < 3 {
			return errors.New("sold out")
		}
		o.Total.Add(i)
		return nil
	}).With(dag.Policy{Attempts: 2, Parallel: 2})
	dag.End(b, lines)
	pawltest.Crash(t, built(t, b), input)
}

// What can't be tried is told, and nothing else.
func TestCrashThatCannotBeTried(t *testing.T) {
	ask := func() *dag.Graph[Order] {
		b := dag.New[Order]("asks")
		dag.Step(b, "ask", func(ctx context.Context, _ *Order) error {
			_, err := dag.Ask[bool](ctx, "received", "?")
			return err
		})
		return built(t, b)
	}
	for _, test := range []struct {
		want    string
		graph   *dag.Graph[Order]
		options []pawltest.Option
	}{
		{"there is no graph", nil, nil},
		{`undisturbed the run does not come to its end: visit ask asks "received", and Answers have nothing for it`, ask(), []pawltest.Option{{}}},
		{"undisturbed …answer", ask(), []pawltest.Option{pawltest.Answers(map[string]any{"received": "yes"})}},
		{"Rebuild is for graphs of another state type", ask(), []pawltest.Option{pawltest.Rebuild(func() *dag.Graph[int] { return nil })}},
		{"the world can't be told", pays(t, &shop{}), []pawltest.Option{pawltest.World(func() any { return func() {} })}},
		{"undisturbed …Labels hold an empty key", pays(t, &shop{}), []pawltest.Option{pawltest.Run(dispatcher.Labels(map[string]string{"": "x"}))}},
	} {
		var h heard
		pawltest.Crash(&h, test.graph, input, test.options...)
		h.expect(t, test.want)
	}
}

// The context of the test ends its runs.
func TestCrashHasTheContextOfTheTest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := &struct {
		heard
		under
	}{under: under{ctx}}
	pawltest.Crash(h, pays(t, &shop{}), input)
	h.expect(t, "undisturbed the run does not come to its end: …cancel")
}

type under struct{ ctx context.Context }

func (u under) Context() context.Context { return u.ctx }

// A Purse is printed as it likes, and so, by embedding it, is a Tally.
type Purse struct{ Coins state.Sum[int] }

func (Purse) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

type Tally struct {
	Purse
	Calls state.Sum[int]
	Left  struct{ Coins state.List[int] }
}

// What a state says of itself in JSON is not what is compared: all its cells are.
func TestCrashOfAStateThatMarshalsItself(t *testing.T) {
	calls := 0
	var kept *Tally
	b := dag.New[Tally]("tally")
	first := dag.Step(b, "first", func(_ context.Context, o *Tally) error {
		calls++
		o.Calls.Add(calls)
		o.Coins.Add(calls)
		o.Left.Coins.Append(calls)
		kept = o
		return nil
	})
	dag.Step(b, "second", func(context.Context, *Tally) error {
		kept.Coins.Add(1)
		return nil
	}, first)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	pawltest.Crash(&h, g, nil, pawltest.Reset(func() { calls = 0 }))
	h.expect(t, "node first keeps its draft", "state differs after the crash at entry …(done first): cell Coins was 1, is 2",
		"…(done first): cell Calls was 1, is 2", "…(done first): cell Left.Coins was [1], is [2]")
}
