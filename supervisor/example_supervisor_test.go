package supervisor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

type order struct {
	Item state.Value[string]
	Sent state.Value[bool]
}

// A program runs orders of many customers, is told to end in the middle of one, and the next
// program goes on.
func Example() {
	ctx := context.Background()
	packing, goOn := make(chan struct{}, 1), make(chan struct{}) // so that the example is told to end at one moment
	b := dag.New[order]("orders")
	pack := dag.Step(b, "pack", func(_ context.Context, o *order) error {
		fmt.Println("packing", o.Item.Get())
		packing <- struct{}{}
		<-goOn
		return nil
	})
	dag.Step(b, "send", func(_ context.Context, o *order) error {
		fmt.Println("sending", o.Item.Get())
		o.Sent.Set(true)
		return nil
	}, pack)
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	store := new(memory.Store)

	// The first program. It takes one order at a time.
	orders, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := supervisor.New(store, supervisor.Options{Cap: 1}, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	book, err := supervisor.Submit(ctx, s, orders, "ada", "order-1", func(o *order) { o.Item.Set("a book") })
	if err != nil {
		fmt.Println(err)
		return
	}
	<-packing
	lamp, err := supervisor.Submit(ctx, s, orders, "grace", "order-2", func(o *order) { o.Item.Set("a lamp") })
	if err != nil {
		fmt.Println(err)
		return
	}
	drained := make(chan supervisor.Drain)
	go func() { // the program is told to end
		report, _ := s.Drain(ctx)
		drained <- report
	}()
	_, err = lamp.Wait(ctx)
	fmt.Println(errors.Is(err, supervisor.ErrDraining))
	close(goOn)
	_, err = book.Wait(ctx)
	fmt.Println(errors.Is(err, dispatcher.ErrDrain))
	fmt.Printf("%+v\n", <-drained)

	// The next one.
	if orders, err = dispatcher.New(graph, store, dispatcher.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	if s, err = supervisor.New(store, supervisor.Options{Cap: 1}, orders); err != nil {
		fmt.Println(err)
		return
	}
	recovery, err := s.Recover(ctx)
	fmt.Println(recovery.Rested, err)
	// Output:
	// packing a book
	// true
	// true
	// {Finished:[] Left:[order-1] Stuck:[] Waiting:[order-2]}
	// sending a book
	// [order-1] <nil>
}
