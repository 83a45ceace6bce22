package dispatcher_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Poem is written word by word.
type Poem struct {
	Lines state.List[string]
}

// A stream runs a run and tells what becomes true meanwhile: events, the values that nodes
// emit, the state after each superstep, and last the result.
func ExampleDispatcher_Stream() {
	b := dag.New[Poem]("poem")
	first := dag.Step(b, "first", func(ctx context.Context, p *Poem) error {
		words := []string{"Tyger", "Tyger,", "burning", "bright"}
		for _, word := range words {
			if err := dag.Emit(ctx, "word", word); err != nil {
				return err
			}
		}
		p.Lines.Append(strings.Join(words, " "))
		return nil
	})
	dag.Step(b, "second", func(_ context.Context, p *Poem) error {
		p.Lines.Append("In the forests of the night")
		return nil
	}, first)
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
	listen := dispatcher.Listen{Only: dispatcher.Progress, States: true}
	for item, err := range d.Stream(context.Background(), "poem-1", nil, listen) {
		switch {
		case item.Result != nil:
			fmt.Println(item.Result.Status, err)
		case item.State != nil:
			fmt.Println(item.Event, "with", item.State.Lines.Len(), "lines")
		default:
			fmt.Println(item.Event)
		}
	}
	// Output:
	// poem-1@2: frame entered
	// poem-1: visit started first
	// poem-1: emitted first word "Tyger"
	// poem-1: emitted first word "Tyger,"
	// poem-1: emitted first word "burning"
	// poem-1: emitted first word "bright"
	// poem-1@3: visit done first
	// poem-1@4: superstep ended @1 with 1 lines
	// poem-1: visit started second
	// poem-1@5: visit done second
	// poem-1@6: superstep ended @2 with 2 lines
	// completed <nil>
}
