package milestone_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// rounds is a graph with a loop, in one superstep of which somebody decides, somebody fails once
// and then asks, and a loop inside asks twice, and then under more keys.
func rounds(t *testing.T, loop, retry string, more ...string) *dag.Graph[Task] {
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
	last := dag.Step(inner, "second", ask("second"), dag.Step(inner, "first", ask("first")))
	for _, key := range more {
		last = dag.Step(inner, key, ask(key), last)
	}
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

func renamed(t *testing.T, store checkpoint.Store, more ...string) *dispatcher.Dispatcher[Task] {
	t.Helper()
	return renames(t, rounds(t, "lap", "again", more...), store, map[string]string{"loop": "lap", "loop/retry": "lap/again"})
}

// renames is a dispatcher in whose graph nodes have other names than before.
func renames(t *testing.T, g *dag.Graph[Task], store checkpoint.Store, names map[string]string) *dispatcher.Dispatcher[Task] {
	t.Helper()
	d, err := dispatcher.New(g, store, dispatcher.Options{Migrations: []dispatcher.Migration{{Name: "names", Nodes: names}}})
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

// What a visit did counts at the end of its own superstep, though a migration renamed the loop that
// it is in meanwhile, and whoever failed under another name has recovered. It does not matter
// whether the Namer had read the run before.
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

// A run that was renamed twice and goes back has the names that it had where it goes back to, be
// that before both times or between them, and also if it goes back once more from there, or on to
// what that had left behind.
func TestRewoundBehindTwoRenames(t *testing.T) {
	const before, between = "loop/1/in/1@1", "lap/1/in/1@2"
	for name, c := range map[string]struct {
		to         []string
		loop, node string // what they are called where the run then is
	}{
		"before both":         {[]string{before}, "loop", "retry"},
		"between":             {[]string{between}, "lap", "again"},
		"one after the other": {[]string{between, before}, "loop", "retry"},
		"on again":            {[]string{before, between}, "lap", "again"},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory.Store)
			old := dispatch(t, rounds(t, "loop", "retry", "third"), store)
			once := renamed(t, store, "third")
			twice := renames(t, rounds(t, "turn", "again", "third"), store, map[string]string{"lap": "turn"})
			n := byDeeds(t, old)
			waits(t, goesOn(t, old))
			waits(t, goesOn(t, old, "first"))
			waits(t, goesOn(t, once, "second"))
			waits(t, goesOn(t, twice, "third"))
			finds(t, n, "r")

			d, at := old, map[string]string{}
			for _, to := range c.to {
				p, err := twice.At(t.Context(), "r", to)
				if err != nil {
					t.Fatal(err)
				}
				at[to] = fmt.Sprint("r@", p.Cursor.Seq)
			}
			for _, to := range c.to {
				if d = old; to == between {
					d = once
				}
				if err := d.Rewind(t.Context(), "r", at[to], dispatcher.RewindOptions{}); err != nil {
					t.Fatal(err)
				}
				finds(t, n, "r")
			}
			waits(t, goesOn(t, d))
			if c.loop == "loop" {
				waits(t, goesOn(t, d, "second"))
			}
			if err := goesOn(t, d, "third", "retry"); err != nil {
				t.Fatal(err)
			}
			finds(t, n, "r", "decision", "recovery", "decision")
			want := []string{
				"decision inside is " + c.loop + "/1@1", "decision outside is @1",
				"recovery " + c.loop + "/1/" + c.node + " is " + c.loop + "/1@1",
			}
			if got := tags(t, d, "r"); !slices.Equal(got, want) {
				t.Errorf("named are %q, want %q", got, want)
			}
		})
	}
}
