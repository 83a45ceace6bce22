package dispatcher_test

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A reader keeps the number of the last event it has seen, and goes on behind it whenever
// it comes back: here over a run that waited for a person.
func ExampleDispatcher_Events() {
	b := dag.New[Poem]("poem")
	draft := dag.Step(b, "draft", func(_ context.Context, p *Poem) error {
		p.Lines.Append("What immortal hand or eye")
		return nil
	})
	dag.Step(b, "publish", func(ctx context.Context, _ *Poem) error {
		_, err := dag.Ask[bool](ctx, "sure", "Publish it?")
		return err
	}, draft)
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, store := context.Background(), new(memory.Store)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var seen uint64
	read := func() {
		for e, err := range d.Events(ctx, "poem-2", dispatcher.Listen{Since: seen, Only: dispatcher.Control}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(e)
			seen = e.Seq
		}
	}
	res, err := d.Run(ctx, "poem-2", nil)
	fmt.Println(err)
	read()
	if err := d.Answer(ctx, "poem-2", res.Interrupts[0].ID, true); err != nil {
		fmt.Println(err)
	}
	_, err = d.Run(ctx, "poem-2", nil)
	fmt.Println(err)
	read()
	// Output:
	// dispatcher: run "poem-2" is interrupted at publish: Answer what it waits for, and Resume
	// poem-2@1: run started
	// poem-2@5: visit interrupted publish (asked) sure "Publish it?"
	// poem-2@6: run rested interrupted
	// <nil>
	// poem-2@7: interrupt answered true
	// poem-2@8: run resumed
	// poem-2@11: run rested completed
}
