package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type letter struct {
	Text state.Value[string]
}

// A run that waits for an answer leaves its store as a file, and goes on in another one.
func Example_export() {
	ctx := context.Background()
	b := dag.New[letter]("letter")
	write := dag.Step(b, "write", func(_ context.Context, l *letter) error {
		fmt.Println("writing")
		l.Text.Set("Dear Ada")
		return nil
	})
	dag.Step(b, "sign", func(ctx context.Context, l *letter) error {
		name, err := dag.Ask[string](ctx, "name", "who signs?")
		if err != nil {
			return err
		}
		l.Text.Set(l.Text.Get() + ", yours " + name)
		return nil
	}, write)
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	here, there := new(memory.Store), new(memory.Store)

	d, err := dispatcher.New(graph, here, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := d.Run(ctx, "letter-1", nil)
	fmt.Println(res.Status, errors.Is(err, dispatcher.ErrInterrupted))

	var file bytes.Buffer
	if err := checkpoint.Export(ctx, here, "letter-1", &file); err != nil {
		fmt.Println(err)
		return
	}
	info, err := checkpoint.Import(ctx, there, &file, checkpoint.ImportOptions{})
	fmt.Println(info.Run, info.Graph, info.Status, err)

	if d, err = dispatcher.New(graph, there, dispatcher.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Answer(ctx, "letter-1", res.Interrupts[0].ID, "Grace"); err != nil {
		fmt.Println(err)
		return
	}
	res, err = d.Run(ctx, "letter-1", nil)
	fmt.Println(res.State.Text.Get(), err)
	// Output:
	// writing
	// interrupted true
	// letter-1 letter interrupted <nil>
	// Dear Ada, yours Grace <nil>
}
