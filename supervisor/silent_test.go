package supervisor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

// A call that returns nothing at all is not taken for a run that completed.
func TestSilentCallIsAnError(t *testing.T) {
	type nothing struct{ Note state.Value[string] }
	b := dag.New[nothing]("silent")
	dag.Step(b, "step", func(context.Context, *nothing) error { return nil })
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	store := new(memory.Store)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervisor.New(store, supervisor.Options{}, d)
	if err != nil {
		t.Fatal(err)
	}
	task, err := supervisor.Go(t.Context(), s, d, "", "run", func(context.Context, dispatcher.RunOption) (*dispatcher.Result[nothing], error) {
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = task.Wait(t.Context())
	var option *supervisor.OptionError
	if !errors.As(err, &option) || option.Option != "call" {
		t.Errorf("the task ends with %v", err)
	}
}
