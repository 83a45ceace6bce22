package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// chooseOutcomes are awkward on purpose: the entry has to tell them apart for ever.
var chooseOutcomes = []way{"a", "b", `a","b`, "<c>"}

func chooseGraph(t testing.TB, w *witness, choose func() []way) *dag.Graph[Tale] {
	b := dag.New[Tale]("tale")
	c := dag.Choose(b, "choose", func(ctx context.Context, _ *Tale) ([]way, error) {
		w.note(ctx)
		return choose(), nil
	}, chooseOutcomes)
	for i, o := range chooseOutcomes {
		dag.Step(b, "on"+string(rune('0'+i)), w.sees(nil), c.On(o))
	}
	dag.Step(b, "a-or-c", w.sees(nil), c.On("a", "<c>"))
	dag.Step(b, "a-and-b", w.sees(nil), dag.All(c.On("a"), c.On("b")))
	dag.Step(b, "always", w.sees(nil), c)
	return frozen(t, b)
}

// The edges of a Choose are taken that were chosen, in any number; the order and number of
// times in which it names them mean nothing.
func TestChooseTakesWhatWasChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chosen  []way
		outcome string
		taken   []string
	}{
		{nil, `[]`, []string{"always"}},
		{[]way{"b"}, `["b"]`, []string{"on1", "always"}},
		{[]way{"b", "a", "b"}, `["a","b"]`, []string{"on0", "on1", "a-or-c", "a-and-b", "always"}},
		{[]way{`a","b`}, `["a\",\"b"]`, []string{"on2", "always"}},
		{[]way{"<c>", "a"}, `["a","<c>"]`, []string{"on0", "on3", "a-or-c", "always"}},
	} {
		var w witness
		g, store := chooseGraph(t, &w, func() []way { return c.chosen }), new(memory.Store)
		res, err := process(t, g, store, dispatcher.Options{InterruptAfter: []string{"choose"}}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, c.taken...)
		for _, e := range readLog(t, store) {
			if e.Kind == checkpoint.Done && e.Outcome != c.outcome {
				t.Errorf("chosen %q: the entry says %s, want %s", c.chosen, e.Outcome, c.outcome)
			}
		}
		res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		says(t, res.State, c.taken...)
		w.expect(t, append(c.taken, "choose")...)
	}
}

// An outcome that is not declared fails the visit, and the error names those that are.
func TestChooseUndeclared(t *testing.T) {
	t.Parallel()
	var w witness
	g := chooseGraph(t, &w, func() []way { return []way{"a", "d"} })
	res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "choose")
	var failed *dispatcher.NodeError
	if !errors.As(err, &failed) || failed.Kind != dag.FailedOutcome || !strings.Contains(err.Error(), `outcome "d" is not declared: declared are a, b, `) {
		t.Errorf("the run failed with %v", err)
	}
}

// However long an outcome is that is not declared, what is kept of the failure names those that
// are.
func TestChooseUndeclaredAndHuge(t *testing.T) {
	t.Parallel()
	var w witness
	var store memory.Store
	g := chooseGraph(t, &w, func() []way { return []way{way(strings.Repeat("d", 1<<20))} })
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "choose")
	res, err = process(t, g, &store, dispatcher.Options{}).State(t.Context(), run)
	if err != nil || len(res.Failures) != 1 || !strings.Contains(res.Failures[0].Message, `dd" is not declared: declared are a, b, `) {
		t.Errorf("the failures are %.300q, %v", fmt.Sprint(res.Failures), err)
	}
}
