package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An unwatched store can't tell when something is posted.
type unwatched struct{ checkpoint.Store }

// asking returns a graph of a node that asks for a word, of a node that holds the run live
// beside it until free is closed, and of one that follows both.
func asking(t testing.TB, w *witness, free <-chan struct{}) *dag.Graph[Tale] {
	b := dag.New[Tale]("asking")
	asks := dag.Step(b, "asks", w.sees(func(ctx context.Context, s *Tale) error {
		s.Notes.Put("draft", "dropped if there is no answer")
		word, err := dag.Ask[string](ctx, "word", "which?")
		if err != nil {
			return err
		}
		s.Word.Set(word)
		s.Notes.Delete("draft")
		return nil
	}))
	works := dag.Step(b, "works", w.sees(func(ctx context.Context, _ *Tale) error {
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	dag.Step(b, "last", w.sees(nil), asks, works)
	return frozen(t, b)
}

// asked returns the one interrupt that the run waits for.
func asked(t *testing.T, d *dispatcher.Dispatcher[Tale]) string {
	t.Helper()
	res, err := d.State(t.Context(), run)
	if err != nil || len(res.Interrupts) != 1 {
		t.Fatalf("the run waits for %+v, %v, want one answer", res.Interrupts, err)
	}
	return res.Interrupts[0].ID
}

// refused checks why an answer was.
func refused(t *testing.T, err, want error) {
	t.Helper()
	var e *dispatcher.AnswerError
	if !errors.As(err, &e) || !errors.Is(err, want) || e.Run != run {
		t.Errorf("the answer returned %v, want an AnswerError that is %v", err, want)
	}
}

// A live run takes an answer at once, while its siblings go on.
func TestAnswerLive(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store checkpoint.Store = &memory.Store{}
			if !watched {
				store = unwatched{store}
			}
			free := make(chan struct{})
			g := asking(t, &w, free)
			ended := beginRun(t, process(t, g, store, dispatcher.Options{}))
			w.expect(t, "asks", "works")
			by := process(t, g, store, dispatcher.Options{})
			id := asked(t, by)
			if err := by.Answer(t.Context(), run, id, "this"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if watched {
				w.expect(t, "asks")
			}
			close(free)
			e := <-ended
			completes(t, e.res, e.err)
			if watched {
				w.expect(t, "last")
			} else {
				w.expect(t, "asks", "last") // it hears of the answer when it comes to rest
			}
			says(t, e.res.State, "asks", "works", "last")
			if got := e.res.State.Word.Get(); got != "this" || e.res.State.Notes.Len() > 0 {
				t.Errorf("the state is %s", asJSON(t, e.res.State))
			}
			refused(t, by.Answer(t.Context(), run, id, "that"), dispatcher.ErrNotAwaited)
		})
	}
}

// Answers that are wrong change nothing, live and at rest.
func TestAnswerRefused(t *testing.T) {
	for _, live := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			free := make(chan struct{})
			g := asking(t, &w, free)
			ended := beginRun(t, process(t, g, &store, dispatcher.Options{}))
			if !live {
				close(free)
				e := <-ended
				rests(t, e.res, e.err, checkpoint.StatusInterrupted, "asks")
			}
			by := process(t, g, &store, dispatcher.Options{})
			id := asked(t, by)
			before := asJSON(t, readLog(t, &store))
			for name, value := range map[string]any{
				"a number": 7, "nothing": nil, "a list": []string{"this"}, "an object": map[string]string{"word": "this"},
				"no JSON": math.NaN(), "a function": func() {},
			} {
				if err := by.Answer(t.Context(), run, id, value); !errors.Is(err, dispatcher.ErrAnswerType) {
					t.Errorf("the answer %s returned %v, want ErrAnswerType", name, err)
				}
			}
			refused(t, by.Answer(t.Context(), run, id, 7), dispatcher.ErrAnswerType)
			refused(t, by.Answer(t.Context(), run, "unknown", "this"), dispatcher.ErrNotAwaited)
			refused(t, by.Answer(t.Context(), run, "", "this"), dispatcher.ErrNotAwaited)
			if err := by.Answer(t.Context(), "nobody", id, "this"); !errors.Is(err, dispatcher.ErrNotFound) {
				t.Errorf("an answer to a run that is missing returned %v", err)
			}
			synctest.Wait()
			if after := asJSON(t, readLog(t, &store)); after != before {
				t.Errorf("the log was\n%s\nand is\n%s", before, after)
			}
			if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
				t.Errorf("posts %v are left, %v", posts, err)
			}
			if live {
				close(free)
				<-ended
			}
			if err := by.Answer(t.Context(), run, id, "this"); err != nil {
				t.Fatal(err)
			}
			res, err := by.Run(t.Context(), run, nil)
			completes(t, res, err)
		})
	}
}

// Of different answers to one interrupt exactly one is accepted, and it is the one that the
// node gets: one after the other or at once, live or at rest, by one dispatcher or two.
func TestAnswerTwice(t *testing.T) {
	for _, live := range []bool{true, false} {
		for _, atOnce := range []bool{true, false} {
			for _, watched := range []bool{true, false} {
				t.Run(fmt.Sprintf("live=%t/at once=%t/watched=%t", live, atOnce, watched), func(t *testing.T) {
					times := 1
					if atOnce {
						times = 10
					}
					for range times {
						synctest.Test(t, func(t *testing.T) { answerTwice(t, live, atOnce, watched) })
					}
				})
			}
		}
	}
}

func answerTwice(t *testing.T, live, atOnce, watched bool) {
	var w witness
	var store checkpoint.Store = &memory.Store{}
	if !watched {
		store = unwatched{store}
	}
	free := make(chan struct{})
	g := asking(t, &w, free)
	ended := beginRun(t, process(t, g, store, dispatcher.Options{}))
	if !live {
		close(free)
		<-ended
	}
	id := asked(t, process(t, g, store, dispatcher.Options{}))
	type given struct {
		word string
		err  error
	}
	all := make(chan given, 2)
	for _, word := range []string{"this", "that"} {
		by := process(t, g, store, dispatcher.Options{})
		give := func() { all <- given{word, by.Answer(t.Context(), run, id, word)} }
		if atOnce {
			go give()
		} else {
			give()
			synctest.Wait()
		}
	}
	var accepted []string
	for range 2 {
		if g := <-all; g.err == nil {
			accepted = append(accepted, g.word)
		} else {
			refused(t, g.err, dispatcher.ErrNotAwaited)
		}
	}
	if live {
		close(free)
		<-ended
	}
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if len(accepted) != 1 || res.State.Word.Get() != accepted[0] {
		t.Errorf("accepted were %q, and the node got %q", accepted, res.State.Word.Get())
	}
}

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
