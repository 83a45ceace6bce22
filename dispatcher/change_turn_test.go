package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

// As long as no input of a completed run is taken its graph stays what it is: whatever a call looks
// at, it is in the log with the turn that begins, and not before.
func TestChangedGraphWaitsForInput(t *testing.T) {
	quiet(t)
	ctx := t.Context()
	done, cancel := context.WithCancel(ctx)
	cancel()
	more := func(s *Tale) { s.Word.Set("more") }
	for name, c := range map[string]struct {
		queued func(*Tale)
		call   func(*dispatcher.Dispatcher[TaleInNumbers]) (*dispatcher.Result[TaleInNumbers], error)
		want   func(error) bool
	}{
		"refused": {
			call: func(d *dispatcher.Dispatcher[TaleInNumbers]) (*dispatcher.Result[TaleInNumbers], error) {
				return d.Turn(ctx, run, func(*TaleInNumbers) { panic("no") })
			},
			want: func(err error) bool {
				fault := (*dispatcher.FaultError)(nil)
				return errors.As(err, &fault) && fault.Kind == "input"
			},
		},
		"not taken": {
			queued: more,
			call: func(d *dispatcher.Dispatcher[TaleInNumbers]) (*dispatcher.Result[TaleInNumbers], error) {
				return d.Turn(done, run, nil)
			},
			want: func(err error) bool { return errors.Is(err, dispatcher.ErrNotCompleted) },
		},
		"done": {
			queued: more,
			call: func(d *dispatcher.Dispatcher[TaleInNumbers]) (*dispatcher.Result[TaleInNumbers], error) {
				return d.Run(done, run, nil)
			},
			want: func(err error) bool { return err == nil },
		},
	} {
		var store memory.Store
		words := process(t, wordsGraph(t), &store, dispatcher.Options{})
		if _, err := words.Run(ctx, run, nil); err != nil {
			t.Fatal(err)
		}
		if c.queued != nil {
			if err := words.Enqueue(ctx, run, c.queued); err != nil {
				t.Fatal(err)
			}
		}
		d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
		unchanged(t, &store, run, func() {
			res, err := c.call(d)
			if !c.want(err) || res.Status != checkpoint.StatusCompleted || res.Turn != 1 || res.State.Word.Get() != len("seven") {
				t.Errorf("%s: the call returned %s in turn %d, %s, and %v", name, res.Status, res.Turn, asJSON(t, res.State), err)
			}
		})
		res, err := d.Turn(ctx, run, func(s *TaleInNumbers) {
			if s.Word.Get() != len("seven") {
				t.Errorf("%s: the input sees %d", name, s.Word.Get())
			}
			s.Word.Set(7)
		})
		completes(t, res, err)
		log := readLog(t, &store)
		at := slices.IndexFunc(log, func(e checkpoint.Entry) bool { return e.Kind == checkpoint.Migrated })
		if len(kinds(log, checkpoint.Migrated)) != 1 || log[at+1].Kind != checkpoint.TurnBegun || res.State.Word.Get() != 7 {
			t.Errorf("%s: the state is %s, and the log %v", name, asJSON(t, res.State), log[at:])
		}
	}
}

// What is drained before the input that begins the turn is part of what goes on: names, and that a
// message was heard of.
func TestChangedGraphKeepsWhatWasDrained(t *testing.T) {
	quiet(t)
	ctx := t.Context()
	var store memory.Store
	words := process(t, wordsGraph(t), &store, dispatcher.Options{})
	if _, err := words.Run(ctx, run, nil); err != nil {
		t.Fatal(err)
	}
	refused := func() error {
		return words.Enqueue(ctx, run, func(s *Tale) { s.Word.Set("more") }, dispatcher.Message("m"))
	}
	named := checkpoint.Post{ID: "tag:1", Kind: "tag", Data: json.RawMessage(`{"name":"good","seq":4}`)}
	if err := errors.Join(refused(), store.Post(ctx, run, named)); err != nil {
		t.Fatal(err)
	}
	d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
	res, err := d.Turn(ctx, run, func(s *TaleInNumbers) { s.Word.Set(7) })
	completes(t, res, err)
	if res.Turn != 2 || len(res.Warnings) != 1 {
		t.Errorf("turn %d, with warnings %q", res.Turn, res.Warnings)
	}
	if then, err := d.At(ctx, run, "tag:good"); err != nil || then.Superstep != 1 {
		t.Errorf("what was named is of superstep %d, %v", then.Superstep, err)
	}
	if err := refused(); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(ctx, run, nil)
	completes(t, res, err)
	if res.Turn != 2 || len(res.Warnings) > 0 {
		t.Errorf("turn %d, with warnings %q, want that the message is known", res.Turn, res.Warnings)
	}
}
