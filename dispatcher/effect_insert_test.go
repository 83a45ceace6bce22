package dispatcher_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// insertedBefore is a graph of a node that pays and asks, which is the node pay itself or stands in
// an Embed or in the items of an Each of that name, with one of the same kind before it if that is
// said.
func insertedBefore(t testing.TB, kind string, names []string, bank *effectBank, fail error) *dag.Graph[Tale] {
	t.Helper()
	act := func(pays bool) func(context.Context, *Tale) error {
		return func(ctx context.Context, s *Tale) error {
			if !pays {
				return nil
			}
			if _, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, n int) (string, error) {
				receipt, err := bank.pay(ctx, n)
				return receipt, errors.Join(err, fail)
			}); err != nil {
				return err
			}
			_, err := dag.Ask[bool](ctx, "sure", "?")
			return err
		}
	}
	b := dag.New[Tale]("inserts")
	var after []dag.Edge[Tale]
	for _, name := range names {
		f := act(name == "pay")
		var e dag.Edge[Tale]
		switch kind {
		case "step":
			e = dag.Step(b, name, f, after...)
		case "embed":
			in := dag.New[Tale]("body")
			dag.Step(in, "do", f)
			nothing := func(*Tale, *Tale) {}
			e = dag.Embed(b, name, frozen(t, in), nothing, nothing, after...)
		case "each":
			e = dag.Each(b, name, func(*Tale) []int { return []int{1} },
				func(ctx context.Context, s *Tale, _ int) error { return f(ctx, s) }, after...)
		}
		after = []dag.Edge[Tale]{e}
	}
	return frozen(t, b)
}

// An effect that has happened is not done again by a new node that has the name its visit had: the
// migration that puts a node before the visit is refused. So it is once somebody has said that the
// effect, which was in doubt, happened. If it did not happen, nothing is done twice.
func TestEffectIsNotDoneAgainBehindANodePutBeforeIt(t *testing.T) {
	inserts := dispatcher.Options{Migrations: []dispatcher.Migration{{Name: "insert", Nodes: map[string]string{"pay": "mark"}}}}
	for kind, visit := range map[string]string{"step": "pay", "embed": "pay/do", "each": "pay/1"} {
		for how, fail := range map[string]error{
			"ended": nil, "in doubt": errors.New("reset"), "not done": dag.NotDone,
		} {
			t.Run(kind+", "+how, func(t *testing.T) {
				var bank effectBank
				var store memory.Store
				old := process(t, insertedBefore(t, kind, []string{"pay"}, &bank, fail), &store, dispatcher.Options{})
				if _, err := old.Run(t.Context(), run, nil); err == nil {
					t.Fatal("it is completed")
				}
				d := process(t, insertedBefore(t, kind, []string{"mark", "pay"}, &bank, nil), &store, inserts)
				if how == "in doubt" {
					if err := d.Resolve(t.Context(), run, visit, "charge", dispatcher.Happened("5")); err != nil {
						t.Fatal(err)
					}
				}
				res, err := d.Run(t.Context(), run, nil)
				if how == "not done" {
					rests(t, res, err, checkpoint.StatusInterrupted, visit)
					return
				}
				var changed *dispatcher.GraphChangedError
				want := `effect "charge" of visit ` + visit + ` has happened, and a new node named "pay" would do it again`
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v", err)
				}
				if got := asJSON(t, bank.counts()); got != `{"tale/`+visit+`#charge":1}` {
					t.Errorf("done %s", got)
				}
			})
		}
	}
}

// Nor is one that happened though what it returned could not be kept.
func TestLostEffectIsNotDoneAgainBehindANodePutBeforeIt(t *testing.T) {
	var store memory.Store
	graph := func(names ...string) *dag.Graph[Tale] {
		b := dag.New[Tale]("inserts")
		var after []dag.Edge[Tale]
		for _, name := range names {
			after = []dag.Edge[Tale]{dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
				if name != "pay" {
					return nil
				}
				if _, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (float64, error) { return math.NaN(), nil }); err == nil {
					t.Error("NaN was kept")
				}
				_, err := dag.Ask[bool](ctx, "sure", "?")
				return err
			}, after...)}
		}
		return frozen(t, b)
	}
	if _, err := process(t, graph("pay"), &store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	o := dispatcher.Options{Migrations: []dispatcher.Migration{{Name: "insert", Nodes: map[string]string{"pay": "mark"}}}}
	_, err := process(t, graph("mark", "pay"), &store, o).Run(t.Context(), run, nil)
	var changed *dispatcher.GraphChangedError
	if !errors.As(err, &changed) || !strings.Contains(err.Error(), `effect "charge" of visit pay has happened`) {
		t.Errorf("%v", err)
	}
}

// Where no new node has the name that a visit had, its effects go with it, also where two nodes
// change their names.
func TestEffectsGoWithNodesThatSwapNames(t *testing.T) {
	var bank effectBank
	var store memory.Store
	graph := func(first, second string) *dag.Graph[Tale] {
		b := dag.New[Tale]("swaps")
		for i, name := range []string{first, second} {
			dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
				if _, err := dag.Effect(ctx, "charge", i, bank.pay); err != nil {
					return err
				}
				_, err := dag.Ask[bool](ctx, "sure", "?")
				return err
			})
		}
		return frozen(t, b)
	}
	if _, err := process(t, graph("a", "b"), &store, dispatcher.Options{}).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	d := process(t, graph("b", "a"), &store, dispatcher.Options{Migrations: []dispatcher.Migration{{
		Name: "swap", Nodes: map[string]string{"a": "b", "b": "a"},
	}}})
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Error(err)
	}
	if got := asJSON(t, bank.counts()); got != `{"tale/a#charge":1,"tale/b#charge":1}` {
		t.Errorf("done %s", got)
	}
}

// A node put before a visit that is done, whose effects nobody remembers any more, is refused as
// well: the visit would become the new node's, and the old node would do it all again, now or
// behind others that are new. One that has the name and stands further on is another node.
func TestWhatIsDoneIsNotDoneAgainBehindANodePutBeforeIt(t *testing.T) {
	var bank effectBank
	nothing := func(context.Context, *Tale) error { return nil }
	body := func(name string, nodes ...string) *dag.Graph[Tale] {
		b := dag.New[Tale](name)
		look := dag.Step(b, "look", nothing)
		ask := dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[bool](ctx, "sure", "?")
			return err
		}, look)
		var after []dag.Edge[Tale]
		for _, node := range nodes {
			switch node {
			case "pay":
				after = []dag.Edge[Tale]{dag.Step(b, node, func(ctx context.Context, _ *Tale) error {
					_, err := dag.Effect(ctx, "charge", 5, bank.pay)
					return err
				}, after...)}
			case "ask":
				after = []dag.Edge[Tale]{ask}
			default:
				after = []dag.Edge[Tale]{dag.Step(b, node, nothing, after...)}
			}
		}
		return frozen(t, b)
	}
	for what, nodes := range map[string][]string{
		"": {"mark", "pay"}, "with one between": {"mark", "note", "pay"}, "further on": {"mark", "ask", "pay"},
	} {
		for _, in := range []string{"", "body/"} {
			t.Run(in+what, func(t *testing.T) {
				bank = effectBank{}
				var store memory.Store
				graph := func(nodes ...string) *dag.Graph[Tale] {
					if in == "" {
						return body("done", nodes...)
					}
					b := dag.New[Tale]("done")
					nothing := func(*Tale, *Tale) {}
					dag.Embed(b, "body", body("body", nodes...), nothing, nothing)
					return frozen(t, b)
				}
				res, err := process(t, graph("pay"), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, in+"ask")
				d := process(t, graph(nodes...), &store, dispatcher.Options{Migrations: []dispatcher.Migration{{
					Name: "insert", Nodes: map[string]string{in + "pay": in + "mark"},
				}}})
				res, err = d.Run(t.Context(), run, nil)
				if what == "further on" {
					rests(t, res, err, checkpoint.StatusInterrupted, in+"ask")
					return
				}
				var changed *dispatcher.GraphChangedError
				want := "visit " + in + `pay is done, and a new node named "pay" behind mark would do it again`
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
