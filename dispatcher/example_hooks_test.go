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

// A Scan is made with a scanner that only one program can have at a time.
type Scan struct {
	Pages state.List[string]
}

// What a run needs while it is at work is taken in OnStart and given back in OnEnd. They
// are called in every call in which the run is at work, in a pair, however that ends.
func Example_hooks() {
	b := dag.New[Scan]("scan")
	first := dag.Step(b, "first", func(_ context.Context, s *Scan) error {
		s.Pages.Append("front")
		return nil
	})
	dag.Step(b, "second", func(_ context.Context, s *Scan) error {
		s.Pages.Append("back")
		return nil
	}, first)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{
		InterruptBefore: []string{"second"}, // a person turns the page
		Hooks: dispatcher.Hooks{
			OnStart: func(_ context.Context, s dispatcher.Start) error {
				fmt.Println("scanner on, resumed:", s.Resumed)
				return nil
			},
			OnEnd: func(_ context.Context, e dispatcher.End) error {
				fmt.Println("scanner off:", e.Status)
				return fmt.Errorf("the lid is open")
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	_, err = d.Run(ctx, "letter", nil)
	fmt.Println(err)
	res, err := d.Resume(ctx, "letter")
	fmt.Println(res.State.Pages.Slice(), err, res.Warnings)
	// Output:
	// scanner on, resumed: false
	// scanner off: interrupted
	// dispatcher: run "letter" is interrupted before second: Resume ends the pause
	// scanner on, resumed: true
	// scanner off: completed
	// [front back] <nil> [Hooks.OnEnd: the lid is open]
}
