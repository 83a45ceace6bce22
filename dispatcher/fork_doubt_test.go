package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// forkDoubts is a graph of a step and pay, whose effect the other side does not answer as long as
// calls are to fail. It says under which keys it was asked.
func forkDoubts(t *testing.T, fails *int, keys *[]string, doubt dag.Doubt) *dag.Graph[Tale] {
	b := dag.New[Tale]("doubts")
	a := dag.Step(b, "a", nothing[Tale])
	second := dag.Step(b, "b", nothing[Tale], a)
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		word, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, _ int) (string, error) {
			*keys = append(*keys, dag.Key(ctx))
			if *fails > 0 {
				*fails--
				return "", errDoubtReset
			}
			return "receipt", nil
		}, dag.InDoubt(doubt))
		s.Word.Set(word)
		return err
	}, second)
	return frozen(t, b)
}

// What is in doubt in a run is not in its fork, and the other way round: each is resolved by
// itself, under its own key; a fork that is made afterwards finds on its shelf what somebody has
// said that happened, and nothing of what did not.
func TestForkDoubtsAreItsOwn(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			fails, keys := 2, []string(nil)
			d := callsDispatcher(t, forkDoubts(t, &fails, &keys, doubt), store, o)
			if _, err := d.Run(t.Context(), run, nil); err == nil {
				t.Fatal("nothing is in doubt")
			}
			forkOne(t, d, "", "fork", dispatcher.ReuseOrLive)
			if err := d.Resolve(t.Context(), "fork", "pay", "charge", dispatcher.NotHappened("no")); !errors.Is(err, dispatcher.ErrNotInDoubt) {
				t.Errorf("the fork, which has not begun it, is told %v", err)
			}
			if _, err := d.Run(t.Context(), "fork", nil); err == nil || len(keys) != 2 {
				t.Fatalf("outside was asked under %q, %v", keys, err)
			}
			before := kept(t, store, run)
			if err := d.Resolve(t.Context(), "fork", "pay", "charge", dispatcher.Happened("of the fork")); err != nil {
				t.Fatal(err)
			}
			if after := kept(t, store, run); len(after) != len(before) {
				t.Error("what was said of the fork is in the log of the run")
			}
			res, err := d.Run(t.Context(), "fork", nil)
			completes(t, res, err)
			if got := res.State.Word.Get(); got != "of the fork" {
				t.Errorf("the fork was told %q", got)
			}
			sameMachine(t, d, "fork")
			forkOne(t, d, "", "second", dispatcher.ReuseOrRefuse)
			res, err = d.Run(t.Context(), "second", nil)
			rests(t, res, err, checkpoint.StatusFailed, "pay")
			if !errors.Is(err, dag.ErrEffectRefused) {
				t.Errorf("what is in doubt in the run is %v in a fork", err)
			}
			if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("of the run")); err != nil {
				t.Fatal(err)
			}
			forkOne(t, d, "", "third", dispatcher.ReuseOrRefuse)
			for _, id := range []string{run, "third"} {
				res, err := d.Run(t.Context(), id, nil)
				completes(t, res, err)
				if got := res.State.Word.Get(); got != "of the run" {
					t.Errorf("%s was told %q", id, got)
				}
				forkVerified(t, store, id)
			}
			if len(keys) != 2 || keys[0] != "tale/pay#charge" || keys[1] != "fork/pay#charge" {
				t.Errorf("outside was asked under %q", keys)
			}
		})
	}
}

// An effect that is in doubt when the run is trimmed, forks included, is resolved after that: the
// run goes on with what was said, and the past stays trimmed. Behind the resolution it can be
// trimmed again.
func TestDoubtIsResolvedBehindATrim(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		for _, what := range []dispatcher.Resolution{dispatcher.Happened("kept"), dispatcher.NotHappened("looked")} {
			eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
				fails, keys := 2, []string(nil)
				d := callsDispatcher(t, forkDoubts(t, &fails, &keys, doubt), store, o)
				_, err := d.Run(t.Context(), run, nil)
				forkOne(t, d, "1", "fork", dispatcher.Live)
				_, ferr := d.Run(t.Context(), "fork", nil)
				if err == nil || ferr == nil {
					t.Fatal("nothing is in doubt")
				}
				for _, id := range []string{run, "fork"} {
					asked := len(keys)
					if err := d.Trim(t.Context(), id, dispatcher.Retention{Last: 1}); err != nil {
						t.Fatal(err)
					}
					opened, err := d.Open(t.Context(), id)
					if err != nil || len(opened.InDoubt()) != 1 || opened.InDoubt()[0].ID != id+"/pay#charge" {
						t.Fatalf("behind the trim in doubt are %v, %v", opened, err)
					}
					if err := d.Resolve(t.Context(), id, "pay", "charge", what); err != nil {
						t.Fatal(err)
					}
					var to memory.Store
					var file bytes.Buffer
					if err := checkpoint.Export(t.Context(), store, id, &file); err != nil {
						t.Fatal(err)
					}
					if _, err := checkpoint.Import(t.Context(), &to, &file, checkpoint.ImportOptions{}); err != nil {
						t.Fatal(err)
					}
					res, err := d.Run(t.Context(), id, nil)
					completes(t, res, err)
					again, err := callsDispatcher(t, forkDoubts(t, &fails, &keys, doubt), &to, o).Run(t.Context(), id, nil)
					completes(t, again, err)
					happened := res.State.Word.Get() == "kept" && len(keys) == asked
					done := res.State.Word.Get() == "receipt" && len(keys) == asked+2 // in both stores
					if again.State.Word.Get() != res.State.Word.Get() || !happened && !done {
						t.Errorf("%s: the state is %s, and outside was asked under %q", id, asJSON(t, res.State), keys)
					}
					if err := d.Trim(t.Context(), id, dispatcher.Retention{Last: 1}); err != nil {
						t.Error(err)
					}
					forkVerified(t, store, id)
				}
			})
		}
	}
}
