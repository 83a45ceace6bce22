package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An attending store keeps whether the contexts of appends were attended.
type attending struct {
	checkpoint.Store
	attended []bool
}

func (s *attending) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	_, ok := ctx.(checkpoint.Attended)
	s.attended = append(s.attended, ok)
	return s.Store.Append(ctx, l, after, entries)
}

// A run's appends are given up by its call, so the store need not look at their context. A Cancel
// of a run at rest is the caller's own append, and has to return in time by itself.
func TestOnlyAppendsOfARunAreAttended(t *testing.T) {
	type cells struct{ Sum state.Sum[int] }
	b := dag.New[cells]("attended")
	dag.Step(b, "ask", func(ctx context.Context, _ *cells) error {
		_, err := dag.Ask[string](ctx, "name", "who are you?")
		return err
	})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	store := &attending{Store: new(memory.Store)}
	d, err := dispatcher.New(g, store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rest *dispatcher.Rest
	if _, err := d.Start(t.Context(), "run", nil); !errors.As(err, &rest) {
		t.Fatalf("Start = %v, want that it rests", err)
	}
	if len(store.attended) == 0 || slices.Contains(store.attended, false) {
		t.Errorf("the appends of the run are attended: %v", store.attended)
	}
	store.attended = nil
	if err := d.Cancel(t.Context(), "run", nil); err != nil {
		t.Fatal(err)
	}
	if len(store.attended) != 1 || store.attended[0] {
		t.Errorf("the append of Cancel is attended: %v", store.attended)
	}
}
