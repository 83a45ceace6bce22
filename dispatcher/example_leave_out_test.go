package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An Import has the rows of a file.
type Import struct {
	Rows   state.List[string]
	Loaded state.Set[string]
}

func load(_ context.Context, i *Import, row string) error {
	if row == "poison" {
		return errors.New("no such account")
	}
	i.Loaded.Add(row)
	return nil
}

// One item of an Each fails, and nothing will make it succeed. Its run goes on without it by a
// dispatcher that does something else instead, at that item alone: what is done already is not done
// again. To take it out of the list would not do, since an Each that has begun goes on with the
// items that it began with.
func Example_leaveOut() {
	b := dag.New[Import]("import")
	dag.Each(b, "load", func(i *Import) []string { return i.Rows.Slice() }, load)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	ctx, store := context.Background(), new(memory.Store)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(ctx, "monday", func(i *Import) { i.Rows.Append("one", "poison", "three") })
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) {
		log.Fatal(err)
	}
	fmt.Println(failed)

	without := dispatcher.Interceptor{
		Name:  "without what has no account",
		Nodes: []string{failed.Path},
		Before: func(context.Context, dispatcher.Call) dispatcher.Ruling {
			return dispatcher.Instead(func(context.Context, any) ([]string, error) { return nil, nil })
		},
	}
	d, err = dispatcher.New(graph, store, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{without}}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := d.Resume(ctx, "monday")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status)
	for row := range res.State.Loaded.All() {
		fmt.Println("loaded", row)
	}
	// Output:
	// dispatcher: visit load/2 failed: no such account
	// completed
	// loaded one
	// loaded three
}
