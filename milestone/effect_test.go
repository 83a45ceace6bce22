package milestone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// An effect that has happened is named, though what it returned is lost; one that has not is not.
func TestEffectWhoseOutputIsLost(t *testing.T) {
	b := dag.New[Task]("pay")
	pay := func(key string, f func(context.Context, int) (string, error)) func(context.Context, *Task) error {
		return func(ctx context.Context, _ *Task) error {
			if _, err := dag.Effect(ctx, key, 1, f); !errors.Is(err, dag.ErrOutputLost) && !errors.Is(err, dag.NotDone) {
				return err
			}
			return nil
		}
	}
	dag.Step(b, "lost", pay("lost", func(context.Context, int) (string, error) { return strings.Repeat("x", 5000), nil }))
	dag.Step(b, "refused", pay("refused", func(context.Context, int) (string, error) { return "", fmt.Errorf("closed: %w", dag.NotDone) }))
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	p := paired(t, d, milestone.Effect())
	if err := goesOn(t, d); err != nil {
		t.Fatal(err)
	}
	p.found(t, "effect lost")
}
