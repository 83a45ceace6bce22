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

// staleItems is the body of items: "stale" depends on what is to be looked at again after a minute, "bad" fails a second
// later unless it is mended.
func staleItems(w *witness, mended *bool) func(context.Context, *Tale, string) error {
	return func(ctx context.Context, s *Tale, is string) error {
		w.note(ctx)
		switch s.Said.Append(is); {
		case is == "stale":
			return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
		case is == "bad" && !*mended:
			lasts(time.Second)
			return errors.New("torn page")
		}
		return nil
	}
}

// An item that is done and stale is voided by a resume, although the same resume hears that an item before it was rejected.
func TestStaleItemBehindOneThatIsRejected(t *testing.T) {
	for _, followed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			mended := true
			b := dag.New[Tale]("top")
			review := dag.Each(b, "review", eachList("a", "stale"), staleItems(&w, &mended))
			if followed {
				dag.Step(b, "rescue", w.sees(nil), review.Failed())
			}
			dag.End(b, dag.Edge[Tale](review))
			store, o := new(memory.Store), dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"review/1"}})
			d := process(t, frozen(t, b), store, o)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "review/1")
			w.expect(t, "review/2")
			<-time.After(2 * time.Minute)
			l, err := store.Acquire(t.Context(), run, "other")
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
				t.Fatal(err)
			}
			if err := store.Release(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			sameMachine(t, d, run)
			if voided := kinds(readLog(t, store), checkpoint.Voided); len(voided) != 1 {
				t.Errorf("the log has %q", voided)
			}
			if followed {
				completes(t, res, err)
				says(t, res.State, "rescue")
				w.expect(t, "rescue")
				return
			}
			rests(t, res, err, checkpoint.StatusFailed, "review/1", "review/2")
			w.expect(t)
			res, err = process(t, frozen(t, b), store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, "a", "stale")
			w.expect(t, "review/1", "review/2")
			sameMachine(t, d, run)
		})
	}
}
