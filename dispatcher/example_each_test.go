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

// A Shelf holds what a reader has to look at, and what came of it.
type Shelf struct {
	Titles  state.List[string]
	Reviews state.List[string]
}

func titles(s *Shelf) []string { return s.Titles.Slice() }

func reviewTitle(_ context.Context, s *Shelf, title string) error {
	if title == "The Sealed Book" {
		return errors.New("it does not open")
	}
	s.Reviews.Append("I liked " + title)
	return nil
}

func publish(ctx context.Context, s *Shelf) error {
	for _, r := range s.Reviews.All() {
		fmt.Println(r)
	}
	for _, f := range dag.Failures(ctx) {
		fmt.Printf("%s failed: %s\n", f.Path, f.Message)
	}
	return nil
}

func unshelved(context.Context, *Shelf) error {
	fmt.Println("there is nothing to read")
	return nil
}

// An Each runs a function for each item, here two at a time. Every item that is done is an
// entry in the log, so it is not run again after a crash. With Collect an item that fails
// stops nothing, and what follows learns of it.
func Example_each() {
	b := dag.New[Shelf]("reader")
	review := dag.Each(b, "review", titles, reviewTitle).With(dag.Policy{Parallel: 2, Errors: dag.Collect})
	dag.Step(b, "publish", publish, review.On(dag.Done))
	dag.Step(b, "idle", unshelved, review.On(dag.Empty))
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(context.Background(), "monday", func(s *Shelf) {
		s.Titles.Append("Foucault's Pendulum", "The Sealed Book", "The Name of the Rose")
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(context.Background(), "tuesday", nil)
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// I liked Foucault's Pendulum
	// I liked The Name of the Rose
	// review/2 failed: it does not open
	// there is nothing to read
}
