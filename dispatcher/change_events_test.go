package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What events tell of the attempts of visits is the same for whoever observes a run live and
// whoever reads its log, from any entry on: also where nodes are called otherwise since, and one
// that runs a function has the name of one that holds others.
func TestEventsOfRenamedVisits(t *testing.T) {
	graph := func(step, loop, each string) *dag.Graph[Tale] {
		in := dag.New[Tale]("in")
		dag.Each(in, each, func(*Tale) []int { return []int{1, 2} }, func(context.Context, *Tale, int) error { return nil },
			dag.Step(in, step, func(context.Context, *Tale) error { return nil }))
		b := dag.New[Tale]("tale")
		turns := dag.Loop(b, loop, frozen(t, in), func(*Tale) bool { return true }, 1,
			dag.Step(b, step, func(context.Context, *Tale) error { return nil }))
		dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[bool](ctx, "sure", "sure?")
			return err
		}, turns)
		return frozen(t, b)
	}
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var observed []string
		told := func(e dispatcher.Event) string {
			return fmt.Sprintf("%d %s %s attempt %d of %s", e.Seq, e.Kind, e.Path, e.Attempt, e.Graph)
		}
		o.Observe = func(e dispatcher.Event) {
			if !e.Live {
				observed = append(observed, told(e))
			}
		}
		was, is := graph("one", "many", "each"), graph("many", "one", "every")
		first := callsDispatcher(t, was, store, o)
		res, err := first.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		o.Migrations = []dispatcher.Migration{{Name: "names", From: was.Digest(), Nodes: map[string]string{
			"one": "many", "many": "one", "many/one": "one/many", "many/each": "one/every",
		}}}
		second := callsDispatcher(t, is, store, o)
		res, err = second.Run(t.Context(), run, nil, dispatcher.Answering("", true))
		completes(t, res, err)
		o.Migrations = nil
		other := dag.New[Tale]("other")
		dag.Step(other, "else", func(context.Context, *Tale) error { return nil })
		for name, d := range map[string]*dispatcher.Dispatcher[Tale]{
			"the first": first, "the second": second, "another": callsDispatcher(t, frozen(t, other), store, o),
		} {
			for since := range observed {
				var read []string
				for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: uint64(since)}) {
					if err != nil {
						t.Fatal(err)
					}
					read = append(read, told(e))
				}
				if !slices.Equal(read, observed[since:]) {
					t.Fatalf("%s reads, from %d on, %q, and observed was %q", name, since, read, observed[since:])
				}
			}
		}
	})
}
