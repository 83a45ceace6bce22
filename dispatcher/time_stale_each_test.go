package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// staleItems is the body of items: "stale" depends on what is to be looked at again after a minute,
// "bad" fails a second later unless it is mended.
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

// An item that is done and stale is voided by a resume, although the same resume hears that an item
// before it was rejected.
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

// An item that is done behind one that failed counts when that runs again, so it is voided if it is
// stale by then: by the resume, or by an edit.
func TestStaleItemBehindOneThatFailed(t *testing.T) {
	for _, edits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var mended bool
			b := dag.New[Tale]("top")
			dag.Each(b, "review", eachList("bad", "stale", "c"), staleItems(&w, &mended))
			store, o := new(memory.Store), dispatcher.Eager(dispatcher.Options{})
			d := process(t, frozen(t, b), store, o)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "review/1")
			w.expect(t, "review/1", "review/2", "review/3")
			mended = true
			if edits {
				nothing := func(*Tale) {}
				if err := d.Edit(t.Context(), run, nothing, dispatcher.EditOptions{Void: []string{"review/2"}}); err != nil {
					t.Fatal(err)
				}
				sameMachine(t, d, run)
			}
			<-time.After(2 * time.Minute)
			res, err = process(t, frozen(t, b), store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, "bad", "stale", "c")
			w.expect(t, "review/1#2", "review/2")
			sameMachine(t, d, run)
		})
	}
}

// What a failed frame does not give out depends on nothing: a run that goes on behind the failure
// can't be stale for it. What it keeps is merged, and is.
func TestStaleInAFailedFrame(t *testing.T) {
	stale := func(w *witness) part {
		return w.sees(func(ctx context.Context, _ *Tale) error {
			return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
		})
	}
	type builder = *dag.Builder[Tale]
	body := func(t *testing.T, w *witness) *dag.Graph[Tale] {
		b := dag.New[Tale]("body")
		dag.Step(b, "bad", w.sees(func(context.Context, *Tale) error { return errWeather }), dag.Step(b, "look", stale(w)))
		return frozen(t, b)
	}
	none, once := func(_, _ *Tale) {}, func(*Tale) bool { return true }
	for name, c := range map[string]struct {
		add     func(*testing.T, *witness, builder) interface{ Failed() dag.Edge[Tale] }
		refused string // the visit that is stale and counts
	}{
		"an item behind the failed one": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			return dag.Each(b, "hold", eachList("bad", "stale"), staleItems(w, new(bool)))
		}, ""},
		"an item before the failed one": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			return dag.Each(b, "hold", eachList("a", "stale", "bad"), staleItems(w, new(bool)))
		}, "hold/2"},
		"in the failed item": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			return dag.EachGraph(b, "hold", eachList("a"), body(t, w), func(*Tale, string, *Tale) {}, func(*Tale, string, *Tale) {})
		}, ""},
		"in an Embed": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			return dag.Embed(b, "hold", body(t, w), none, none)
		}, ""},
		"in a Loop": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			return dag.Loop(b, "hold", body(t, w), once, 1)
		}, "hold/1/look"},
		"in an Embed in a Loop": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			around := dag.New[Tale]("around")
			dag.Embed(around, "inner", body(t, w), none, none)
			return dag.Loop(b, "hold", frozen(t, around), once, 1)
		}, ""},
		"behind the failed item in a Loop in a Loop": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			inner, around := dag.New[Tale]("inner"), dag.New[Tale]("around")
			dag.Each(inner, "each", eachList("bad", "stale"), staleItems(w, new(bool)))
			dag.Loop(around, "inner", frozen(t, inner), once, 1)
			return dag.Loop(b, "hold", frozen(t, around), once, 1)
		}, ""},
		"before the failed item in a Loop": {func(t *testing.T, w *witness, b builder) interface{ Failed() dag.Edge[Tale] } {
			around := dag.New[Tale]("around")
			dag.Each(around, "each", eachList("stale", "bad"), staleItems(w, new(bool)))
			return dag.Loop(b, "hold", frozen(t, around), once, 1)
		}, "hold/1/each/1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				b := dag.New[Tale]("top")
				hold := c.add(t, &w, b)
				dag.Step(b, "asks", w.sees(nil), hold.Failed())
				dag.End(b, hold.(dag.Edge[Tale]))
				store, o := new(memory.Store), dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"asks"}})
				d := process(t, frozen(t, b), store, o)
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "asks")
				<-time.After(2 * time.Hour)
				var refused *dispatcher.StaleError
				res, err = process(t, frozen(t, b), store, o).Resume(t.Context(), run)
				sameMachine(t, d, run)
				if c.refused != "" {
					if !errors.As(err, &refused) || refused.Path != c.refused {
						t.Errorf("the resume returned %v, want %s to be stale", err, c.refused)
					}
					return
				}
				completes(t, res, err)
				if said := res.State.Said.Slice(); !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, "asks") }) {
					t.Errorf("the state says %q", said)
				}
			})
		})
	}
}
