package dispatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type parcel struct {
	Steps state.List[string]
}

// A program that is about to end lets its nodes finish; the next one goes on from there.
func ExampleDrain() {
	ending := make(chan struct{})
	b := dag.New[parcel]("parcel")
	pack := dag.Step(b, "pack", func(_ context.Context, p *parcel) error {
		close(ending) // the program is told to end while this node runs
		p.Steps.Append("packed")
		return nil
	})
	dag.Step(b, "send", func(_ context.Context, p *parcel) error {
		p.Steps.Append("sent")
		return nil
	}, pack)
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	store := new(memory.Store)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := d.Run(context.Background(), "parcel-1", nil, dispatcher.Drain(ending))
	fmt.Println(res.Status, errors.Is(err, dispatcher.ErrDrain), err)

	left, err := d.Continue(context.Background(), "parcel-1")
	fmt.Println(left.Status, err)
	res, err = d.State(context.Background(), "parcel-1")
	fmt.Println(res.State.Steps.Slice(), err)
	// Output:
	// running true dispatcher: run "parcel-1" was left running at send: draining
	// completed <nil>
	// [packed sent] <nil>
}
