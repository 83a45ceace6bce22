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

// A Delivery is one parcel on its way.
type Delivery struct {
	Stamps state.List[string]
}

// stamp is a node that leaves its name on it.
func stamp(name string) func(context.Context, *Delivery) error {
	return func(_ context.Context, d *Delivery) error {
		d.Stamps.Append(name)
		return nil
	}
}

// A run that waits while its program is changed goes on with the new graph, as long as its
// past is the same there: what is done, and what it waits at, with the same edges before
// it. Nodes behind may come and go. A graph whose past is another is refused, and the error
// says what stands in the way.
func Example_change() {
	line := func(names ...string) *dag.Graph[Delivery] {
		b := dag.New[Delivery]("delivery")
		var after []dag.Edge[Delivery]
		for _, name := range names {
			after = []dag.Edge[Delivery]{dag.Step(b, name, stamp(name), after...)}
		}
		graph, err := b.Build()
		if err != nil {
			log.Fatal(err)
		}
		return graph
	}
	store := new(memory.Store)
	release := func(o dispatcher.Options, names ...string) *dispatcher.Dispatcher[Delivery] {
		d, err := dispatcher.New(line(names...), store, o)
		if err != nil {
			log.Fatal(err)
		}
		return d
	}
	ctx := context.Background()

	// The first release of the program stops before it delivers.
	d := release(dispatcher.Options{InterruptBefore: []string{"deliver"}}, "pick", "pack", "deliver")
	_, err := d.Run(ctx, "parcel-1", nil)
	fmt.Println(err)

	// In the next one parcels are weighed before they are packed: too late for this one.
	_, err = release(dispatcher.Options{}, "pick", "weigh", "pack", "deliver").Resume(ctx, "parcel-1")
	if changed := new(dispatcher.GraphChangedError); errors.As(err, &changed) {
		fmt.Println(changed.Changes)
	}

	// In the one after that somebody signs for them.
	res, err := release(dispatcher.Options{}, "pick", "pack", "deliver", "sign").Resume(ctx, "parcel-1")
	fmt.Println(res.Status, res.State.Stamps.Slice(), err)
	// Output:
	// dispatcher: run "parcel-1" is interrupted before deliver: Resume ends the pause
	// [visit pack is done, and it followed pick and follows weigh]
	// completed [pick pack deliver sign] <nil>
}
