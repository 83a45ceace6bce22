package dispatcher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Payment knows nothing of orders: its graph can be embedded wherever money is due.
type Payment struct {
	Cents   state.Value[int]
	Receipt state.Value[string]
}

func chargeCard(_ context.Context, p *Payment) error {
	p.Receipt.Set(fmt.Sprintf("R-%d", p.Cents.Get()))
	return nil
}

// An Order holds what the shop knows.
type Order struct {
	Cents state.Value[int]
	Paid  state.Value[string] // the receipt
}

func packOrder(_ context.Context, o *Order) error {
	fmt.Println("packed, receipt", o.Paid.Get())
	return nil
}

// An embedded graph has a state of its own. One function fills it, one takes its result;
// the paths of its visits begin with the name of the node that holds it.
func Example_embed() {
	p := dag.New[Payment]("payment")
	dag.Step(p, "charge", chargeCard)
	payment, err := p.Build()
	if err != nil {
		log.Fatal(err)
	}

	b := dag.New[Order]("order")
	pay := dag.Embed(b, "pay", payment,
		func(o *Order, p *Payment) { p.Cents.Set(o.Cents.Get()) },
		func(p *Payment, o *Order) { o.Paid.Set(p.Receipt.Get()) })
	dag.Step(b, "pack", packOrder, pay)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitStarted {
				fmt.Println("started", e.Path)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(context.Background(), "order-12", func(o *Order) { o.Cents.Set(4990) })
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// started pay/charge
	// started pack
	// packed, receipt R-4990
}
