package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A node is told which of its questions have ended, in the order of their ends; and Continue goes
// on only from where the run stood, if it is told so.
func TestAnswersInTheirOrder(t *testing.T) {
	var told []string
	b := dag.New[Tale]("order")
	dag.Step(b, "only", func(ctx context.Context, _ *Tale) error {
		told = nil
		for _, a := range dag.Answers(ctx) {
			told = append(told, a.Key+" "+string(a.How)+" "+a.By)
		}
		var errs []error
		for _, key := range []string{"a", "b", "c"} {
			_, err := dag.Ask[string](ctx, key, "which?")
			if !errors.Is(err, dag.ErrSkipped) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	d := process(t, frozen(t, b), &memory.Store{}, dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "only")
	ids := map[string]string{}
	for _, i := range res.Interrupts {
		ids[i.Key] = i.ID
	}
	err = errors.Join(
		d.Answer(ctx, run, ids["c"], "x", dispatcher.Author("ann")),
		d.Skip(ctx, run, ids["a"]), d.Answer(ctx, run, ids["b"], "y"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Continue(ctx, run, dispatcher.From(res.Cursor)); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("from before the answers: %v", err)
	}
	now, err := d.State(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Continue(ctx, run, dispatcher.From(now.Cursor)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"c answered ann", "a skipped ", "b answered "}; !slices.Equal(told, want) {
		t.Errorf("the node was told %q, want %q", told, want)
	}
	if all := dag.Answers(ctx); all != nil {
		t.Errorf("outside a run: %v", all)
	}
}

// What was answered at once ended at once: a node is told of it in the order of the keys, and so in
// every attempt.
func TestAnswersGivenAtOnceAreInOrder(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	var told []string
	b := dag.New[Tale]("order")
	dag.Step(b, "only", func(ctx context.Context, _ *Tale) error {
		told = nil
		for _, a := range dag.Answers(ctx) {
			told = append(told, a.Key)
		}
		var errs []error
		for _, key := range keys {
			_, err := dag.Ask[string](ctx, key, "which?")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	d := process(t, frozen(t, b), &memory.Store{}, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "only")
	values := map[string]any{}
	for _, i := range res.Interrupts {
		values[i.ID] = "this"
	}
	if err := d.Answers(t.Context(), run, values); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if !slices.Equal(told, keys) {
		t.Errorf("the node was told %q, want %q", told, keys)
	}
}

// What was answered at one instant, as by a clock that stands or was set back, was answered in the
// order in which the answers came: a node is told of it so, in every process.
func TestAnswersOfOneInstantAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		b := dag.New[Tale]("order")
		dag.Step(b, "only", func(ctx context.Context, _ *Tale) error {
			told = nil
			for _, a := range dag.Answers(ctx) {
				told = append(told, a.Key)
			}
			var errs []error
			for _, key := range []string{"a", "b", "c"} {
				_, err := dag.Ask[string](ctx, key, "which?")
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
		g, store := frozen(t, b), &memory.Store{}
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
		want := []string{"c", "a", "b"}
		for _, key := range want {
			k := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Key == key })
			if err := process(t, g, store, dispatcher.Options{}).Answer(t.Context(), run, res.Interrupts[k].ID, "this"); err != nil {
				t.Fatal(err)
			}
		}
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if !slices.Equal(told, want) {
			t.Errorf("the node was told %q, want %q", told, want)
		}
	})
}
