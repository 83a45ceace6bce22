package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that this graph can't go on with, nor read the state of, is looked at and spoken to all the
// same: what is in doubt there is told and resolved, and the program that began it hears all of it.
func TestRunOfAChangedGraphIsSpokenTo(t *testing.T) {
	var store memory.Store
	reset := errors.New("reset")
	b := dag.New[Tale]("line")
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		s.Word.Set("paying")
		receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "", reset }, dag.InDoubt(dag.DoubtAsks))
		s.Word.Set(receipt)
		return err
	})
	old := process(t, frozen(t, b), &store, dispatcher.Options{})
	ctx := t.Context()
	opens := func(s *Tale) { s.Word.Set("opened") }
	if _, err := old.Run(ctx, run, opens); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}

	d := process(t, migrateNumbers(t), &store, dispatcher.Options{})
	var changed *dispatcher.GraphChangedError
	if _, err := d.State(ctx, run); !errors.As(err, &changed) {
		t.Fatalf("State returned %v", err)
	}
	open, err := d.Open(ctx, run)
	if err != nil || len(open.InDoubt()) != 1 {
		t.Fatalf("Open told of %+v, %v", open, err)
	}
	for what, err := range map[string]error{
		"Resolve": d.Resolve(ctx, run, open.InDoubt()[0].Path, "charge", dispatcher.Happened("receipt")),
		"Note":    d.Note(ctx, run, "shop.seen", nil),
		"Tag":     d.Tag(ctx, run, "", "paid"),
	} {
		if err != nil {
			t.Errorf("%s returned %v", what, err)
		}
	}
	for _, err := range d.Events(ctx, run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
	}

	res, err := old.Run(ctx, run, nil)
	completes(t, res, err)
	if got := res.State.Word.Get(); got != "receipt" {
		t.Errorf("the word is %q", got)
	}
}
