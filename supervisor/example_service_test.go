package supervisor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

type letter struct {
	Text state.Value[string]
}

// A service recovers beside its new work, and waits for the recovery after it has drained.
// What a drain leaves the next process brings to its end.
func Example_service() {
	store := new(memory.Store)
	writing, ink := make(chan struct{}, 2), make(chan struct{}) // there is no ink in the first process
	b := dag.New[letter]("letters")
	write := dag.Step(b, "write", func(ctx context.Context, l *letter) error {
		writing <- struct{}{}
		select {
		case <-ink:
			return nil
		case <-ctx.Done(): // the drain's patience is over
			return context.Cause(ctx)
		}
	})
	dag.Step(b, "post", func(_ context.Context, l *letter) error {
		fmt.Println("posting", l.Text.Get())
		return nil
	}, write)
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}

	// The first process is told to end while it writes.
	stop := make(chan struct{})
	go func() { // ends when the letter is being written
		<-writing
		close(stop)
	}()
	none, cancel := context.WithCancel(context.Background())
	cancel()
	serve(none, store, graph, stop, nil, "a letter")

	// The next one is told to end when it has recovered what was left.
	close(ink)
	stop = make(chan struct{})
	serve(context.Background(), store, graph, stop, func(e supervisor.Event) {
		if e.Kind == supervisor.Recovered {
			close(stop)
		}
	})
	// Output:
	// recovered [], left [a letter]
	// posting a letter
	// recovered [a letter], left []
}

// serve is the program: it takes letters until it is told to stop. What is at work then may go
// on until patience ends: in a real service, some seconds later.
func serve(
	patience context.Context, store checkpoint.Store, graph *dag.Graph[letter], stop <-chan struct{},
	observe func(supervisor.Event), texts ...string,
) {
	ctx := context.Background()
	letters, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := supervisor.New(store, supervisor.Options{Observe: observe}, letters)
	if err != nil {
		fmt.Println(err)
		return
	}
	recovered := make(chan supervisor.Recovery)
	go func() { // ends when all that was left rests, or with the drain; serve waits for it
		r, err := s.Recover(ctx)
		if err != nil && !errors.Is(err, supervisor.ErrDraining) {
			fmt.Println("recovering:", err)
		}
		recovered <- r
	}()
	for _, text := range texts { // new work is taken while the old goes on
		_, err := supervisor.Submit(ctx, s, letters, "", text, func(l *letter) { l.Text.Set(text) })
		if err != nil {
			fmt.Println(err)
		}
	}
	<-stop
	report, err := s.Drain(patience)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("recovered %v, left %v\n", (<-recovered).Rested, report.Left)
}
