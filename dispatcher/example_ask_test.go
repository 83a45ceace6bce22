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

// A Refund is paid when a person has said how much.
type Refund struct {
	Customer state.Value[string]
	Euros    state.Value[int]
}

func decideRefund(ctx context.Context, r *Refund) error {
	euros, err := dag.Ask[int](ctx, "euros", "How much does "+r.Customer.Get()+" get back?")
	if err != nil {
		return err // nobody has answered yet: the run waits here, for days if it has to
	}
	r.Euros.Set(euros)
	return nil
}

func payRefund(_ context.Context, r *Refund) error {
	fmt.Printf("paid %d euros to %s\n", r.Euros.Get(), r.Customer.Get())
	return nil
}

// A node can ask a person. The run is interrupted, durably; once the question has been
// answered the same line goes on with it.
func Example_ask() {
	b := dag.New[Refund]("refund")
	decided := dag.Step(b, "decide", decideRefund)
	dag.Step(b, "pay", payRefund, decided)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	res, err := d.Run(ctx, "refund-3", func(r *Refund) { r.Customer.Set("Ada") })
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		log.Fatal(err)
	}
	question := res.Interrupts[0]
	fmt.Println(question)

	err = d.Answer(ctx, "refund-3", question.ID, "a lot")
	fmt.Println("refused:", errors.Is(err, dispatcher.ErrAnswerType))
	if err := d.Answer(ctx, "refund-3", question.ID, 40); err != nil {
		log.Fatal(err)
	}
	if _, err := d.Run(ctx, "refund-3", nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// decide asks: "How much does Ada get back?"
	// refused: true
	// paid 40 euros to Ada
}

// Who has the answer at hand gives it to the call that goes on.
func ExampleAnswering() {
	b := dag.New[Refund]("refund")
	decided := dag.Step(b, "decide", decideRefund)
	dag.Step(b, "pay", payRefund, decided)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	_, err = d.Run(ctx, "refund-4", func(r *Refund) { r.Customer.Set("Eve") })
	fmt.Println("waits:", errors.Is(err, dispatcher.ErrInterrupted))
	_, err = d.Resume(ctx, "refund-4", dispatcher.Answering("", "a lot"))
	fmt.Println("refused:", errors.Is(err, dispatcher.ErrAnswerType))
	res, err := d.Resume(ctx, "refund-4", dispatcher.Answering("", 40), dispatcher.Author("Ada"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status)
	// Output:
	// waits: true
	// refused: true
	// paid 40 euros to Eve
	// completed
}
