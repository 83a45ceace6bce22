package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

// An order is durable, with its input, before it is acknowledged, and runs when it is its turn. If
// the process died in between, the Recover of the next one would go on with it.
func ExampleSupervisor_Continue() {
	type order struct{ Item state.Value[string] }
	ctx, store := context.Background(), new(memory.Store)
	b := dag.New[order]("orders")
	dag.Step(b, "ship", func(_ context.Context, o *order) error {
		fmt.Println("ships", o.Item.Get())
		return nil
	})
	g, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(g, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := supervisor.New(store, supervisor.Options{}, d)
	if err != nil {
		log.Fatal(err)
	}

	if err := d.Create(ctx, "order-7", func(o *order) { o.Item.Set("a lamp") }); err != nil {
		log.Fatal(err)
	}
	fmt.Println("acknowledged")

	task, err := s.Continue(ctx, "tenant", "order-7")
	if err != nil {
		log.Fatal(err)
	}
	done, err := task.Wait(ctx)
	fmt.Println(done.Status, err)
	_, _ = s.Drain(ctx)
	// Output:
	// acknowledged
	// ships a lamp
	// completed <nil>
}
