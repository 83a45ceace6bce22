package dispatcher_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// How far a run is tells the process that has its store open: here what a handler of HTTP or of a
// signal would do. StateOf reads it from the log, so it is right behind a restart as well. An
// observer counts what happens from now on and reads nothing, which is for an Each of very many
// items.
func Example_progress() {
	b := dag.New[Shelf]("reader")
	half, seen := make(chan struct{}), make(chan struct{})
	dag.Each(b, "review", titles, func(_ context.Context, s *Shelf, title string) error {
		if title == "Dune" {
			close(half)
			<-seen
		}
		s.Reviews.Append("I liked " + title)
		return nil
	}).With(dag.Policy{Parallel: 1})
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	var done atomic.Int64
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitDone && e.Node == "review" && e.Path != "review" {
			done.Add(1)
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	rested := make(chan error)
	go func() { // ends with the run, which is waited for below
		_, err := d.Run(ctx, "monday", func(s *Shelf) { s.Titles.Append("Emma", "Ulysses", "Dune", "Momo") })
		rested <- err
	}()

	<-half
	res, err := dispatcher.StateOf[Shelf](ctx, d, "monday", "review")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %d of %d are done, the next is %s\n", res.Status,
		len(res.Finished), len(res.Finished)+len(res.Cursor.Visits), res.Cursor.Visits[0])
	close(seen)
	fmt.Println(<-rested, done.Load())
	// Output:
	// running: 2 of 4 are done, the next is review/3
	// <nil> 4
}
