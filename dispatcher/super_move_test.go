package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// superPlain hides what a store can do beyond the contract.
type superPlain struct{ checkpoint.Store }

func superMove(t *testing.T, run string, from, to checkpoint.Store) {
	t.Helper()
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), from, run, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), to, &file, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A run whose process dies at some append is exported from its store and imported into
// another one, and ends there as if nothing had been: what is durable is not run again.
func TestRandomGraphsMoveToOtherStores(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		r := rand.New(rand.NewPCG(c.seed, 7))
		d := drive{c: c, store: new(mortal)}
		k, written, plain := 2+r.IntN(12), r.IntN(2) == 0, r.IntN(2) == 0
		d.next = func(call int) (int, bool) {
			if call == 0 {
				return k, written
			}
			if call == 1 {
				from := d.store
				d.store = &mortal{done: from.done, pauses: from.pauses, failed: from.failed, wrong: from.wrong}
				to := checkpoint.Store(&d.store.Store)
				if plain {
					to = superPlain{to}
				}
				superMove(t, runID, &from.Store, to)
			}
			return 0, false
		}
		res, err := d.end(t)
		sameRest(t, fmt.Sprintf("moved after append %d, written=%t, plain=%t", k, written, plain), res, err, c.want.rest())
	})
}

type superMoved struct {
	Text  state.Value[string]
	Count state.Sum[int]
	Log   state.List[string]
}

// superMovable is a graph that rests, loops, embeds, fails over and asks.
func superMovable(t *testing.T) *dag.Graph[superMoved] {
	t.Helper()
	step := func(name string) func(context.Context, *superMoved) error {
		return func(ctx context.Context, s *superMoved) error {
			s.Count.Add(1)
			s.Log.Append(dag.Key(ctx) + name)
			return nil
		}
	}
	inner := dag.New[superMoved]("inner")
	dag.Step(inner, "last", step("!"), dag.Step(inner, "first", step("?")))
	body, err := inner.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[superMoved]("movable")
	first := dag.Step(b, "first", step("."))
	left := dag.Step(b, "left", step("<"), first)
	right := dag.Step(b, "right", func(ctx context.Context, s *superMoved) error {
		answer, err := dag.Ask[string](ctx, "which?", "left or right")
		if err != nil {
			return err
		}
		s.Text.Set(answer)
		return nil
	}, first)
	enough := func(s *superMoved) bool { return s.Count.Get() > 6 }
	loop := dag.Loop(b, "loop", body, enough, 5, left, right)
	bad := dag.Step(b, "bad", func(context.Context, *superMoved) error { return errors.New("always") }, loop)
	bad.With(dag.Policy{Attempts: 2})
	dag.Step(b, "last", step("$"), bad.Failed())
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// superRest is how a run ended, in a form that can be compared.
func superRest(t *testing.T, res *dispatcher.Result[superMoved], err error) string {
	t.Helper()
	text, jerr := json.Marshal(res.State)
	if jerr != nil {
		t.Fatal(jerr)
	}
	return fmt.Sprint(res.Status, err, res.Superstep, string(text))
}

// A run is taken out of one store and put into another at every cursor that it has, between
// the two stores of this module and one that knows no more than the contract; the answer
// that waits to be read goes with it. It ends the same every time.
func TestRunMovesAtEveryCursor(t *testing.T) {
	graph := superMovable(t)
	badger, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{MemTableSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer badger.Close()
	want := ""
	for k := 1; ; k++ {
		for i, to := range []checkpoint.Store{new(memory.Store), badger, superPlain{new(memory.Store)}} {
			from := new(mortal)
			from.dieAt(k, false)
			d, err := dispatcher.New(graph, from, dispatcher.Options{Paranoid: k%2 == 0})
			if err != nil {
				t.Fatal(err)
			}
			drive := func(d *dispatcher.Dispatcher[superMoved]) (*dispatcher.Result[superMoved], error) {
				res, err := d.Run(t.Context(), "run", func(s *superMoved) { s.Text.Set("input") })
				if err != nil && len(res.Interrupts) == 1 {
					if err := d.Answer(t.Context(), "run", res.Interrupts[0].ID, "left"); err != nil {
						return res, err
					}
					return d.Run(t.Context(), "run", nil)
				}
				return res, err
			}
			res, err := drive(d)
			if !from.died() {
				if got := superRest(t, res, err); k < 10 || got != want {
					t.Fatalf("append %d: a run that is not moved ends\n%s\nwant\n%s", k, got, want)
				}
				return
			}
			if _, err := from.Store.Stat(t.Context(), "run"); err != nil { // it died before it began
				continue
			}
			superMove(t, "run", &from.Store, to)
			if d, err = dispatcher.New(graph, to, dispatcher.Options{}); err != nil {
				t.Fatal(err)
			}
			if res, err = drive(d); err != nil {
				t.Fatalf("moved at append %d to store %d: %v", k, i, err)
			}
			got := superRest(t, res, err)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("moved at append %d to store %d:\n%s\nwant\n%s", k, i, got, want)
			}
			if err := to.Delete(t.Context(), "run"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
