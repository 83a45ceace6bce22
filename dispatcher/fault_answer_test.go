package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

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
	if want == dag.ErrExpired {
		advises(t, err, "it has expired", "has it asked again")
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
			refused(t, by.Answer(t.Context(), run, "other", "this"), dispatcher.ErrNotAwaited)
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
