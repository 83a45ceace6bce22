package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Well is drawn from.
type Well struct {
	Litres state.Sum[int]
}

func draw(litres int) func(context.Context, *Well) error {
	return func(_ context.Context, w *Well) error {
		w.Litres.Add(-litres)
		return nil
	}
}

// The past of a run is dropped, but for a checkpoint that has a name.
func Example_trim() {
	b := dag.New[Well]("well")
	morning := dag.Step(b, "morning", draw(20))
	noon := dag.Step(b, "noon", draw(5), morning)
	dag.Step(b, "evening", draw(40), noon)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "monday", func(w *Well) { w.Litres.Set(500) }); err != nil {
		log.Fatal(err)
	}
	if err := d.Tag(ctx, "monday", "1", "breakfast"); err != nil {
		log.Fatal(err)
	}
	if err := d.Trim(ctx, "monday", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		log.Fatal(err)
	}

	for _, address := range []string{"tag:breakfast", "2", "3"} {
		then, err := d.At(ctx, "monday", address)
		if errors.Is(err, checkpoint.ErrCursor) {
			fmt.Println(address, "was dropped")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(address, then.State.Litres.Get())
	}
	difference, err := d.Diff(ctx, "monday", "tag:breakfast", "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(difference)
	// Output:
	// tag:breakfast 480
	// 2 was dropped
	// 3 435
	//   Litres: 480 → 435
}
