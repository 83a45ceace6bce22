package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An effect of a visit that had finished at the checkpoint can end behind it, when the superstep
// around it was voided and ran again. A rewind takes that as it is, though the frame of the
// visit is gone at the checkpoint.
func TestRewoundPastAVoidedFrame(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		tries, iterations := 0, 0
		body := dag.New[Tale]("body")
		dag.Step(body, "in", func(ctx context.Context, s *Tale) error {
			s.Said.Append("in")
			s.Word.Set("loop")
			if iterations++; s.Said.Len() > 1 {
				return nil
			}
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				if tries++; tries == 1 {
					return 0, errors.New("no reply")
				}
				return tries, nil
			}, dag.Replayable)
			if tries == 1 {
				return nil // the node goes on without it
			}
			return err
		})
		b := dag.New[Tale]("voided")
		dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Said.Len() >= 2 }, 3)
		conflicts := true
		dag.Step(b, "other", func(_ context.Context, s *Tale) error {
			if conflicts {
				s.Word.Set("other")
			}
			return nil
		})
		d := callsDispatcher(t, frozen(t, b), store, o)
		if _, err := d.Run(t.Context(), run, nil); err == nil {
			t.Fatal("the run completed in spite of the conflict")
		}
		conflicts = false
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if tries != 2 || iterations != 4 {
			t.Fatalf("the effect was tried %d times in %d iterations", tries, iterations)
		}
		first := uint64(0)
		for p, err := range d.History(t.Context(), run) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Path == "loop/2" && (first == 0 || p.Seq < first) {
				first = p.Seq
			}
		}
		at := dispatcher.Checkpoint{Run: run, Seq: first}.Address()
		if err := d.Rewind(t.Context(), run, at, dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		if err != nil { // the other node had finished at the checkpoint: the conflict is there again
			res, err = d.Resume(t.Context(), run)
		}
		completes(t, res, err)
		if tries != 2 {
			t.Errorf("the effect was tried %d times", tries)
		}
		sameMachine(t, d, run)
	})
}

// The checkpoints of a frame that was voided are abandoned, as those are behind which the run was
// rewound: an address by their path means what came in their place, or nothing yet.
func TestHistoryMarksVoidedFrames(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		b := dag.New[Tale]("voided")
		dag.Loop(b, "loop", changeLine(t, &w, "turn", "rest"), func(*Tale) bool { return false }, 2)
		g := frozen(t, b)
		d := callsDispatcher(t, g, store, timeOptions(o, "loop/2/rest"))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		marked := func() (all []string) {
			for p, err := range d.History(t.Context(), run) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, fmt.Sprintf("%s@%d %t", p.Path, p.Superstep, p.Abandoned))
			}
			return all
		}
		before := []string{"loop/1@1 false", "loop/1@2 false", "loop/2@1 false"}
		if got := marked(); !slices.Equal(got, before) {
			t.Errorf("the history is %q", got)
		}
		timeEdit(t, d, dispatcher.EditOptions{Void: []string{"loop"}}, func(s *Tale) { s.Word.Set("x") })
		gone := []string{"loop/1@1 true", "loop/1@2 true", "loop/2@1 true"}
		if got := marked(); !slices.Equal(got, gone) {
			t.Errorf("behind the void the history is %q", got)
		}
		if _, err := d.At(t.Context(), run, "loop/1@1"); !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("what was voided is found by its path: %v", err)
		}
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		if got, want := marked(), append(gone, before...); !slices.Equal(got, want) {
			t.Errorf("once it ran again the history is %q", got)
		}
		var paged []string
		for after := uint64(0); ; { // a page may begin at a snapshot or a bookmark
			page, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Causes: []dispatcher.Cause{dispatcher.CauseSuperstep}, After: after, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			paged = append(paged, fmt.Sprintf("%s@%d %t", page[0].Path, page[0].Superstep, page[0].Abandoned))
			after = page[0].Seq
		}
		if want := append(gone, before...); !slices.Equal(paged, want) {
			t.Errorf("in pages the history is %q", paged)
		}
		sameMachine(t, d, run)
	})
}

// What was voided at the end of the log is not the last checkpoint: a run that goes back to that,
// or is forked there, does not have what was voided. So it is behind a trim, which counts none of
// that.
func TestLastCheckpointIsNotAVoidedOne(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		word := "bad"
		body := dag.New[Tale]("body")
		sets := dag.Step(body, "sets", func(_ context.Context, s *Tale) error { s.Word.Set(word); return nil })
		dag.Step(body, "more", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil }, sets)
		b := dag.New[Tale]("voided")
		first := dag.Step(b, "first", func(_ context.Context, s *Tale) error { s.Said.Append("first"); return nil })
		dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 1, first)
		dag.Step(b, "other", func(_ context.Context, s *Tale) error {
			if word == "bad" {
				s.Word.Set("other")
			}
			return nil
		}, first)
		d := callsDispatcher(t, frozen(t, b), store, o)
		if res, err := d.Run(t.Context(), run, nil); err == nil || res.Status != checkpoint.StatusFailed {
			t.Fatalf("the run is %s, %v, want it failed by the conflict", res.Status, err)
		}
		isLast := func(name string) {
			t.Helper()
			if err := d.Tag(t.Context(), run, "", name); err != nil {
				t.Fatal(err)
			}
			past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Tags: []string{name}})
			if err != nil || len(past) != 1 || past[0].Abandoned || past[0].Path != "" || past[0].Superstep != 1 {
				t.Errorf("the last checkpoint is %+v, %v, want that behind first", past, err)
			}
		}
		isLast("x")
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
			t.Fatal(err)
		}
		isLast("y")
		if info, err := store.Stat(t.Context(), run); err != nil || info.First <= 1 {
			t.Errorf("the log begins at %d, %v", info.First, err)
		}
		word = "good"
		forkOne(t, d, "", "fork", dispatcher.ReuseOrLive)
		if err := d.Rewind(t.Context(), run, "", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{run, "fork"} {
			res, err := d.Run(t.Context(), id, nil)
			completes(t, res, err)
			if res.State.Word.Get() != "good" || res.State.Count.Get() != 1 {
				t.Errorf("%s ends with %s", id, asJSON(t, res.State))
			}
		}
		trimVerified(t, store, run)
	})
}
