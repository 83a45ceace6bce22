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

// A Recipe is written by asking a model, which costs money.
type Recipe struct {
	Dish  state.Value[string]
	Steps state.List[string]
}

func askModel(_ context.Context, prompt string) (string, error) {
	fmt.Println("the model is asked to", prompt)
	return prompt + ".", nil
}

// A fork begins at a checkpoint of another run. What the run asked the outside behind it is taken
// from there, as long as the question is the same: trying again what follows costs nothing.
func Example_fork() {
	b := dag.New[Recipe]("recipe")
	asks := func(verb string) func(context.Context, *Recipe) error {
		return func(ctx context.Context, r *Recipe) error {
			step, err := dag.Effect(ctx, "model", verb+" the "+r.Dish.Get(), askModel, dag.Replayable)
			r.Steps.Append(step)
			return err
		}
	}
	wash := dag.Step(b, "wash", asks("wash"))
	dag.Step(b, "cook", asks("cook"), wash)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "dinner", func(r *Recipe) { r.Dish.Set("kale") }); err != nil {
		log.Fatal(err)
	}

	forks, err := d.Fork(ctx, "dinner", "1", dispatcher.ForkOptions[Recipe]{Into: []string{"again"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("forked:", forks)
	res, err := d.Run(ctx, "again", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.State.Steps.Slice())
	from, err := d.Lineage(ctx, "again")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("from", from[0].Address())
	// Output:
	// the model is asked to wash the kale
	// the model is asked to cook the kale
	// forked: [again]
	// [wash the kale. cook the kale.]
	// from dinner@6
}
