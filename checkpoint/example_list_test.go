package checkpoint_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// The runs of a shop are listed, in pages, and those that are completed are deleted.
func ExampleFilter() {
	ctx := context.Background()
	b := dag.New[struct{}]("order")
	pack := dag.Step(b, "pack", func(context.Context, *struct{}) error { return nil })
	dag.Step(b, "ship", func(context.Context, *struct{}) error { return nil }, pack)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	store := &memory.Store{}
	held := dispatcher.Options{InterruptBefore: []string{"ship"}}
	for i, options := range []dispatcher.Options{{}, held, {}, {}, held} {
		d, err := dispatcher.New(graph, store, options)
		if err != nil {
			log.Fatal(err)
		}
		shop := dispatcher.Labels(map[string]string{"shop": "Lisbon"})
		if _, err := d.Run(ctx, fmt.Sprint("order-", i+1), nil, shop); err != nil {
			fmt.Println(err)
		}
	}

	of := checkpoint.Filter{Graph: "order", Labels: map[string]string{"shop": "Lisbon"}, Limit: 2}
	var done []string
	for {
		page, err := store.List(ctx, of)
		if err != nil {
			log.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, run := range page {
			fmt.Println(run.Run, run.Status)
			if run.Status == checkpoint.StatusCompleted {
				done = append(done, run.Run)
			}
		}
		of.After = page[len(page)-1].Run
	}
	for _, run := range done { // behind the listing: a page goes on behind a run that is there
		if err := store.Delete(ctx, run); err != nil {
			log.Fatal(err)
		}
	}
	left, err := store.List(ctx, checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusInterrupted}})
	fmt.Println(len(left), err)
	// Output:
	// dispatcher: run "order-2" is interrupted before ship: Resume ends the pause
	// dispatcher: run "order-5" is interrupted before ship: Resume ends the pause
	// order-5 interrupted
	// order-4 completed
	// order-3 completed
	// order-2 interrupted
	// order-1 completed
	// 2 <nil>
}
