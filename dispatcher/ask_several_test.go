package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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

// askSeveral returns a graph of so many nodes side by side, each of which asks for a word and
// for a number at once, and of one that follows all of them and one that holds the run live
// until free is closed.
func askSeveral(t testing.TB, w *witness, n int, free <-chan struct{}) *dag.Graph[Tale] {
	b := dag.New[Tale]("several")
	works := dag.Step(b, "works", w.sees(func(ctx context.Context, _ *Tale) error {
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	follows := []dag.Edge[Tale]{works}
	for i := range n {
		name := fmt.Sprintf("asks%d", i)
		follows = append(follows, dag.Step(b, name, w.sees(func(ctx context.Context, s *Tale) error {
			// The keys tell the questions apart, not the order in which they are asked.
			var word string
			var number int
			var wordErr, numberErr error
			if i%2 == 0 {
				word, wordErr = dag.Ask[string](ctx, "word", "which?")
				number, numberErr = dag.Ask[int](ctx, "number", "how many?")
			} else {
				number, numberErr = dag.Ask[int](ctx, "number", "how many?")
				word, wordErr = dag.Ask[string](ctx, "word", "which?")
			}
			if err := errors.Join(wordErr, numberErr); err != nil {
				return err
			}
			s.Notes.Put(name, fmt.Sprint(word, number))
			return nil
		})))
	}
	dag.Step(b, "last", w.sees(nil), follows...)
	return frozen(t, b)
}

// askedBy finds a question of askSeveral among those that wait.
func askedBy(t testing.TB, d *dispatcher.Dispatcher[Tale], id, path, key string) string {
	t.Helper()
	res, err := d.State(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range res.Interrupts {
		if i.Path == path && i.Key == key {
			return i.ID
		}
	}
	t.Fatalf("visit %s does not ask %q: %v", path, key, res.Interrupts)
	return ""
}

// Several questions wait at once: each has an id of its own, an answer without one is ambiguous,
// one with an unknown one is refused, and a map of some of them ends those and leaves the others
// waiting: a resume runs nothing twice.
func TestLife49SeveralQuestionsWait(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, askSeveral(t, &w, 3, closedChan()), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1", "asks2")
	w.expect(t, "works", "asks0", "asks1", "asks2")
	ids := map[string]bool{}
	for _, i := range res.Interrupts {
		ids[i.ID] = true
	}
	if len(ids) != 6 {
		t.Errorf("%d questions have %d ids", len(res.Interrupts), len(ids))
	}
	word0, number0 := askedBy(t, d, run, "asks0", "word"), askedBy(t, d, run, "asks0", "number")
	word1 := askedBy(t, d, run, "asks1", "word")
	unchanged(t, &store, run, func() {
		refused(t, d.Answer(t.Context(), run, "", "this"), dispatcher.ErrAmbiguous)
		refused(t, d.Skip(t.Context(), run, ""), dispatcher.ErrAmbiguous)
		refused(t, d.Answer(t.Context(), run, "unknown", "this"), dispatcher.ErrNotAwaited)
		refused(t, d.Answers(t.Context(), run, map[string]any{word0: "this", "unknown": "this"}), dispatcher.ErrNotAwaited)
		refused(t, d.Answers(t.Context(), run, map[string]any{word0: "this", number0: "many"}), dispatcher.ErrAnswerType)
		refused(t, d.Answers(t.Context(), run, map[string]any{word0: "this", "": 3}), dispatcher.ErrNotAwaited)
		refused(t, d.Answers(t.Context(), run, nil), dispatcher.ErrNotAwaited)
	})
	before := len(readLog(t, &store))
	if err := d.Answers(t.Context(), run, map[string]any{word0: "this", number0: 7, word1: "that"}); err != nil {
		t.Fatal(err)
	}
	log := readLog(t, &store)
	if got := kinds(log[before:], checkpoint.Answered); len(got) != 3 || len(log) != before+3 {
		t.Errorf("three answers became the entries %v", log[before:])
	}
	res, err = process(t, askSeveral(t, &w, 3, closedChan()), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks1", "asks2")
	w.expect(t, "asks0")
	if len(res.Interrupts) != 3 {
		t.Errorf("the others are %v", res.Interrupts)
	}
	unchanged(t, &store, run, func() {
		refused(t, d.Answers(t.Context(), run, map[string]any{word0: "again", res.Interrupts[0].ID: 1}), dispatcher.ErrNotAwaited)
	})
	for _, i := range res.Interrupts {
		if err := d.Answer(t.Context(), run, i.ID, map[string]any{"word": "or", "number": 1}[i.Key]); err != nil {
			t.Fatal(err)
		}
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "asks1", "asks2", "last")
	for name, want := range map[string]string{"asks0": "this7", "asks1": "that1", "asks2": "or1"} {
		if got, _ := res.State.Notes.Get(name); got != want {
			t.Errorf("%s got %q, want %q", name, got, want)
		}
	}
}

// Answers that are given together to a live run are taken together, while a sibling works on;
// if one of them is to one that has ended, or of a wrong type, none is.
func TestAskTogetherWhileTheRunIsLive(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store checkpoint.Store = &memory.Store{}
			if !watched {
				store = unwatched{store}
			}
			free := make(chan struct{})
			g := askSeveral(t, &w, 2, free)
			over := beginRun(t, process(t, g, store, dispatcher.Options{}))
			synctest.Wait()
			w.expect(t, "works", "asks0", "asks1")
			by := process(t, g, store, dispatcher.Options{})
			word0, number0 := askedBy(t, by, run, "asks0", "word"), askedBy(t, by, run, "asks0", "number")
			word1, number1 := askedBy(t, by, run, "asks1", "word"), askedBy(t, by, run, "asks1", "number")
			if err := by.Answer(t.Context(), run, word0, "this"); err != nil {
				t.Fatal(err)
			}
			refused(t, by.Answers(t.Context(), run, map[string]any{word0: "that", number0: 1}), dispatcher.ErrNotAwaited)
			refused(t, by.Answers(t.Context(), run, map[string]any{number0: "many", word1: "that"}), dispatcher.ErrAnswerType)
			if err := by.Answers(t.Context(), run, map[string]any{number0: 7, number1: 8}, dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			if err := by.Answers(t.Context(), run, map[string]any{number0: 7, number1: 8}, dispatcher.Author("Eve")); err == nil {
				t.Error("the same answers were accepted of another person")
			}
			synctest.Wait()
			if watched {
				w.expect(t, "asks0")
			}
			if err := by.Answer(t.Context(), run, "", "that"); err != nil { // the only one that is left
				t.Fatal(err)
			}
			close(free)
			e := <-over
			completes(t, e.res, e.err)
			if watched {
				w.expect(t, "asks1", "last")
			}
			one, _ := e.res.State.Notes.Get("asks0")
			two, _ := e.res.State.Notes.Get("asks1")
			if one != "this7" || two != "that8" {
				t.Errorf("the nodes got %q and %q", one, two)
			}
			all := askAnswers(t, store, run)
			if len(all) != 4 || all[number0].By != "Ada" || all[number1].By != "Ada" || all[word0].By != "" {
				t.Errorf("the log says %+v", all)
			}
		})
	}
}

// A question of a visit that is alone with a sibling that works is answered while that goes on,
// also after a restart.
func TestAskAnsweredBesideTheOnlyVisitAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		free := make(chan struct{})
		g := asking(t, &w, free)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "asks", "works")
		w.took()
		over := beginRun(t, process(t, g, &store, dispatcher.Options{}))
		synctest.Wait()
		w.expect(t, "works")
		if err := process(t, g, &store, dispatcher.Options{}).Answer(t.Context(), run, "", "this"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect(t, "asks")
		close(free)
		e := <-over
		completes(t, e.res, e.err)
	})
}

// What is no question can't be skipped; what nobody waits for can't be either.
func TestAskSkipRefused(t *testing.T) {
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	d := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"b"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	id := res.Interrupts[0].ID
	unchanged(t, &store, run, func() {
		refused(t, d.Skip(t.Context(), run, id), dispatcher.ErrAnswerType)
		refused(t, d.Skip(t.Context(), run, ""), dispatcher.ErrNotAwaited)
		refused(t, d.Skip(t.Context(), run, "unknown"), dispatcher.ErrNotAwaited)
		refused(t, d.Answer(t.Context(), run, "", dispatcher.Approve), dispatcher.ErrNotAwaited)
	})
	if err := d.Skip(t.Context(), "nobody", id); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("Skip of no run returned %v", err)
	}
	if err := d.Answers(t.Context(), "nobody", map[string]any{id: 1}); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("Answers to no run returned %v", err)
	}
	if err := d.Answers(t.Context(), "nobody", nil); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("no Answers to no run returned %v", err)
	}
	none := process(t, g, nil, dispatcher.Options{})
	if err := none.Skip(t.Context(), run, id); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("Skip without a store returned %v", err)
	}
	if err := none.Answers(t.Context(), run, map[string]any{id: 1}); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("Answers without a store returned %v", err)
	}
}

// A question that can't be asked so is an error for the node, and no interrupt.
func TestAskOptionsRefused(t *testing.T) {
	for name, options := range map[string][]dag.AskOption{
		"no time":               {dag.Within(0)},
		"less than no time":     {dag.Within(-1)},
		"no instant":            {dag.Until(time.Time{})},
		"an instant too far":    {dag.Until(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))},
		"both":                  {dag.Within(1), dag.Until(time.Unix(1, 0))},
		"twice":                 {dag.Within(1), dag.Within(2)},
		"a default for ever":    {dag.OrDefault("x")},
		"a default that is bad": {dag.Within(1), dag.OrDefault(7)},
		"a default that is not": {dag.Within(1), dag.OrDefault(func() {})},
	} {
		var w witness
		var store memory.Store
		d := process(t, askTimed(t, &w, closedChan(), options...), &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err) // its failure is followed
		if failed := kinds(readLog(t, &store), checkpoint.AttemptFailed, checkpoint.Interrupted); len(failed) != 3 || slices.ContainsFunc(failed, func(k string) bool { return strings.HasPrefix(k, "interrupted") }) {
			t.Errorf("%s: the log has %v", name, failed)
		}
	}
}

// Policy.Retry says which errors are worth another attempt. One that was returned because a
// question has no answer is none of them, so that what Retry makes of it, here a panic, is not the
// visit's end.
func TestARetryIsNotAskedAboutAQuestion(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("tale")
	ask := dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "Shall I go on?")
		return err
	}).With(dag.Policy{Attempts: 2, Retry: func(err error) bool { panic(err) }})
	dag.End(b, ask.Failed())
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Start(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "ask")
}

// A visit that asks and then panics has failed: only what it returns is not looked at.
func TestAPanicBehindAQuestionFails(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("tale")
	dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
		_, _ = dag.Ask[bool](ctx, "sure", "Shall I go on?")
		panic("no")
	})
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Start(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "ask")
}

// A question that is too large is refused each time that an attempt asks it: the visit waits for
// nothing.
func TestAQuestionThatIsRefusedStaysSo(t *testing.T) {
	b := dag.New[Tale]("large")
	dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error {
		for range 2 {
			_, err := dag.Ask[string](ctx, "q", strings.Repeat("x", 2000))
			if limit := (*dispatcher.LimitError)(nil); !errors.As(err, &limit) {
				return fmt.Errorf("it was asked: %w", err)
			}
		}
		return errWeather
	})
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 1 << 10}})
	res, err := d.Run(t.Context(), run, nil)
	if rests(t, res, err, checkpoint.StatusFailed, "asks"); !errors.Is(err, errWeather) {
		t.Errorf("Run = %v", err)
	}
}
