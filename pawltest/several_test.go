package pawltest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// stopsAtSeveral is an Each of which items 2 and 3 fail, both of them if both had begun.
func stopsAtSeveral(t testing.TB, fails func(item int) error) *dag.Graph[Order] {
	b := dag.New[Order]("stops")
	lines := dag.Each(b, "line", func(*Order) []int { return []int{1, 2, 3, 4} }, func(_ context.Context, o *Order, i int) error {
		if i == 2 || i == 3 {
			return fails(i)
		}
		o.Total.Add(i)
		return nil
	}).With(dag.Policy{Attempts: 2, Parallel: 4})
	dag.End(b, lines)
	return built(t, b)
}

// Of an Each that stops it is chance whether an item behind the first that fails fails as well.
func TestCrashOfAnEachOfWhichSeveralFail(t *testing.T) {
	pawltest.Crash(t, stopsAtSeveral(t, func(int) error { return errors.New("sold out") }), input)
}

// How the first one fails is none.
func TestCrashOfAnEachThatStopsInAnotherWay(t *testing.T) {
	var h heard
	began := 0
	pawltest.Crash(&h, stopsAtSeveral(t, func(i int) error {
		if i == 2 {
			began++
		}
		if began > 2 { // more often than without a crash
			panic("again")
		}
		return errors.New("sold out")
	}), input, pawltest.Reset(func() { began = 0 }))
	h.expect(t, `visits failed were ["line (error)" "line/2 (error)"], are ["line (panic)" "line/2 (panic)"]`)
}

// What follows from an outcome that is another one is not told beside it.
func TestCrashTellsACauseAlone(t *testing.T) {
	var h heard
	calls := 0 // of this process and those before it
	b := dag.New[Order]("routes")
	carrier := dag.Route(b, "carrier", func(context.Context, *Order) (way, error) {
		if calls++; calls > 1 {
			return "van", nil
		}
		return "bicycle", nil
	}, []way{"van", "bicycle"})
	nothing := func(context.Context, *Order) error { return nil }
	dag.Step(b, "load", nothing, carrier.On("van"))
	dag.Step(b, "pump", nothing, carrier.On("bicycle"))
	pawltest.Crash(&h, built(t, b), input, pawltest.Reset(func() { calls = 0 }))
	h.expect(t, `visit carrier took "bicycle", takes "van"`)
}

// A checked state is refused from a total on.
type checked struct {
	Total state.Sum[int]
}

var mostChecked atomic.Int64 // 0 is no limit

func (c *checked) Check() error {
	if most := mostChecked.Load(); most > 0 && int64(c.Total.Get()) >= most {
		return errors.New("refused")
	}
	return nil
}

// What follows from an Each may be missing only where an attempt of another item had failed while
// an item was at work. It is told where the item itself had failed, and of an Each that begins
// again behind a rewind, also if items of it had failed before.
func TestReplayOfItemsThatHadFailed(t *testing.T) {
	slips := true
	b := dag.New[checked]("lines")
	dag.Each(b, "line", func(s *checked) []int { return []int{1, 2}[:1+min(s.Total.Get(), 1)] }, func(ctx context.Context, s *checked, i int) error {
		if slips && i == 1 && dag.Attempt(ctx) == 1 {
			return errors.New("not yet")
		}
		s.Total.Add(i)
		return nil
	}).With(dag.Policy{Attempts: 2})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, id := t.Context(), "order/7"
	_, err = d.Run(ctx, id, nil)
	must(err)
	once := written(t, &store)
	must(d.Rewind(ctx, id, "0", dispatcher.RewindOptions{}))
	must(d.Edit(ctx, id, func(s *checked) { s.Total.Add(10) }, dispatcher.EditOptions{}))
	slips = false
	_, err = d.Run(ctx, id, nil)
	must(err)
	twice := written(t, &store)
	pawltest.Replay(t, once, g)
	defer mostChecked.Store(0)
	for file, most := range map[string]int64{once: 1, twice: 11} {
		mostChecked.Store(most)
		var h heard
		pawltest.Replay(&h, file, g)
		h.expect(t, "superstep line@1 ended, and now it is not")
	}
}
