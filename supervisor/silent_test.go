package supervisor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

type nothing struct{ Note state.Value[string] }

// A call that returns nothing at all is not taken for a run that completed.
func TestSilentCallIsAnError(t *testing.T) {
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

// An answer is not given to a submission that may join another one, where nobody would look at it.
// A call of Go may give it.
func TestAnswersAreForGo(t *testing.T) {
	b := dag.New[nothing]("asks")
	dag.Step(b, "node", func(ctx context.Context, _ *nothing) error {
		_, err := dag.Ask[bool](ctx, "sure", "sure?")
		return err
	})
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
	if _, err := d.Run(t.Context(), "run", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	yes := dispatcher.Answering("", true)
	_, submitted := supervisor.Submit(t.Context(), s, d, "", "run", nil, yes)
	_, continued := s.Continue(t.Context(), "", "run", yes)
	for _, err := range []error{submitted, continued} {
		var option *supervisor.OptionError
		if !errors.As(err, &option) || option.Option != "Answering" {
			t.Errorf("a submission with an answer: %v, want an OptionError", err)
		}
	}
	task, err := supervisor.Go(t.Context(), s, d, "", "run",
		func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[nothing], error) {
			return d.Resume(ctx, "run", yes, drain)
		})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("the run is %s, %v", res.Status, err)
	}
}
