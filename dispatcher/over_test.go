package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What a node has left behind, or is abandoned in, gets nowhere with its context: whatever it
// calls is ErrVisitOver, and nothing of it is in the log.
func TestOverIsOver(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var errs []error
			late := func(ctx context.Context) {
				lasts(time.Hour)
				_, asked := dag.Ask[bool](ctx, "sure", "?")
				_, done := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
					t.Error("the effect is done")
					return "", nil
				}, dag.InDoubt(dag.DoubtAsks))
				_, kept := dag.Effect(ctx, "quote", 5, func(context.Context, int) (string, error) { return "", nil })
				errs = append(errs, asked, done, kept, dag.Emit(ctx, "late", 1))
			}
			g := effectNode(t, func(ctx context.Context, _ *Tale) error {
				if _, err := dag.Effect(ctx, "quote", 5, func(context.Context, int) (string, error) { return "7", nil }); err != nil {
					return err
				}
				if abandoned {
					late(ctx)
					return nil
				}
				go late(ctx)
				return nil
			}, dag.Policy{})
			var store memory.Store
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
			if abandoned {
				rests(t, res, err, checkpoint.StatusTimedOut, "pay")
			} else {
				completes(t, res, err)
			}
			before := asJSON(t, readLog(t, &store))
			lasts(2 * time.Hour)
			synctest.Wait()
			if after := asJSON(t, readLog(t, &store)); after != before {
				t.Errorf("abandoned=%t: the log was\n%s\nand is\n%s", abandoned, before, after)
			}
			if len(errs) != 4 {
				t.Fatalf("abandoned=%t: %v", abandoned, errs)
			}
			for _, err := range errs {
				if !errors.Is(err, dag.ErrVisitOver) {
					t.Errorf("abandoned=%t: %v", abandoned, err)
				}
			}
		})
	}
}
