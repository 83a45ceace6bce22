package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

// A service is asked what became of an order by somebody who has its id alone, and who waits for
// its end for a moment.
func ExampleSupervisor_Task() {
	type order struct{ Item state.Value[string] }
	ctx, store, packed := context.Background(), new(memory.Store), make(chan struct{})
	b := dag.New[order]("orders")
	dag.Step(b, "pack", func(context.Context, *order) error { <-packed; return nil })
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

	whatOf := func(run string) {
		if task, ok := s.Task(run); ok {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if _, err := task.Wait(ctx); errors.Is(err, context.DeadlineExceeded) {
				fmt.Println(run, "is under way")
				return
			}
		}
		switch res, err := d.State(ctx, run); {
		case errors.Is(err, checkpoint.ErrNotFound):
			fmt.Println("there is no", run)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(run, "is", res.Status)
		}
	}

	task, err := supervisor.Submit(ctx, s, d, "", "order-17", func(o *order) { o.Item.Set("a lamp") })
	if err != nil {
		log.Fatal(err)
	}
	whatOf("order-17")
	close(packed)
	<-task.Done()
	whatOf("order-17")
	whatOf("order-18")
	_, _ = s.Drain(ctx)
	// Output:
	// order-17 is under way
	// order-17 is completed
	// there is no order-18
}
