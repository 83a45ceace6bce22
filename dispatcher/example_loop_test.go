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

// A Bargain is struck when the offer has met the price.
type Bargain struct {
	Offer state.Value[int]
	Price state.Value[int]
}

func raiseOffer(_ context.Context, b *Bargain) error {
	b.Offer.Set(b.Offer.Get() + 20)
	return nil
}

func lowerPrice(_ context.Context, b *Bargain) error {
	b.Price.Set(b.Price.Get() - 10)
	fmt.Printf("offered %d, asked %d\n", b.Offer.Get(), b.Price.Get())
	return nil
}

func isStruck(b *Bargain) bool { return b.Offer.Get() >= b.Price.Get() }

func callOut(word string) func(context.Context, *Bargain) error {
	return func(context.Context, *Bargain) error {
		fmt.Println(word)
		return nil
	}
}

// A loop is a node that repeats a graph over the same state, and has a bound. Its two
// outcomes can be followed like those of a router.
func Example_loop() {
	round := dag.New[Bargain]("round")
	raised := dag.Step(round, "raise", raiseOffer)
	dag.Step(round, "yield", lowerPrice, raised)
	body, err := round.Build()
	if err != nil {
		log.Fatal(err)
	}

	b := dag.New[Bargain]("market")
	haggle := dag.Loop(b, "haggle", body, isStruck, 5)
	dag.Step(b, "buy", callOut("sold!"), haggle.On(dag.Done))
	dag.Step(b, "leave", callOut("too dear"), haggle.On(dag.Exhausted))
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(context.Background(), "carpet", func(b *Bargain) { b.Price.Set(100) })
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// offered 20, asked 90
	// offered 40, asked 80
	// offered 60, asked 70
	// offered 80, asked 60
	// sold!
}
