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

// A Parcel is on its way to somebody.
type Parcel struct {
	To state.Value[string]
}

func ringBell(ctx context.Context, p *Parcel) error {
	fmt.Printf("attempt %d: ringing at %s\n", dag.Attempt(ctx), p.To.Get())
	return errors.New("nobody opens")
}

func leaveCard(ctx context.Context, _ *Parcel) error {
	for _, f := range dag.Failures(ctx) {
		fmt.Printf("card: %s failed after %d attempts: %s\n", f.Path, f.Attempts, f.Message)
	}
	return nil
}

func handOver(_ context.Context, p *Parcel) error {
	fmt.Println("handed over to", p.To.Get())
	return nil
}

// A failed attempt is made again as the node's policy says. When the last one has failed
// the node's failure edge is taken, and the run goes on there.
func Example_failure() {
	b := dag.New[Parcel]("parcel")
	ringing := dag.Step(b, "ring", ringBell).With(dag.Policy{Attempts: 3})
	dag.Step(b, "hand-over", handOver, ringing)
	dag.Step(b, "leave-card", leaveCard, ringing.Failed())
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	res, err := d.Run(context.Background(), "parcel-5", func(p *Parcel) { p.To.Set("12 Elm Street") })
	fmt.Println(res.Status, err)
	// Output:
	// attempt 1: ringing at 12 Elm Street
	// attempt 2: ringing at 12 Elm Street
	// attempt 3: ringing at 12 Elm Street
	// card: ring failed after 3 attempts: nobody opens
	// completed <nil>
}
