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

// A Journey is booked piece by piece.
type Journey struct {
	Train, Hotel state.Value[string]
}

func bookTrain(ctx context.Context, j *Journey) error {
	fmt.Println("booking under the key", dag.Key(ctx))
	j.Train.Set("19:40")
	return nil
}

func bookHotel(ctx context.Context, j *Journey) error {
	fmt.Println("booking under the key", dag.Key(ctx))
	j.Hotel.Set("by the station")
	return nil
}

// A run goes on from an earlier checkpoint of its own. What was done before it stays, what comes
// behind it is done again under another key, and what became of it before stays in the log.
func Example_rewind() {
	b := dag.New[Journey]("journey")
	train := dag.Step(b, "train", bookTrain)
	dag.Step(b, "hotel", bookHotel, train)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "porto", nil); err != nil {
		log.Fatal(err)
	}

	why := dispatcher.RewindOptions{Reason: "the hotel is full"}
	if err := d.Rewind(ctx, "porto", "1", why, dispatcher.Author("ann")); err != nil {
		log.Fatal(err)
	}
	now, err := d.State(ctx, "porto")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Status, now.Cursor)
	if _, err := d.Run(ctx, "porto", nil); err != nil {
		log.Fatal(err)
	}
	for e, err := range d.Events(ctx, "porto", dispatcher.Listen{}) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == dispatcher.RunRewound {
			fmt.Println(e)
		}
	}
	// Output:
	// booking under the key porto/train
	// booking under the key porto/hotel
	// pending porto@8 hotel
	// booking under the key porto~1/hotel
	// porto@8: run rewound to porto@4 by ann: the hotel is full
}
