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
)

// The past of a run is dropped, but for a checkpoint that has a name.
func Example_trim() {
	b := dag.New[Account]("savings")
	deposit := dag.Step(b, "deposit", payIn)
	interest := dag.Step(b, "interest", addInterest, deposit)
	dag.Step(b, "fee", takeFee, interest)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "2026", nil); err != nil {
		log.Fatal(err)
	}
	if err := d.Tag(ctx, "2026", "1", "opened"); err != nil {
		log.Fatal(err)
	}
	if err := d.Trim(ctx, "2026", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		log.Fatal(err)
	}

	for e, err := range d.Events(ctx, "2026", dispatcher.Listen{}) {
		if errors.Is(err, checkpoint.ErrTrimmed) {
			fmt.Println("trimmed")
			break
		}
		fmt.Println(e)
	}
	difference, err := d.Diff(ctx, "2026", "tag:opened", "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(difference)
	// Output:
	// trimmed
	//   Euros: 500 → 495
}
