package milestone_test

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
	"github.com/pawlgo/pawl/state"
)

// A Draft gets better in two steps.
type Draft struct {
	Phase   state.Value[string]
	Quality state.Value[float64]
}

func Example() {
	b := dag.New[Draft]("draft")
	write := dag.Step(b, "write", func(ctx context.Context, d *Draft) error {
		d.Phase.Set("writing")
		d.Quality.Set(0.4)
		return nil
	})
	dag.Step(b, "polish", func(ctx context.Context, d *Draft) error {
		d.Quality.Set(0.9)
		return nil
	}, write)
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
	if _, err := d.Run(ctx, "letter", nil); err != nil {
		fmt.Println(err)
		return
	}

	names, err := milestone.New(d, milestone.Change("Phase"), milestone.Rises("Quality", 0.8))
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := names.Name(ctx, "letter")
	for _, m := range found {
		at, err := d.At(ctx, "letter", "tag:"+m.Tag)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: the quality is %v\n", m.Rule, at.State.Quality.Get())
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// change Phase: the quality is 0.4
	// rises Quality 0.8: the quality is 0.9
}
