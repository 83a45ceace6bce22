package milestone_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
	"github.com/pawlgo/pawl/state"
)

// Effects are those of their visits: two under one key, at once, are two of their own operations. A
// rule is about those that it was made with.
func TestEffectsOfOneKey(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(2)
	b := dag.New[Task]("pay")
	for _, operation := range []string{"charge", "ring"} {
		dag.Step(b, operation, func(ctx context.Context, _ *Task) error {
			_, err := dag.Effect(ctx, "do", 1, func(context.Context, int) (int, error) {
				begun.Done()
				begun.Wait()
				return 1, nil
			}, dag.Operation(operation))
			return err
		})
	}
	of := []string{"charge"}
	rule := milestone.Effect(of...)
	of[0] = "neither"
	p := paired(t, dispatch(t, build(t, b), new(memory.Store)), rule)
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "effect charge do")
}

// A run that goes back behind a failure recovers from it: the visit, and the run.
func TestRecoveryOfWhatARewindLeavesBehind(t *testing.T) {
	fails := true
	b := dag.New[Task]("task")
	first := dag.Step(b, "first", func(context.Context, *Task) error { return nil })
	dag.Step(b, "call", func(context.Context, *Task) error {
		if fails {
			return errOffline
		}
		return nil
	}, first)
	p := paired(t, dispatch(t, build(t, b), new(memory.Store)), milestone.Recovery())
	if err := goesOn(t, p.Dispatcher); !errors.Is(err, errOffline) {
		t.Fatal(err)
	}
	p.found(t)
	p.rewind(t, "1")
	p.found(t)
	fails = false
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "recovery", "recovery call")
}

// What is as long as it may be is whole: the detail of a tag, and the name of a rule.
func TestLongestNames(t *testing.T) {
	id, node := strings.Repeat("i", 40), strings.Repeat("n", 64-len("node "))
	b := dag.New[Task]("task")
	dag.Step(b, node, decides(id))
	p := paired(t, dispatch(t, build(t, b), new(memory.Store)), milestone.Decision(), milestone.Node(node))
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "decision "+id, "node "+node)
}

// Brittle are runs of which a reading fails once, before the event of that number.
type brittle struct {
	milestone.Runs
	at int
}

func (b *brittle) Events(ctx context.Context, run string, listen dispatcher.Listen) iter.Seq2[dispatcher.Event, error] {
	return func(yield func(dispatcher.Event, error) bool) {
		n := 0
		for e, err := range b.Runs.Events(ctx, run, listen) {
			if n++; listen.States && n == b.at {
				b.at = 0
				yield(dispatcher.Event{}, errOffline)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Behind a reading that fails the next Name goes on where that one came to: it tells nothing twice,
// and leaves nothing out.
func TestNameGoesOnBehindAnError(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	between := 0
	for at := 1; ; at++ {
		runs := &brittle{d, at}
		n := namer(t, runs)
		first, err := n.Name(t.Context(), "r")
		if runs.at > 0 { // there are no more events
			break
		}
		if !errors.Is(err, errOffline) {
			t.Fatal(err)
		}
		rest, err := n.Name(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if len(first) > 0 && len(rest) > 0 {
			between++
		}
		twice := func(m milestone.Milestone) bool { return slices.Contains(rest, m) }
		if len(first)+len(rest) != len(want) || slices.ContainsFunc(first, twice) {
			t.Errorf("before event %d: found %d, and then %d, want %d in all", at, len(first), len(rest), len(want))
		}
	}
	if between == 0 {
		t.Error("no error came between two names")
	}
}

// A Place has a cell that is called as all of a state is else.
type Place struct {
	State state.Value[string] `json:"state"`
	Town  state.Value[string]
}

// A cell named state is meant by its name, and not all of the state.
func TestChangeOfACellNamedState(t *testing.T) {
	b := dag.New[Place]("places")
	ohio := dag.Step(b, "ohio", func(_ context.Context, s *Place) error { s.State.Set("Ohio"); return nil })
	dag.Step(b, "akron", func(_ context.Context, s *Place) error { s.Town.Set("Akron"); return nil }, ohio)
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Change("state"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	found, err := n.Name(t.Context(), "r")
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Tag, "change state Ohio #") {
		t.Errorf("named are %+v, %v", found, err)
	}
}
