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
		"dag: Step: the Builder is nil: make one with New":          func() { dag.Step(b, "a", edgesStep) },
		"dag: Loop: the Builder is nil: make one with New":          func() { dag.Loop(b, "a", g, nil, 1) },
		"dag: End: the Builder is nil: make one with New":           func() { dag.End(b) },
		"dag: Fail: the Builder is nil: make one with New":          func() { dag.Fail(b, "a") },
		"dag: Graph.Name: the Graph is nil: make one with Build":    func() { _ = g.Name() },
		"dag: Graph.Digest: the Graph is nil: make one with Build":  func() { _ = new(dag.Graph[edgesState]).Digest() },
		"dag: Graph.Mermaid: the Graph is nil: make one with Build": func() { _ = g.Mermaid() },
		"dag: Graph.DOT: the Graph is nil: make one with Build":     func() { _ = g.DOT() },
		"dag: With: the handle is the zero value: take the one that Step, or another, returned": func() {
			new(dag.Node[edgesState]).With(dag.Policy{})
		},
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
	var argument *dag.ArgumentError
	if _, err := g.MarshalJSON(); !errors.As(err, &argument) || argument.Argument != "Graph" {
		t.Errorf("MarshalJSON of a nil Graph returns %v", err)
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
		if got := fmt.Sprint(recover()); !strings.Contains(got, "dag: Key: the context is nil: pass on the one") {
			t.Errorf("Key with a nil context panics with %q", got)
		}
	}()
	dag.Key(ctx)
}

// Questions, values, effects and dependencies need a name alike, in a run and, where they do
// something there, outside.
func TestEdgesEmptyNames(t *testing.T) {
	v := &dagtest.Visit{Answers: map[string]any{"": true}}
	for _, ctx := range []context.Context{t.Context(), dagtest.Context(t.Context(), v)} {
		done := false
		pay := func(context.Context, int) (int, error) { done = true; return 1, nil }
		_, effect := dag.Effect(ctx, "", 1, pay)
		errs := map[string]error{
			`dag: Effect: the key ""`:   effect,
			`dag: Emit: the name ""`:    dag.Emit(ctx, "", 1),
			`dag: Depends: the name ""`: dag.Depends(ctx, dag.Dependency{StaleAfter: 1}),
		}
		if ctx != t.Context() {
			_, errs[`dag: Ask: the key ""`] = dag.Ask[bool](ctx, "", "?")
		}
		for want, err := range errs {
			var argument *dag.ArgumentError
			if want += " is empty: give it one"; !errors.As(err, &argument) || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if done {
			t.Error("an effect without a key was done")
		}
	}
	if len(v.Asked())+len(v.Emitted()) > 0 {
		t.Errorf("asked %v and emitted %v", v.Asked(), v.Emitted())
	}
}

// What a run would refuse of an effect or a value, a test of the node alone meets as well.
func TestEdgesRefusedOutsideARun(t *testing.T) {
	ctx, done := t.Context(), false
	pay := func(context.Context, int) (int, error) { done = true; return 1, nil }
	for want, option := range map[string]dag.EffectOption{
		`the effect "pay" is given an option that is nil`:               nil,
		`the effect "pay" has an operation that is empty`:               dag.Operation(""),
		`the effect "pay" touches something whose name is empty`:        dag.Touches(""),
		`the effect "pay" is given doubt(9): it is DoubtTells`:          dag.InDoubt(9),
		`the effect "pay" is given access(7): declare it as Reads or W`: dag.Access(7),
	} {
		_, err := dag.Effect(ctx, "pay", 1, pay, option)
		var argument *dag.ArgumentError
		if !errors.As(err, &argument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that %s", err, want)
		}
	}
	for want, options := range map[string][]dag.EffectOption{
		`is declared to do both, Reads and Writes`:                   {dag.Reads, dag.Writes},
		`is given several of DoubtTells, DoubtAsks and DoubtFails`:   {dag.InDoubt(dag.DoubtTells), dag.InDoubt(dag.DoubtFails)},
		`has several operations, "card.charge" and "card.authorize"`: {dag.Operation("card.charge"), dag.Operation("card.authorize")},
	} {
		_, err := dag.Effect(ctx, "pay", 1, pay, options...)
		var argument *dag.ArgumentError
		if !errors.As(err, &argument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that the effect %s", err, want)
		}
		look := func(context.Context, int) (int, error) { return 1, nil }
		if _, err := dag.Effect(ctx, "look", 1, look, options[0], options[0]); err != nil {
			t.Errorf("the same twice: %v", err)
		}
	}
	var argument *dag.ArgumentError
	if _, err := dag.Effect[int, int](ctx, "pay", 1, nil); !errors.As(err, &argument) {
		t.Errorf("an effect without a function: %v", err)
	}
	in := func() {}
	if _, err := dag.Effect(ctx, "pay", in, func(context.Context, func()) (int, error) { done = true; return 1, nil }); err == nil {
		t.Error("an effect whose input is no JSON is done outside a run")
	}
	if err := dag.Emit(ctx, "token", in); err == nil {
		t.Error("a value that is no JSON is emitted outside a run")
	}
	if done {
		t.Error("a refused effect was done")
	}
}

// nested is a graph whose last node follows combinations of All and Any in turns, so deep.
func nested(depth int) *dag.Builder[edgesState] {
	b := dag.New[edgesState]("nested")
	var edge dag.Edge[edgesState] = dag.Step(b, "first", edgesStep)
	for i := range depth {
		both := dag.All[edgesState]
		if i%2 == 0 {
			both = dag.Any[edgesState]
		}
		edge = both(edge, dag.Step(b, fmt.Sprint("n", i), edgesStep))
	}
	dag.Step(b, "last", edgesStep, edge)
	return b
}

// Combinations that nest as deep as they may are built and read back, and deeper ones are refused.
func TestEdgesNestedDeep(t *testing.T) {
	g, err := nested(dag.MaxNested).Build()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := dag.ParsePlan(g.Plan().JSON); err != nil || len(p.Nodes) != len(g.Plan().Nodes) {
		t.Errorf("the document is read as %d nodes, %v", len(p.Nodes), err)
	}
	const depth = 20_000
	_, err = nested(depth).Build()
	var wrong *dag.BuildError
	want := fmt.Sprintf(`dag: node "last": follows dag.All nested %d deep, the limit is %d: hand it all edges at once`, depth, dag.MaxNested)
	if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || wrong.Problems[0].Error() != want {
		t.Errorf("Build returns %.300v, want %q", err, want)
	}
}
