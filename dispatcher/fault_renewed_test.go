package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// renewal is a graph of a Loop whose failure is followed, and in it what add adds. What add adds is to fail. It is salvaged,
// and conflicts then with two visits beside it, of which one has an effect in doubt at the resume: so the Loop's failure is nobody's.
func renewal[S any](t *testing.T, set func(*S, string), add func(*dag.Builder[S])) *dag.Graph[S] {
	t.Helper()
	outer, b := dag.New[S]("outer"), dag.New[S]("top")
	add(outer)
	tries := 0
	dag.Step(outer, "one", func(_ context.Context, s *S) error {
		if tries++; tries == 1 {
			set(s, "one")
		}
		return nil
	})
	others := 0
	dag.Step(outer, "other", func(ctx context.Context, s *S) error {
		if others++; others == 1 {
			set(s, "other")
			return nil
		}
		_, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 0, errWeather }, dag.InDoubt(dag.DoubtFails))
		return err
	})
	around := dag.Loop(b, "around", frozen(t, outer), func(*S) bool { return true }, 1)
	dag.Step(b, "handler", nothing[S], around.Failed())
	dag.End(b, dag.Edge[S](around))
	return frozen(t, b)
}

// renewed runs a renewal up to where the next resume runs again what has failed, of which a part is salvaged.
func renewed[S any](t *testing.T, g *dag.Graph[S], store checkpoint.Store, o dispatcher.Options) {
	t.Helper()
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
		t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
	}
	d := process(t, g, store, o)
	const other = "around/1/other"
	res, err = d.Resume(t.Context(), run)
	if n := len(res.Failures); res.Status != checkpoint.StatusFailed || n == 0 || res.Failures[n-1].Path != other {
		t.Fatalf("the run is %s: %v, want an effect in doubt", res.Status, err)
	}
	if err := d.Resolve(t.Context(), run, other, "k", dispatcher.Happened(1)); err != nil {
		t.Fatal(err)
	}
}

func setWord(s *Tale, word string) { s.Word.Set(word) }

// What items have written that are salvaged, and what others wrote that stand behind the one that failed, counts when that one runs
// again: also from a snapshot, and behind a change of the graph.
func TestSalvagedItemsRunAgain(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"a log", "a snapshot", "a changed graph", "a migration"} {
		third, tries := make(chan struct{}), 0
		build := func(name string, more bool) *dag.Graph[Tale] {
			return renewal(t, setWord, func(b *dag.Builder[Tale]) {
				items := dag.Each(b, name, eachOf(3), func(ctx context.Context, s *Tale, item string) error {
					switch item {
					case "item1":
						s.Count.Add(1)
					case "item2":
						if tries++; tries == 1 {
							<-third
							return errWeather
						}
						_, err := dag.Ask[string](ctx, "q", "on?")
						s.Count.Add(10)
						return err
					case "item3":
						s.Count.Add(100)
						close(third)
					}
					return nil
				})
				if more {
					dag.Step(b, "more", func(_ context.Context, s *Tale) error { s.Count.Add(1000); return nil }, items)
				}
			})
		}
		g, store, o, want := build("items", false), new(memory.Store), dispatcher.Options{}, 111
		if way == "a snapshot" {
			o = dispatcher.Eager(o)
		}
		renewed(t, g, store, o)
		res, err := process(t, g, store, o).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "around/1/items/2")
		d := process(t, g, store, o)
		switch way {
		case "a changed graph":
			d, want = process(t, build("items", true), store, o), 1111
		case "a migration":
			d = process(t, build("things", false), store, migrating(dispatcher.Migration{
				Name: "m", Nodes: map[string]string{"around/items": "around/things"},
				State: func(_ string, s json.RawMessage) (json.RawMessage, error) { return s, nil },
			}))
		}
		opened, err := d.Open(t.Context(), run)
		if err != nil || len(opened.Interrupts) != 1 {
			t.Fatalf("%s: %+v, %v", way, opened, err)
		}
		if err := d.Answer(t.Context(), run, opened.Interrupts[0].ID, "yes"); err != nil {
			t.Fatal(way, err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if got := res.State.Count.Get(); got != want {
			t.Errorf("%s: the count is %d, want %d", way, got, want)
		}
	}
}
