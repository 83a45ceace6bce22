package main

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// openAsOther leaves a run of another graph of the same name in the store: one of its nodes has
// run.
func openAsOther(t *testing.T, dir, run string) {
	t.Helper()
	b := dag.New[Inquiry]("archivist")
	nothing := func(context.Context, *Inquiry) error { return nil }
	dag.Step(b, "tell", nothing, dag.Step(b, "guess", nothing))
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
	d, err := dispatcher.New(graph, store, dispatcher.Options{InterruptBefore: []string{"tell"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), run, func(q *Inquiry) { q.Query.Set(labyrinth) }); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatalf("the other graph's run: %v", err)
	}
}
