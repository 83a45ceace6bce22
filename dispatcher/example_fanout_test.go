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

// A Trip is being put together. The types of its fields say how what parallel nodes
// write becomes one: a list is joined, a sum adds up.
type Trip struct {
	City   state.Value[string]
	Offers state.List[string]
	Euros  state.Sum[int]
}

func findOffer(what string, euros int) func(context.Context, *Trip) error {
	return func(_ context.Context, t *Trip) error {
		t.Offers.Append(what + " in " + t.City.Get())
		t.Euros.Add(euros)
		return nil
	}
}

func printTrip(_ context.Context, t *Trip) error {
	for _, offer := range t.Offers.All() {
		fmt.Println(offer)
	}
	fmt.Println(t.Euros.Get(), "euros")
	return nil
}

// Nodes that follow the same node, or none, run in parallel. Each has a draft of the
// state of its own; when all have finished the drafts are merged in the order in which
// the nodes are declared, whoever was first.
func Example_fanOut() {
	b := dag.New[Trip]("trip")
	hotel := dag.Step(b, "hotel", findOffer("hotel", 240))
	museum := dag.Step(b, "museum", findOffer("museum", 18))
	dinner := dag.Step(b, "dinner", findOffer("dinner", 45))
	dag.Step(b, "print", printTrip, hotel, museum, dinner) // once, after all three
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(context.Background(), "trip-7", func(t *Trip) { t.City.Set("Porto") })
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// hotel in Porto
	// museum in Porto
	// dinner in Porto
	// 303 euros
}
