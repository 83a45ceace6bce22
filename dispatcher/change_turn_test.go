package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A completed run has no visits that could be in the way: a turn of it runs any graph whose
// cells fit, and the log can be read by all of them.
func TestChangedGraphBeginsATurn(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := changeLine(t, &w, "a", "b")
	res, err := process(t, old, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.took()
	next := changeLine(t, &w, "x", "y", "z")
	d := process(t, next, &store, dispatcher.Options{InterruptBefore: []string{"y"}})
	res, err = d.Turn(t.Context(), run, func(s *Tale) { s.Word.Set("more") })
	rests(t, res, err, checkpoint.StatusInterrupted, "y")
	before, _ := store.Stat(t.Context(), run)
	_, err = process(t, old, &store, dispatcher.Options{}).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err, "visit x is done, and its node is gone", "visit y is open, and its node is gone")
	res, err = process(t, next, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "a", "b", "2/x", "2/y", "2/z")
	w.expect(t, "2/x", "2/y", "2/z")
	for _, g := range []*dag.Graph[Tale]{old, next} {
		d := process(t, g, &store, dispatcher.Options{})
		res, err := d.State(t.Context(), run)
		if err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("the run reads as %s, %v", res.Status, err)
		}
		says(t, res.State, "a", "b", "2/x", "2/y", "2/z")
	}

	before, _ = store.Stat(t.Context(), run)
	_, err = process(t, migrateNumbers(t), &store, dispatcher.Options{}).Turn(t.Context(), run, nil)
	changeRefused(t, &store, before.Head, err, "cell Word was a value of string and is a value of int")
}

// Input that was posted by a program whose cells are others is refused by name when it is
// taken, and the run stays completed.
func TestChangedGraphTakesInput(t *testing.T) {
	quiet(t)
	var store memory.Store
	numbers := process(t, migrateNumbers(t), &store, dispatcher.Options{})
	if _, err := numbers.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
	words := process(t, frozen(t, b), &store, dispatcher.Options{})
	if err := words.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set("seven") }); err != nil {
		t.Fatal(err)
	}
	if err := words.Enqueue(t.Context(), run, func(s *Tale) { s.Tags.Add("fits") }); err != nil {
		t.Fatal(err)
	}
	res, err := numbers.Run(t.Context(), run, nil)
	completes(t, res, err)
	if res.State.Word.Get() != 0 || !res.State.Tags.Has("fits") || len(res.Warnings) != 1 ||
		!strings.Contains(res.Warnings[0], "cell Word was a value of string and is a value of int") {
		t.Errorf("the state is %s, with warnings %q", asJSON(t, res.State), res.Warnings)
	}
	if _, err := numbers.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("Resume returns %v, want that the run is completed", err)
	}
}
