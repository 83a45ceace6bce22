package dispatcher_test

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Route is a way to the sea.
type Route struct{ Road state.Value[string] }

// A node says what it has decided, and somebody outside adds what they know. Both are in the log,
// and no part of the state.
func Example_notes() {
	b := dag.New[Route]("drive")
	dag.Step(b, "plan", func(ctx context.Context, r *Route) error {
		r.Road.Set("A7")
		return dag.Decide(ctx, dag.Decision{ID: "road", Description: "take the A7", Rationale: "it is empty"})
	})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "friday", nil); err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Note(ctx, "friday", "traffic.jam", "near Ulm", dispatcher.Author("Ada")); err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range d.Events(ctx, "friday", dispatcher.Listen{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Kind == dispatcher.Noted {
			fmt.Println(e.Path, e.By, e.Name, string(e.Value))
		}
	}
	// Output:
	// plan  record.decision {"id":"road","description":"take the A7","rationale":"it is empty","status":"accepted"}
	//  Ada traffic.jam "near Ulm"
}
