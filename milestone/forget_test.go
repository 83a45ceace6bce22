package milestone_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// forgets is a dispatcher that has forgotten a node.
func forgets(t *testing.T, g *dag.Graph[Task], store checkpoint.Store, node string) *dispatcher.Dispatcher[Task] {
	t.Helper()
	d, err := dispatcher.New(g, store, dispatcher.Options{Migrations: []dispatcher.Migration{{
		Name: "without " + node, Nodes: map[string]string{node: ""},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// asking is a node that asks under a key.
func asking(key string) func(context.Context, *Task) error {
	return func(ctx context.Context, _ *Task) error {
		_, err := dag.Ask[string](ctx, key, "on?")
		return err
	}
}

// What was decided inside a node counts for nothing if a migration forgets the node before its
// superstep ends; what the others of the superstep did counts. It does not matter whether the Namer
// had read the run before.
func TestDeedsOfANodeThatIsForgotten(t *testing.T) {
	decides := func(id string) func(context.Context, *Task) error {
		return func(ctx context.Context, _ *Task) error {
			return dag.Decide(ctx, dag.Decision{ID: id, Description: "left"})
		}
	}
	graph := func(gone bool) *dag.Graph[Task] {
		b := dag.New[Task]("task")
		dag.Step(b, "ask", asking("on"))
		dag.Step(b, "stays", decides("stays"))
		if !gone {
			inner := dag.New[Task]("inner")
			dag.Step(inner, "waits", asking("never"))
			dag.Step(inner, "inside", decides("inside"))
			dag.Loop(b, "gone", build(t, inner), func(*Task) bool { return true }, 1)
		}
		return build(t, b)
	}
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprintf("read before: %v", before), func(t *testing.T) {
			store := new(memory.Store)
			old := dispatch(t, graph(false), store)
			waits(t, goesOn(t, old))
			n := byDeeds(t, old)
			if before {
				finds(t, n, "r")
			}
			d := forgets(t, graph(true), store, "gone")
			if err := goesOn(t, d, "on"); err != nil {
				t.Fatal(err)
			}
			finds(t, n, "r", "decision")
			if got := tags(t, d, "r"); len(got) != 1 || got[0] != "decision stays is @1" {
				t.Errorf("named are %q, want the decision of the node that stays", got)
			}
		})
	}
}

// A node that failed and is forgotten has not recovered when another one is done that is called as
// it was.
func TestANodeCalledAsOneThatIsForgotten(t *testing.T) {
	graph := func(pay func(b *dag.Builder[Task], first dag.Edge[Task])) *dag.Graph[Task] {
		b := dag.New[Task]("task")
		dag.Step(b, "other", asking("other"))
		pay(b, dag.Step(b, "first", asking("first")))
		return build(t, b)
	}
	store := new(memory.Store)
	old := dispatch(t, graph(func(b *dag.Builder[Task], _ dag.Edge[Task]) {
		dag.Step(b, "pay", func(ctx context.Context, s *Task) error {
			if dag.Attempt(ctx) == 1 {
				return errOffline
			}
			return asking("paid")(ctx, s)
		}).With(dag.Policy{Attempts: 2})
	}), store)
	n := byDeeds(t, old)
	waits(t, goesOn(t, old))
	without := graph(func(*dag.Builder[Task], dag.Edge[Task]) {})
	waits(t, goesOn(t, forgets(t, without, store, "pay"), "other"))
	again := dispatch(t, graph(func(b *dag.Builder[Task], first dag.Edge[Task]) {
		dag.Step(b, "pay", func(context.Context, *Task) error { return nil }, first)
	}), store)
	if err := goesOn(t, again, "first"); err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r")
}
