package dispatcher_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run goes on from an earlier checkpoint of its own. What became of it since stays in its log.
func Example_rewind() {
	b := dag.New[Account]("savings")
	deposit := dag.Step(b, "deposit", payIn)
	interest := dag.Step(b, "interest", addInterest, deposit)
	dag.Step(b, "fee", takeFee, interest)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Run(ctx, "2026", nil); err != nil {
		log.Fatal(err)
	}

	why := dispatcher.RewindOptions{Reason: "the fee was waived"}
	if err := d.Rewind(ctx, "2026", "2", why, dispatcher.Author("ann")); err != nil {
		log.Fatal(err)
	}
	now, err := d.State(ctx, "2026")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.State.Euros.Get(), now.Status, now.Cursor)
	for e, err := range d.Events(ctx, "2026", dispatcher.Listen{Since: now.Cursor.Seq - 1}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e)
	}
	// Output:
	// 510 pending 2026@10 fee
	// 2026@10: run rewound to 2026@6 by ann: the fee was waived
}
