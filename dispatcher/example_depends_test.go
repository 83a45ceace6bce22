package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An Offer is made from a price list, and sent when a person has seen it.
type Offer struct {
	Price state.Value[int]
}

// A run that waits for a person goes on in another world. A node says what it has used of it, and
// for how long that can be trusted; a resume after that asks the program whether it still holds.
func Example_depends() {
	b := dag.New[Offer]("offer")
	price := dag.Step(b, "price", func(ctx context.Context, o *Offer) error {
		o.Price.Set(70)
		return dag.Depends(ctx, dag.Dependency{
			Name: "price list", Captured: time.Now().Add(-2 * time.Hour),
			StaleAfter: time.Hour, OnStale: dag.Revalidate,
		})
	})
	dag.Step(b, "send", func(_ context.Context, o *Offer) error {
		fmt.Println("sent, for", o.Price.Get())
		return nil
	}, price)
	graph, err := b.Build()
	if err != nil {
		panic(err)
	}

	current := false
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{
		InterruptBefore: []string{"send"},
		Revalidate: func(_ context.Context, d dag.Dependency) error {
			if !current {
				return fmt.Errorf("there is a new %s", d.Name)
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	_, err = d.Run(ctx, "offer-7", nil)
	fmt.Println(err)
	_, err = d.Resume(ctx, "offer-7")
	if stale, ok := errors.AsType[*dispatcher.StaleError](err); ok {
		fmt.Printf("%s used the %s: %v\n", stale.Path, stale.Dependency.Name, stale.Err)
	}
	current = true
	_, err = d.Resume(ctx, "offer-7")
	fmt.Println(err)
	// Output:
	// dispatcher: run "offer-7" is interrupted before send: Resume ends the pause
	// price used the price list: there is a new price list
	// sent, for 70
	// <nil>
}
