package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gated are options with gates.
func gated(g dispatcher.Gates) dispatcher.Options { return dispatcher.Options{Gates: g} }

// gatesPay is a body that asks the bank for one effect and sets the word to its receipt.
func gatesPay(w *witness, bank *effectBank, options ...dag.EffectOption) part {
	return w.sees(effectOnce(bank.pay, options...))
}

// gatesShop is the graph look → pay → tell: look is declared to read, and does an effect that
// only reads; pay is declared to read as well, and does an effect, charge, that writes; tell is
// not declared.
func gatesShop(t testing.TB, w *witness, bank *effectBank) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("shop")
	reads := dag.Policy{Access: dag.Reads}
	look := dag.Step(b, "look", w.sees(func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "price", "book", func(context.Context, string) (int, error) { return 5, nil }, dag.Reads)
		return err
	})).With(reads)
	pay := dag.Step(b, "pay", gatesPay(w, bank, dag.Writes), look).With(reads)
	dag.Step(b, "tell", w.sees(nil), pay)
	return frozen(t, b)
}

// gatesAction is the action that an interrupt asks about.
func gatesAction(t testing.TB, i dispatcher.Interrupt) dispatcher.Action {
	t.Helper()
	var a dispatcher.Action
	if err := json.Unmarshal(i.Question, &a); err != nil {
		t.Fatalf("the question %s is no action: %v", i.Question, err)
	}
	return a
}

// gatesAsked runs a graph to its end, approves all that it asks, and returns what that was.
func gatesAsked(t testing.TB, g *dag.Graph[Tale], store checkpoint.Store, o dispatcher.Options) (asked []string) {
	t.Helper()
	for {
		res, err := process(t, g, store, o).Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			completes(t, res, err)
			return asked
		}
		for _, i := range res.Interrupts {
			name := i.Path
			if i.Key != "" {
				name += "#" + i.Key
			}
			asked = append(asked, name)
			if a := gatesAction(t, i); i.By != "gate" || i.Reason == "" || a.Run != run || a.Path != i.Path || a.Effect != i.Key {
				t.Errorf("the interrupt is %+v, of %+v", i, a)
			}
			if err := process(t, g, store, o).Answer(t.Context(), run, i.ID, dispatcher.Approve); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// gatesStops runs a graph, which has to stop at one interrupt, and returns that.
func gatesStops(t testing.TB, g *dag.Graph[Tale], store checkpoint.Store, o dispatcher.Options, want string) dispatcher.Interrupt {
	t.Helper()
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	return gatesOne(t, res, err, want)
}

// gatesOne checks that a call came to rest at one interrupt, which says want.
func gatesOne(t testing.TB, res *dispatcher.Result[Tale], err error, want string) dispatcher.Interrupt {
	t.Helper()
	if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s with %v: %v, want it to wait for %s", res.Status, res.Interrupts, err, want)
	}
	i := res.Interrupts[0]
	if got := fmt.Sprintf("%s %s#%s", i.Kind, i.Path, i.Key); got != want {
		t.Fatalf("the run waits for %s, want %s", got, want)
	}
	return i
}

// gatesDecide answers an interrupt in another process.
func gatesDecide(t testing.TB, g *dag.Graph[Tale], store checkpoint.Store, o dispatcher.Options, i dispatcher.Interrupt, v dispatcher.Verdict) {
	t.Helper()
	if err := process(t, g, store, o).Answer(t.Context(), run, i.ID, v); err != nil {
		t.Fatal(err)
	}
}

// gatesUndone fails the test unless the bank has done nothing.
func gatesUndone(t testing.TB, bank *effectBank) {
	t.Helper()
	if done := bank.counts(); len(done) > 0 {
		t.Errorf("done without an approval: %v", done)
	}
}

// gatesKinds lists what the log tells of effects and interrupts.
func gatesKinds(t testing.TB, store checkpoint.Store) []string {
	t.Helper()
	return kinds(readLog(t, store), checkpoint.Interrupted, checkpoint.Answered, checkpoint.EffectBegun, checkpoint.EffectEnded)
}

func gatesSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// gatesDecode reads the data of an entry.
func gatesDecode(t testing.TB, e checkpoint.Entry, data any) {
	t.Helper()
	if err := json.Unmarshal(e.Data, data); err != nil {
		t.Fatalf("entry %d: %v", e.Seq, err)
	}
}
