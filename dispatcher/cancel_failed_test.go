package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that rested as Failed before somebody cancelled it is gone on with by the next call, as one
// that is Failed: what has failed runs again, and with a new budget.
func TestRunBehindACancelOfAFailedRun(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]func(t *testing.T, d *dispatcher.Dispatcher[Tale]) error{
		"Run": func(t *testing.T, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Run(t.Context(), run, nil)
			return err
		},
		"Resume": func(t *testing.T, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Resume(t.Context(), run)
			return err
		},
		"Continue": func(t *testing.T, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Continue(t.Context(), run)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w witness
			g, store := line(t, &w, func(_ context.Context, s *Tale) error {
				if s.Word.Get() == "" {
					return errWeather
				}
				return nil
			}), new(memory.Store)
			d := process(t, g, store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			if res.Status != checkpoint.StatusFailed || !errors.Is(err, errWeather) {
				t.Fatalf("the run is %s: %v", res.Status, err)
			}
			if err := errors.Join(
				d.Cancel(t.Context(), run, errors.New("wrong input")),
				d.Note(t.Context(), run, "mended", 1),
				d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("there") }, dispatcher.EditOptions{}),
			); err != nil {
				t.Fatal(err)
			}
			d = process(t, g, store, dispatcher.Options{})
			err = goesOn(t, d)
			res, _ = d.State(t.Context(), run)
			completes(t, res, err)
			sameMachine(t, d, run)
		})
	}
}

// What somebody has rejected since stays rejected: it is no reason why the run had failed.
func TestRejectBehindACancelOfAFailedRun(t *testing.T) {
	t.Parallel()
	var w witness
	fails := true
	b := dag.New[Tale]("two")
	dag.Step(b, "a", w.sees(func(context.Context, *Tale) error {
		if fails {
			return errWeather
		}
		return nil
	}))
	dag.Step(b, "b", w.sees(nil))
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{InterruptBefore: []string{"b"}})
	res, err := d.Run(t.Context(), run, nil)
	if res.Status != checkpoint.StatusFailed || len(res.Interrupts) != 1 {
		t.Fatalf("the run is %s: %v", res.Status, err)
	}
	w.took()
	fails = false
	if err := errors.Join(
		d.Cancel(t.Context(), run, nil),
		d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject),
	); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "b")
	w.expect(t, "a#2")
}
