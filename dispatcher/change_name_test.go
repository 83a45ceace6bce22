package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type changeNamed struct{ N state.Sum[int] }

// Promise P10: a run of a graph of another name is no run of this one, completed or not,
// though its state would fit.
func TestChangeOfNameIsNoRunOfTheGraph(t *testing.T) {
	var store memory.Store
	of := func(name string, all ...dispatcher.Migration) *dispatcher.Dispatcher[changeNamed] {
		b := dag.New[changeNamed](name)
		dag.Step(b, "add", func(_ context.Context, s *changeNamed) error { s.N.Add(7); return nil })
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		d, err := dispatcher.New(g, &store, dispatcher.Options{Migrations: all})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	orders, invoices := of("orders"), of("invoices")
	if _, err := orders.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	var changed *dispatcher.GraphChangedError
	if res, err := invoices.Run(t.Context(), "r", nil); !errors.As(err, &changed) {
		t.Errorf("Run returns %s, %v", res.Status, err)
	}
	if _, err := invoices.State(t.Context(), "r"); !errors.As(err, &changed) {
		t.Errorf("State returns %v", err)
	}
	if _, err := invoices.Continue(t.Context(), "r"); !errors.As(err, &changed) {
		t.Errorf("Continue returns %v", err)
	}
	if err := invoices.Enqueue(t.Context(), "r", nil); !errors.As(err, &changed) {
		t.Errorf("Enqueue returns %v", err)
	}
	if posts, err := store.Posts(t.Context(), "r"); err != nil || len(posts) > 0 {
		t.Errorf("posts are %v, %v", posts, err)
	}
	asked := false
	any := of("invoices", dispatcher.Migration{Name: "any", State: func(_ string, s json.RawMessage) (json.RawMessage, error) {
		asked = true
		return s, nil
	}})
	if _, err := any.Run(t.Context(), "r", nil); !errors.As(err, &changed) || changed.Migration != "" || asked {
		t.Errorf("with a migration that names no graph Run returns %v, asked=%t", err, asked)
	}
}
