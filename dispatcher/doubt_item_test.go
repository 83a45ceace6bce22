package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// doubtItems are graphs in which the second of two items pays, the first may fail, and a refund
// follows the failure of what holds them.
func doubtItems(t *testing.T, w *witness, parallel int, part func(context.Context, *Tale, int) error) map[string]*dag.Graph[Tale] {
	t.Helper()
	graphs := map[string]*dag.Graph[Tale]{}
	two := func(*Tale) []int { return []int{1, 2} }
	policy := dag.Policy{Parallel: parallel}
	items := func(b *dag.Builder[Tale]) dag.RouteNode[Tale, dag.EachOutcome] {
		return dag.Each(b, "hold", two, part).With(policy)
	}
	for name, add := range map[string]func(*dag.Builder[Tale]) dag.Edge[Tale]{
		"items": func(b *dag.Builder[Tale]) dag.Edge[Tale] { return items(b).Failed() },
		"items that are graphs": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			body := dag.New[Tale]("body")
			dag.Step(body, "pay", func(ctx context.Context, s *Tale) error { return part(ctx, s, len(s.Word.Get())) })
			return dag.EachGraph(b, "hold", two, frozen(t, body),
				func(_ *Tale, i int, to *Tale) { to.Word.Set("12"[:i]) }, func(*Tale, int, *Tale) {}).With(policy).Failed()
		},
		"items of a loop": func(b *dag.Builder[Tale]) dag.Edge[Tale] {
			body := dag.New[Tale]("body")
			items(body)
			return dag.Loop(b, "around", frozen(t, body), func(*Tale) bool { return true }, 2).Failed()
		},
	} {
		b := dag.New[Tale]("items")
		failed := add(b)
		dag.Step(b, "refund", w.sees(nil), failed)
		dag.Step(b, "beside", w.sees(nil))
		graphs[name] = frozen(t, b)
	}
	return graphs
}

// An item that was cut off in an effect has begun, and is not spared when an item before it fails,
// though fewer have a place now, or the frame around it was voided, or the run rewound, and it
// begins anew: with it there is an effect in doubt, so the failure edge waits for somebody to say
// what happened.
func TestDoubtOfAnItemWithoutAPlace(t *testing.T) {
	for _, before := range []string{"", "voided", "rewound"} {
		var w witness
		var cancel context.CancelFunc
		var fails bool
		part := func(ctx context.Context, _ *Tale, i int) error {
			if i == 1 && fails {
				return errWeather
			}
			if i == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			_, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, cents int) (int, error) {
				if fails {
					return cents, nil
				}
				cancel()
				<-ctx.Done()
				return 0, ctx.Err()
			}, dag.InDoubt(dag.DoubtFails))
			return err
		}
		narrow := doubtItems(t, &w, 1, part)
		for name, wide := range doubtItems(t, &w, 2, part) {
			fails = false
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cancel = stop
			store := new(memory.Store)
			res, err := process(t, wide, store, dispatcher.Options{}).Run(ctx, run, nil)
			if err == nil || res.Status != checkpoint.StatusCancelled {
				t.Fatalf("%s: the run is %s: %v", name, res.Status, err)
			}
			d := process(t, narrow[name], store, dispatcher.Eager(dispatcher.Options{}))
			e := doubtOpened(t, d).Effects[0]
			switch before {
			case "rewound":
				err := d.Edit(t.Context(), run, func(s *Tale) { s.Notes.Put("k", "v") }, dispatcher.EditOptions{}) // a checkpoint
				if err = errors.Join(err, d.Rewind(t.Context(), run, "", dispatcher.RewindOptions{})); err != nil {
					t.Fatal(name, err)
				}
			case "voided":
				top := "hold"
				if name == "items of a loop" {
					top = "around"
				}
				if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{top}}); err != nil {
					t.Fatal(name, err)
				}
			}
			fails = true
			res, err = d.Resume(t.Context(), run)
			if res.Status != checkpoint.StatusFailed || !errors.Is(err, dag.ErrInDoubt) && !errors.Is(err, errWeather) {
				t.Fatalf("%s, before=%q: the run is %s: %v", name, before, res.Status, err)
			}
			sameMachine(t, d, run)
			if ran := w.took(); slices.Contains(ran, "refund") {
				t.Errorf("%s, before=%q: %q ran, and nobody has said whether it was charged", name, before, ran)
			}
			if err := d.Resolve(t.Context(), run, e.Path, e.Key, dispatcher.NotHappened("the bank says so")); err != nil {
				t.Fatal(name, err)
			}
			res, err = d.Resume(t.Context(), run)
			if completes(t, res, err); !slices.Contains(w.took(), "refund") {
				t.Errorf("%s, before=%q: the failure edge is not taken when nothing is in doubt", name, before)
			}
		}
	}
}
