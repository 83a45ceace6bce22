package main

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// openAsOther leaves a run of another graph of the same name in the store, cancelled.
func openAsOther(t *testing.T, dir, run string) {
	t.Helper()
	b := dag.New[Inquiry]("archivist")
	dag.Step(b, "guess", func(context.Context, *Inquiry) error { return nil })
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	store := openStore(t, dir)
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Run(ctx, run, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("the other graph's run: %v", err)
	}
}
