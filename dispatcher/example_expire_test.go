package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Dinner is held where the guests want it.
type Dinner struct {
	Place state.Value[string]
	Wine  state.Value[string]
}

// choosePlace asks until a day: whoever comes later has to like what the others like.
func choosePlace(ctx context.Context, d *Dinner) error {
	place, err := dag.Ask[string](ctx, "place", "Where do we eat?",
		dag.Until(time.Date(2025, 12, 24, 12, 0, 0, 0, time.UTC)), dag.OrDefault("at home"))
	if err != nil {
		return err
	}
	how, _ := dag.Reply(ctx, "place")
	fmt.Printf("the place is %s (%s)\n", place, how.How)
	d.Place.Set(place)
	return nil
}

// chooseWine asks as long as it takes, unless somebody says that it doesn't matter.
func chooseWine(ctx context.Context, d *Dinner) error {
	wine, err := dag.Ask[string](ctx, "wine", "Which wine?")
	if errors.Is(err, dag.ErrSkipped) {
		who, _ := dag.Reply(ctx, "wine")
		fmt.Printf("no wine, says %s\n", who.By)
		return nil
	}
	if err != nil {
		return err
	}
	d.Wine.Set(wine)
	return nil
}

// A question can expire, with a default or without one, and it can be skipped. The node is
// told which.
func Example_expire() {
	b := dag.New[Dinner]("dinner")
	place := dag.Step(b, "place", choosePlace)
	dag.Step(b, "wine", chooseWine, place)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	res, err := d.Run(ctx, "dinner-7", nil)
	fmt.Println(err)
	// The only question that waits needs no name.
	if err := d.Skip(ctx, "dinner-7", "", dispatcher.Author("Ada")); err != nil {
		log.Fatal(err)
	}
	if res, err = d.Run(ctx, "dinner-7", nil); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %q\n", res.State.Place.Get(), res.State.Wine.Get())
	// Output:
	// the place is at home (default)
	// dispatcher: run "dinner-7" is interrupted at wine: Answer what it waits for, and Resume
	// no wine, says Ada
	// at home, ""
}
