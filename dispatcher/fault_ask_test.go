package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An answer that arrives in the middle of another one's append, which hangs, is refused or
// accepted, but not both of them are.
func TestAnswerBesideAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		close(free)
		g := asking(t, &w, free)
		res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		id := res.Interrupts[0].ID

		resume := make(chan struct{})
		slow := &tampered{Store: &inner, before: hangs("Append", 1, resume)}
		first := make(chan error, 1)
		go func() { first <- process(t, g, slow, dispatcher.Options{}).Answer(t.Context(), run, id, "this") }()
		synctest.Wait()
		second := process(t, g, &inner, dispatcher.Options{}).Answer(t.Context(), run, id, "that")
		close(resume)
		if one := <-first; (one == nil) == (second == nil) {
			t.Errorf("the answers returned %v and %v, want one to be accepted", one, second)
		}
		synctest.Wait()
		res, err = process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		want := "this"
		if second == nil {
			want = "that"
		}
		if got := res.State.Word.Get(); got != want {
			t.Errorf("the node got %q, want the answer that was accepted, %q", got, want)
		}
	})
}

// An answer that is posted while the run comes to rest is not lost, and can't be overtaken.
func TestAnswerWhileTheRunComesToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		resume := make(chan struct{})
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			for _, e := range c.entries {
				if e.Kind == checkpoint.Waiting {
					<-resume
				}
			}
			return nil
		}}
		free := make(chan struct{})
		g := asking(t, &w, free)
		ended := beginRun(t, process(t, g, store, dispatcher.Options{}))
		by := process(t, g, &inner, dispatcher.Options{})
		id := asked(t, by)
		close(free)
		synctest.Wait() // now the run writes that it waits
		if err := by.Answer(t.Context(), run, id, "this"); err != nil {
			t.Fatal(err)
		}
		close(resume)
		e := <-ended
		if e.err != nil {
			rests(t, e.res, e.err, checkpoint.StatusInterrupted, "asks")
		}
		refused(t, by.Answer(t.Context(), run, id, "that"), dispatcher.ErrNotAwaited)
		res, err := by.Run(t.Context(), run, nil)
		completes(t, res, err)
		if got := res.State.Word.Get(); got != "this" {
			t.Errorf("the node got %q, want this", got)
		}
	})
}

// Nothing that a visit wrote after an Ask without answer counts, and whatever it returns it
// waits; a draft that fails to encode doesn't matter either.
func TestAskCountsWhateverIsReturned(t *testing.T) {
	quiet(t)
	its := errors.New("the error of Ask")
	for name, returns := range map[string]error{"nil": nil, "its error": its, "another": errWeather} {
		var w witness
		var store memory.Store
		g := line(t, &w, func(ctx context.Context, s *Tale) error {
			s.Word.Set(strings.Repeat("before", 2))
			_, err := dag.Ask[bool](ctx, "sure", "sure?")
			s.Notes.Put("after", "the question")
			if err == nil {
				return nil
			}
			if returns == its {
				return err
			}
			return returns
		})
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		if n := len(kinds(readLog(t, &store), checkpoint.AttemptFailed)); n > 0 {
			t.Errorf("returning %s was counted as %d attempts", name, n)
		}
		if res.State.Word.IsSet() || res.State.Notes.Len() > 0 {
			t.Errorf("the draft of a visit that waits is in the state: %s", asJSON(t, res.State))
		}
		d := process(t, g, &store, dispatcher.Options{})
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "a", "b", "b", "c")
	}
}

// A deadline ends a run that waits beside a sibling at work; the question stays open.
func TestAnswerAfterADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		free := make(chan struct{})
		g := asking(t, &w, free)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "asks", "works")
		d := process(t, g, &store, dispatcher.Options{})
		if err := d.Answer(t.Context(), run, asked(t, d), "this"); err != nil {
			t.Fatal(err)
		}
		close(free)
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "asks", "works", "asks", "works", "last")
	})
}
