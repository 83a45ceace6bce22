package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An inbox: all that waits for a person, over all runs of a store, whatever their graphs. Each is
// answered by the id of its run and its own.
func Example_inbox() {
	ctx, store := context.Background(), new(memory.Store)
	b := dag.New[Refund]("refund")
	decided := dag.Step(b, "decide", decideRefund)
	dag.Step(b, "pay", payRefund, decided)
	refunds, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	r := dag.New[Refund]("reminder")
	dag.Step(r, "send", func(context.Context, *Refund) error { return nil })
	reminders, err := r.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(refunds, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	held, err := dispatcher.New(reminders, store, dispatcher.Options{InterruptBefore: []string{"send"}})
	if err != nil {
		log.Fatal(err)
	}
	for run, customer := range map[string]string{"refund-1": "Ada", "refund-2": "Bob"} {
		_, err := d.Run(ctx, run, func(r *Refund) { r.Customer.Set(customer) })
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			log.Fatal(err)
		}
	}
	if _, err := held.Run(ctx, "reminder-1", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		log.Fatal(err)
	}

	waiting := checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusInterrupted}}
	for info, err := range checkpoint.Runs(ctx, store, waiting) {
		if err != nil {
			log.Fatal(err)
		}
		open, err := d.Open(ctx, info.Run) // of any graph
		if errors.Is(err, checkpoint.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, question := range open.Interrupts {
			fmt.Printf("%s of %s: %v\n", info.Run, info.Graph, question)
		}
	}
	// Unordered output:
	// refund-1 of refund: decide asks: "How much does Ada get back?"
	// refund-2 of refund: decide asks: "How much does Bob get back?"
	// reminder-1 of reminder: before send
}
