package dispatcher_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Outing is what one asks a travel agency for.
type Outing struct {
	Wish   state.Value[string]
	Booked state.List[string]
}

// A Counter of the agency books one kind of thing.
type Counter string

const (
	Trains Counter = "trains"
	Hotels Counter = "hotels"
	Skis   Counter = "skis"
)

func counters(_ context.Context, t *Outing) (needed []Counter, err error) {
	for _, c := range []Counter{Trains, Hotels, Skis} {
		if strings.Contains(t.Wish.Get(), strings.TrimSuffix(string(c), "s")) {
			needed = append(needed, c)
		}
	}
	return needed, nil
}

func bookAt(c Counter) func(context.Context, *Outing) error {
	return func(_ context.Context, t *Outing) error {
		t.Booked.Append(string(c))
		return nil
	}
}

func confirm(_ context.Context, t *Outing) error {
	fmt.Printf("%s: booked %q\n", t.Wish.Get(), slices.Sorted(slices.Values(t.Booked.Slice())))
	return nil
}

// A Choose takes any number of its ways, and none if there is nothing to do. Those that are
// taken run side by side; what joins them says whether it wants all or any of them.
func Example_choose() {
	b := dag.New[Outing]("agency")
	at := dag.Choose(b, "counters", counters, []Counter{Trains, Hotels, Skis})
	trains := dag.Step(b, "trains", bookAt(Trains), at.On(Trains))
	hotels := dag.Step(b, "hotels", bookAt(Hotels), at.On(Hotels))
	skis := dag.Step(b, "skis", bookAt(Skis), at.On(Skis))
	dag.Step(b, "confirm", confirm, dag.Any(trains, hotels, skis))
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, wish := range []string{"a train and a hotel", "a ski", "nothing today"} {
		_, err := d.Run(context.Background(), dispatcher.NewRunID(), func(t *Outing) { t.Wish.Set(wish) })
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// a train and a hotel: booked ["hotels" "trains"]
	// a ski: booked ["skis"]
}
