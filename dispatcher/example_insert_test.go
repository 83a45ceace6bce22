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

// The second release puts a node before one at which runs stand: the migration says that the open
// visit is one of the new node, which runs first. Runs that are not there yet need no migration, so
// try a release with a run that stands at each node. A run whose open visit has done an effect is
// refused, since the node would do it again: the first release brings that over the visit.
func Example_migrationBeforeAnOpenNode() {
	type Parcel struct{ Log state.List[string] }
	does := func(name string) func(context.Context, *Parcel) error {
		return func(_ context.Context, p *Parcel) error {
			p.Log.Append(name)
			return nil
		}
	}
	b := dag.New[Parcel]("parcels")
	pack := dag.Step(b, "pack", does("pack"))
	dag.Step(b, "ship", func(context.Context, *Parcel) error { return errors.New("no van") }, pack)
	first, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	ctx, store := context.Background(), new(memory.Store)
	d, err := dispatcher.New(first, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(ctx, "parcel-1", nil)
	fmt.Println(err)

	n := dag.New[Parcel]("parcels")
	pack = dag.Step(n, "pack", does("pack"))
	insure := dag.Step(n, "insure", does("insure"), pack)
	dag.Step(n, "ship", does("ship"), insure)
	second, err := n.Build()
	if err != nil {
		log.Fatal(err)
	}
	next, err := dispatcher.New(second, store, dispatcher.Options{Migrations: []dispatcher.Migration{{
		Name:  "parcels are insured",
		From:  first.Digest(),
		Nodes: map[string]string{"ship": "insure"},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := next.Resume(ctx, "parcel-1")
	fmt.Println(res.Status, res.State.Log.Slice(), err)
	// Output:
	// dispatcher: run "parcel-1" failed at ship: visit ship failed: no van
	// completed [pack insure ship] <nil>
}
