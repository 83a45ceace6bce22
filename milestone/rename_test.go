package milestone_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// rounds is a graph with a loop, in one superstep of which somebody decides, somebody fails once and then
// asks, and a loop inside asks twice.
func rounds(t *testing.T, loop, retry string) *dag.Graph[Task] {
	t.Helper()
	ask := func(key string) func(context.Context, *Task) error {
		return func(ctx context.Context, _ *Task) error {
			if key == "retry" && dag.Attempt(ctx) == 1 {
				return errOffline
			}
			_, err := dag.Ask[string](ctx, key, "on?")
			return err
		}
	}
	decide := func(id string) func(context.Context, *Task) error {
		return func(ctx context.Context, _ *Task) error {
			return dag.Decide(ctx, dag.Decision{ID: id, Description: "left"})
		}
	}
	once := func(*Task) bool { return true }
	inner := dag.New[Task]("inner")
	dag.Step(inner, "second", ask("second"), dag.Step(inner, "first", ask("first")))
	round := dag.New[Task]("round")
	dag.Step(round, "decide", decide("inside"))
	dag.Step(round, retry, ask("retry")).With(dag.Policy{Attempts: 2})
	dag.Loop(round, "in", build(t, inner), once, 1)
	b := dag.New[Task]("task")
	dag.Step(b, "decide", decide("outside"))
	dag.Loop(b, loop, build(t, round), once, 1)
	return build(t, b)
}

// goesOn answers what a run asks under these keys, and lets it go on.
func goesOn(t *testing.T, d *dispatcher.Dispatcher[Task], keys ...string) error {
	t.Helper()
	for _, key := range keys {
		o, err := d.Open(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		k := slices.IndexFunc(o.Interrupts, func(i dispatcher.Interrupt) bool { return i.Key == key })
		if k < 0 {
			t.Fatalf("nobody asks %q: %v", key, o.Interrupts)
		}
		if err := d.Answer(t.Context(), "r", o.Interrupts[k].ID, "yes"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.Run(t.Context(), "r", nil)
	return err
}

func waits(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatalf("the run does not wait: %v", err)
	}
}

func renamed(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[Task] {
	t.Helper()
	d, err := dispatcher.New(rounds(t, "lap", "again"), store, dispatcher.Options{Migrations: []dispatcher.Migration{{
		Name: "names", Nodes: map[string]string{"loop": "lap", "loop/retry": "lap/again"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func byDeeds(t *testing.T, d milestone.Runs) *milestone.Namer {
	t.Helper()
	n, err := milestone.New(d, milestone.Decision(), milestone.Recovery())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What a visit did counts at the end of its own superstep, though a migration renamed the loop that it
// is in meanwhile, and whoever failed under another name has recovered. It does not matter whether
// the Namer had read the run before.
func TestRenamedInsideASuperstep(t *testing.T) {
	for name, before := range map[string]bool{"read before": true, "read at once": false} {
		t.Run(name, func(t *testing.T) {
			store := new(memory.Store)
			old := dispatch(t, rounds(t, "loop", "retry"), store)
			waits(t, goesOn(t, old))
			n := byDeeds(t, old)
			if before {
				finds(t, n, "r")
			}
			d := renamed(t, store)
			waits(t, goesOn(t, d, "first", "retry"))
			if err := goesOn(t, d, "second"); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Name(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			want := []string{"decision inside is lap/1@1", "decision outside is @1", "recovery lap/1/again is lap/1@1"}
			if got := tags(t, d, "r"); !slices.Equal(got, want) {
				t.Errorf("named are %q, want %q", got, want)
			}
		})
	}
}

// A run that went back to before it was renamed has the names that it had there.
func TestRewoundToOtherNames(t *testing.T) {
	store := new(memory.Store)
	old := dispatch(t, rounds(t, "loop", "retry"), store)
	n := byDeeds(t, old)
	waits(t, goesOn(t, old))
	waits(t, goesOn(t, old, "first"))
	waits(t, goesOn(t, renamed(t, store), "second"))
	finds(t, n, "r")
	if err := old.Rewind(t.Context(), "r", "loop/1/in/1@1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	waits(t, goesOn(t, old))
	if err := goesOn(t, old, "second", "retry"); err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r", "decision", "recovery", "decision")
	want := []string{"decision inside is loop/1@1", "decision outside is @1", "recovery loop/1/retry is loop/1@1"}
	if got := tags(t, old, "r"); !slices.Equal(got, want) {
		t.Errorf("named are %q, want %q", got, want)
	}
}
