package dispatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Purchase is paid for and sent.
type Purchase struct {
	Cents   state.Value[int]
	Receipt state.Value[string]
}

// An effect is done once, however often its visit runs: here the first attempt fails behind
// it. The other side is given the key, which is the same in every attempt and process.
func Example_effect() {
	pay := func(ctx context.Context, o *Purchase) error {
		receipt, err := dag.Effect(ctx, "charge", o.Cents.Get(), func(ctx context.Context, cents int) (string, error) {
			fmt.Printf("charging %d under %s\n", cents, dag.Key(ctx))
			return "receipt 7", nil
		})
		if err != nil {
			return err
		}
		if dag.Attempt(ctx) == 1 {
			return errors.New("the printer is on fire")
		}
		o.Receipt.Set(receipt)
		return nil
	}
	b := dag.New[Purchase]("order")
	dag.Step(b, "pay", pay).With(dag.Policy{Attempts: 2})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := d.Run(context.Background(), "order-42", func(o *Purchase) { o.Cents.Set(1999) })
	fmt.Println(res.Status, res.State.Receipt.Get(), err)
	// Output:
	// charging 1999 under order-42/pay#charge
	// completed receipt 7 <nil>
}
