package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An Errand is looked up, and then ordered if somebody agrees.
type Errand struct {
	Item  state.Value[string]
	Cents state.Value[int]
	Order state.Value[string]
}

// price reads the price list, which changes nothing.
func price(ctx context.Context, e *Errand) error {
	cents, err := dag.Effect(ctx, "price", e.Item.Get(), func(context.Context, string) (int, error) {
		return 1200, nil
	}, dag.Reads)
	e.Cents.Set(cents)
	return err
}

// order orders the item. It goes on without it if a person says no.
func order(ctx context.Context, e *Errand) error {
	number, err := dag.Effect(ctx, "order", e.Cents.Get(), func(_ context.Context, cents int) (string, error) {
		fmt.Println("ordering for", cents)
		return "order 7", nil
	}, dag.Writes)
	if errors.Is(err, dag.ErrDenied) {
		number, err = "not ordered", nil
	}
	e.Order.Set(number)
	return err
}

// A gate stands before everything that writes. The nodes themselves are declared to read only,
// so what a person sees is the effect, with its input.
func Example_gates() {
	b := dag.New[Errand]("errand")
	reads := dag.Policy{Access: dag.Reads}
	look := dag.Step(b, "price", price).With(reads)
	dag.Step(b, "order", order, look).With(reads)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{
		Gates: dispatcher.Gates{Preset: dispatcher.GateWrites},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
		run := "errand to " + string(verdict)
		res, err := d.Run(ctx, run, func(e *Errand) { e.Item.Set("inkwell") })
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			log.Fatal(err)
		}
		for _, i := range res.Interrupts {
			fmt.Println(i, "because", i.Reason)
			if err := d.Answer(ctx, run, i.ID, verdict, dispatcher.Author("Eve")); err != nil {
				log.Fatal(err)
			}
		}
		res, err = d.Run(ctx, run, nil)
		fmt.Println(run+":", res.State.Order.Get(), err)
	}
	// Output:
	// gate asks before order#order: {"run":"errand to approve","path":"order","node":"order","effect":"order","access":"writes","input":1200} because writes need an approval, and it is declared as one
	// ordering for 1200
	// errand to approve: order 7 <nil>
	// gate asks before order#order: {"run":"errand to reject","path":"order","node":"order","effect":"order","access":"writes","input":1200} because writes need an approval, and it is declared as one
	// errand to reject: not ordered <nil>
}
