package dispatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// The connection breaks while a card is charged: nobody knows whether it was. The visit waits;
// somebody looks at the other side for the key, and says what happened.
func Example_doubt() {
	pay := func(ctx context.Context, p *Purchase) error {
		receipt, err := dag.Effect(ctx, "charge", p.Cents.Get(), func(context.Context, int) (string, error) {
			fmt.Println("charging")
			return "", errors.New("connection reset")
		}, dag.InDoubt(dag.DoubtAsks), dag.Operation("bank.charge"), dag.Touches("card"), dag.Writes)
		p.Receipt.Set(receipt)
		return err
	}
	b := dag.New[Purchase]("order")
	dag.Step(b, "pay", pay)
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
	ctx := context.Background()
	_, err = d.Run(ctx, "order-42", func(p *Purchase) { p.Cents.Set(1999) })
	fmt.Println(err)

	opened, err := d.Open(ctx, "order-42")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range opened.InDoubt() {
		fmt.Printf("%s with %s under %s\n", e, e.Input, e.ID)
	}
	_, err = d.Resume(ctx, "order-42", dispatcher.Manual())
	fmt.Println(err)

	err = d.Resolve(ctx, "order-42", "pay", "charge", dispatcher.Happened("receipt 7"), dispatcher.Author("Ada"))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := d.Resume(ctx, "order-42")
	fmt.Println(res.Status, res.State.Receipt.Get(), err)
	// Output:
	// charging
	// dispatcher: run "order-42" is interrupted at pay: say with Resolve what happened, and Resume
	// pay#charge (bank.charge) is begun, in doubt with 1999 under order-42/pay#charge
	// dispatcher: run "order-42": in doubt: order-42/pay#charge: say with Resolve what happened, or go on without Manual
	// completed receipt 7 <nil>
}
