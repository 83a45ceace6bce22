package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// An interview is what the nodes of the tests of questions write to.
type interview struct {
	Said state.List[string]
}

// asksOnce returns a graph of a node that asks, and of one that follows it.
func asksOnce(t *testing.T, handle bool, options ...dag.AskOption) *dag.Graph[interview] {
	b := dag.New[interview]("interview")
	asks := dag.Step(b, "asks", func(ctx context.Context, s *interview) error {
		word, err := dag.Ask[string](ctx, "word", "which?", options...)
		info, _ := dag.Reply(ctx, "word")
		if handle && (errors.Is(err, dag.ErrExpired) || errors.Is(err, dag.ErrSkipped)) {
			err = nil
		}
		s.Said.Append(string(info.How) + " " + word)
		return err
	})
	dag.Step(b, "last", func(context.Context, *interview) error { return nil }, asks)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Questions that are skipped, and that expire with a default or without one, are tried over
// crashes as answered ones are.
func TestCrashOverQuestionsThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		answer  any
		options []dag.AskOption
		handle  bool
	}{
		"answered":        {"this", []dag.AskOption{dag.Within(time.Hour)}, false},
		"skipped":         {dag.ErrSkipped, nil, true},
		"expired":         {dag.ErrExpired, []dag.AskOption{dag.Within(time.Hour)}, true},
		"default":         {dag.ErrExpired, []dag.AskOption{dag.Within(time.Hour), dag.OrDefault("none")}, false},
		"expired, failed": {dag.ErrExpired, []dag.AskOption{dag.Within(time.Hour)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pawltest.Crash(t, asksOnce(t, c.handle, c.options...), nil, pawltest.Answers(map[string]any{"word": c.answer}))
			})
		})
	}
}

// A process that dies between two answers changes nothing: the next one gives the other before it
// goes on, also where a visit that was answered fails and the run would rest with the other
// question open.
func TestCrashBetweenTwoAnswers(t *testing.T) {
	b := dag.New[interview]("interview")
	ask := func(name string, then error) {
		dag.Step(b, name, func(ctx context.Context, s *interview) error {
			word, err := dag.Ask[string](ctx, name, "which?")
			if err != nil {
				return err
			}
			s.Said.Append(word)
			return then
		})
	}
	ask("first", errors.New("sold out"))
	ask("second", nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	pawltest.Crash(t, g, nil, pawltest.Answers(map[string]any{"first": "this", "second": "that"}))
}

// A log whose questions ended in every way agrees with its graph, however long ago that was.
func TestReplayOfQuestionsThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[interview]("interview")
		ask := func(name string, options ...dag.AskOption) dag.Node[interview] {
			return dag.Step(b, name, func(ctx context.Context, s *interview) error {
				word, err := dag.Ask[string](ctx, "word", "which?", options...)
				info, ended := dag.Reply(ctx, "word")
				if !ended {
					return err
				}
				s.Said.Append(string(info.How) + " " + word)
				return nil
			})
		}
		given := ask("given", dag.Until(time.Now().Add(time.Hour)))
		slow := dag.Step(b, "slow", func(ctx context.Context, s *interview) error {
			s.Said.Append("slow")
			<-time.After(3 * time.Hour)
			return nil
		})
		dag.Step(b, "last", func(context.Context, *interview) error { return nil },
			given, slow, ask("expired", dag.Within(time.Hour)), ask("default", dag.Within(2*time.Hour), dag.OrDefault("none")), ask("skipped"))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var store memory.Store
		d, err := dispatcher.New(g, &store, dispatcher.Options{Parallel: 8})
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends when it has answered
			<-time.After(time.Minute)
			res, err := d.State(t.Context(), "order/7")
			for _, i := range res.Interrupts {
				switch i.Path {
				case "given":
					err = errors.Join(err, d.Answer(t.Context(), "order/7", i.ID, "this"))
				case "skipped":
					err = errors.Join(err, d.Skip(t.Context(), "order/7", i.ID))
				}
			}
			if err != nil {
				t.Error(err)
			}
		}()
		res, err := d.Run(t.Context(), "order/7", nil)
		if err != nil || res.State.Said.Len() != 5 {
			t.Fatalf("the run said %q, %v", res.State.Said.Slice(), err)
		}
		file := written(t, &store)
		<-time.After(24 * time.Hour)
		pawltest.Replay(t, file, g)
	})
}

// Answers that a question can't end with are told.
func TestCrashAnswersThatCannotBe(t *testing.T) {
	for want, answer := range map[string]error{
		"is to expire, and never does": dag.ErrExpired,
		"which can't end with":         errors.New("something else"),
	} {
		told := &heard{}
		pawltest.Crash(told, asksOnce(t, true), nil, pawltest.Answers(map[string]any{"word": answer}))
		told.expect(t, want)
	}
}

// A question that has other words each time that its node runs is never answered: that is a
// finding, and no trial goes on for ever.
func TestCrashOfAQuestionInOtherWords(t *testing.T) {
	asked := 0
	b := dag.New[interview]("words")
	dag.Step(b, "ask", func(ctx context.Context, _ *interview) error {
		asked++
		_, err := dag.Ask[string](ctx, "word", fmt.Sprintf("which? (%d)", asked))
		return err
	})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	told := &heard{}
	pawltest.Crash(told, g, nil, pawltest.Answers(map[string]any{"word": "x"}))
	told.expect(t, "in other words each time")
}
