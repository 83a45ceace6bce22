package dag_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
	"github.com/pawlgo/pawl/state"
)

type edgesState struct{ N state.Value[int] }

func edgesStep(context.Context, *edgesState) error { return nil }

// A Builder or Graph that is nil, where no error can be returned, is a panic that names the
// function and what to do; Build returns it.
func TestEdgesNilBuilderAndGraph(t *testing.T) {
	var b *dag.Builder[edgesState]
	var g *dag.Graph[edgesState]
	for want, call := range map[string]func(){
		"dag: Step: the Builder is nil: make one with New":         func() { dag.Step(b, "a", edgesStep) },
		"dag: Loop: the Builder is nil: make one with New":         func() { dag.Loop(b, "a", g, nil, 1) },
		"dag: End: the Builder is nil: make one with New":          func() { dag.End(b) },
		"dag: Fail: the Builder is nil: make one with New":         func() { dag.Fail(b, "a") },
		"dag: Graph.Name: the Graph is nil: make one with Build":   func() { _ = g.Name() },
		"dag: Graph.Digest: the Graph is nil: make one with Build": func() { _ = new(dag.Graph[edgesState]).Digest() },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			call()
		}()
	}
	var problems *dag.BuildError
	if _, err := b.Build(); !errors.As(err, &problems) || !strings.Contains(err.Error(), "the Builder is nil: make one with New") {
		t.Errorf("Build of a nil Builder returns %v", err)
	}
	if g.Plan() != nil {
		t.Error("a nil Graph has a Plan")
	}
}

// A nil context belongs to no visit, and is never taken for one outside a run: an effect is
// not done.
func TestEdgesNilContext(t *testing.T) {
	var ctx context.Context
	done := false
	calls := map[string]func() error{
		"Ask":  func() error { _, err := dag.Ask[bool](ctx, "sure", "?"); return err },
		"Emit": func() error { return dag.Emit(ctx, "token", 1) },
		"Effect": func() error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { done = true; return 1, nil })
			return err
		},
		"Settings": func() error { _, err := dag.Settings[int](ctx); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, dag.ErrNoVisit) || !strings.Contains(err.Error(), name+": the context is nil") {
			t.Errorf("%s with a nil context returns %v", name, err)
		}
	}
	if done {
		t.Error("an effect was done")
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "the context is nil: pass on the one") {
			t.Errorf("Key with a nil context panics with %q", got)
		}
	}()
	dag.Key(ctx)
}

// Questions, values and effects need a name alike.
func TestEdgesEmptyNames(t *testing.T) {
	v := &dagtest.Visit{Answers: map[string]any{"": true}}
	ctx := dagtest.Context(t.Context(), v)
	_, ask := dag.Ask[bool](ctx, "", "?")
	_, effect := dag.Effect(ctx, "", 1, func(context.Context, int) (int, error) { return 1, nil })
	for want, err := range map[string]error{
		`the key "" of a question`:        ask,
		`the key "" of an effect`:         effect,
		`the name "" of an emitted value`: dag.Emit(ctx, "", 1),
	} {
		if want += " is empty or not UTF-8: give it one"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(v.Asked())+len(v.Emitted()) > 0 {
		t.Errorf("asked %v and emitted %v", v.Asked(), v.Emitted())
	}
}
