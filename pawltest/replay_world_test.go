package pawltest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// The graph that has made a log agrees with it also where visits are done by what Replay has not:
// with a dependency that has become stale since, as an interceptor has decided, or as an item that
// was at work when another one failed.
func TestReplayOfTheSameGraphInAnotherWorld(t *testing.T) {
	depends := func(trust time.Duration, stale dag.OnStale) *dag.Graph[Order] {
		b := dag.New[Order]("depends")
		price := dag.Step(b, "price", func(ctx context.Context, o *Order) error {
			o.Total.Add(100)
			return dag.Depends(ctx, dag.Dependency{
				Name: "prices", Captured: time.Now().Add(-24 * time.Hour), StaleAfter: trust, OnStale: stale,
			})
		})
		dag.Step(b, "sum", func(_ context.Context, o *Order) error {
			o.Prices.Put("all", o.Total.Get())
			return nil
		}, price)
		return built(t, b)
	}
	file := export(t, depends(time.Hour, dag.Invalidate), dispatcher.Options{})
	pawltest.Replay(t, file, depends(time.Hour, dag.Invalidate))
	var h heard
	pawltest.Replay(&h, file, depends(time.Minute, dag.Invalidate))
	h.expect(t, "visit price was done with …, and now with …")

	write := func(_ context.Context, s any) ([]string, error) {
		s.(*Order).Receipt.Set("from the clerk")
		return nil, nil
	}
	for _, clerk := range []dispatcher.Interceptor{
		{Nodes: []string{"price"}, Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Instead(write) }},
		{Nodes: []string{"price"}, After: func(context.Context, dispatcher.Call, []string) dispatcher.Change { return dispatcher.Replace(write) }},
	} {
		hooks := dispatcher.Hooks{Intercept: []dispatcher.Interceptor{clerk}}
		pawltest.Replay(t, export(t, depends(48*time.Hour, dag.Ignore), dispatcher.Options{Hooks: hooks}), depends(48*time.Hour, dag.Ignore))
	}

	store, valid := ran(t, depends(time.Hour, dag.Revalidate), dispatcher.Options{}), dispatcher.Options{
		Revalidate: func(context.Context, dag.Dependency) error { return nil },
	}
	d, err := dispatcher.New(depends(time.Hour, dag.Revalidate), store, valid)
	if err == nil {
		err = d.Rewind(t.Context(), "order/7", "1", dispatcher.RewindOptions{})
	}
	if err == nil {
		_, err = d.Run(t.Context(), "order/7", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	pawltest.Replay(t, written(t, store), depends(time.Hour, dag.Revalidate))

	failed, done := make(chan struct{}), make(chan struct{})
	b := dag.New[Order]("lines")
	lines := dag.Each(b, "line", func(*Order) []int { return []int{1, 2} }, func(ctx context.Context, o *Order, i int) error {
		switch {
		case i == 2:
			<-failed // the log has it
		case dag.Attempt(ctx) == 2:
			<-done // the log has that of item 2
		}
		o.Total.Add(i)
		return map[int]error{1: errors.New("sold out")}[i]
	}).With(dag.Policy{Attempts: 2})
	dag.End(b, lines)
	dag.Step(b, "sorry", func(_ context.Context, o *Order) error {
		o.Lines.Append("sorry")
		return nil
	}, lines.Failed())
	g := built(t, b)
	pawltest.Replay(t, export(t, g, dispatcher.Options{Observe: func(e dispatcher.Event) {
		switch {
		case e.Kind == dispatcher.AttemptFailed && e.Attempt == 1:
			close(failed)
		case e.Kind == dispatcher.VisitDone && e.Path == "line/2":
			close(done)
		}
	}}), g)
}

// A visit that went on although an effect of it has no output is not tried, and keeps none beside
// it from being tried.
func TestReplayBesideAVisitThatIsNotTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan struct{})
		graph := func(price int) *dag.Graph[Order] {
			b := dag.New[Order]("beside")
			quote := dag.Step(b, "quote", func(ctx context.Context, o *Order) error {
				_, err := dag.Effect(ctx, "quote", 1, func(context.Context, int) (int, error) {
					close(failed)
					return 0, errors.New("no quote today")
				}, dag.Replayable)
				o.Sent.Set(err == nil)
				return nil
			})
			add := dag.Step(b, "price", func(_ context.Context, o *Order) error {
				<-failed
				o.Total.Add(price)
				return nil
			})
			dag.Step(b, "last", func(_ context.Context, o *Order) error {
				o.Lines.Append("last")
				return nil
			}, quote, add)
			return built(t, b)
		}
		// Of a store that is no Archiver all that has one time is tried at once.
		file := written(t, struct{ checkpoint.Store }{ran(t, graph(100), dispatcher.Options{})})
		pawltest.Replay(t, file, graph(100))
		var h heard
		pawltest.Replay(&h, file, graph(200))
		h.expect(t, `visit price: cell Total wrote {"add":100}, now {"add":200}`)
	})
}
