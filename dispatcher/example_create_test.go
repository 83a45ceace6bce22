package dispatcher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A service acknowledges a parcel when it is durable, and sends it later. The client that didn't
// hear of it asks once more, and is told the same.
func ExampleDispatcher_Create() {
	ctx, store := context.Background(), new(memory.Store)
	b := dag.New[parcel]("parcel")
	dag.Step(b, "send", func(_ context.Context, p *parcel) error {
		p.Steps.Append("sent")
		return nil
	})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	packed := func(p *parcel) { p.Steps.Append("packed") }
	for range 2 {
		err := d.Create(ctx, "parcel-1", packed)
		fmt.Println("accepted:", err == nil || errors.Is(err, dispatcher.ErrExists))
	}
	info, err := store.Stat(ctx, "parcel-1")
	fmt.Println(info.Status, err)

	res, err := d.Resume(ctx, "parcel-1") // in this process, or in another one
	fmt.Println(res.State.Steps.Slice(), err)
	// Output:
	// accepted: true
	// accepted: true
	// pending <nil>
	// [packed sent] <nil>
}
