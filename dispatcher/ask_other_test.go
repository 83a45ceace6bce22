package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// mayPay asks whether it may pay what the state says, in these words.
func mayPay[A any](t *testing.T, words string, options func(s *Tale) []dag.AskOption) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	sum := dag.Step(b, "sum", func(_ context.Context, s *Tale) error {
		s.Word.Set("80")
		return nil
	})
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		yes, err := dag.Ask[A](ctx, "ok", words+s.Word.Get(), options(s)...)
		if err != nil {
			return err
		}
		s.Said.Append(fmt.Sprint(s.Word.Get(), " ", yes))
		return nil
	}, sum)
	return frozen(t, b)
}

func noOptions(*Tale) []dag.AskOption { return nil }

// An answer is for what was asked. Where the visit asks something else by the time that it runs
// again nobody has answered that: it is asked, and not done with the answer to another question.
func TestAskAnswerIsForItsQuestion(t *testing.T) {
	about := func(s *Tale) []dag.AskOption { return []dag.AskOption{dag.About(s.Word.Get())} }
	anyway := func(*Tale) []dag.AskOption { return []dag.AskOption{dag.About(nil)} }
	for _, test := range []struct {
		name   string
		first  *dag.Graph[Tale]
		then   *dag.Graph[Tale]
		before bool // the state is edited before the answer
		behind bool // and behind it
		asks   string
	}{
		{"the same", mayPay[bool](t, "pay ", noOptions), mayPay[bool](t, "pay ", noOptions), false, false, ""},
		{"edited before", mayPay[bool](t, "pay ", noOptions), mayPay[bool](t, "pay ", noOptions), true, false, `"pay 80000"`},
		{"edited behind", mayPay[bool](t, "pay ", noOptions), mayPay[bool](t, "pay ", noOptions), false, true, `"pay 80000"`},
		{"in other words", mayPay[bool](t, "pay ", noOptions), mayPay[bool](t, "give away ", noOptions), false, false, `"give away 80"`},
		{"of another type", mayPay[bool](t, "pay ", noOptions), mayPay[int](t, "pay ", noOptions), false, false, `"pay 80"`},
		{"about the same, in other words", mayPay[bool](t, "pay ", about), mayPay[bool](t, "give away ", about), false, false, ""},
		{"about the same, and edited", mayPay[bool](t, "pay ", about), mayPay[bool](t, "pay ", about), false, true, `"pay 80000"`},
		{"about its key alone, and edited", mayPay[bool](t, "pay ", anyway), mayPay[bool](t, "give away ", anyway), false, true, ""},
		{"asked before it said what it is about", mayPay[bool](t, "pay ", noOptions), mayPay[bool](t, "give away ", about), false, false, ""},
		{"of another type, before it said", mayPay[bool](t, "pay ", noOptions), mayPay[int](t, "pay ", about), false, false, `"pay 80"`},
		{"about something, and then not", mayPay[bool](t, "pay ", about), mayPay[bool](t, "pay ", noOptions), false, false, `"pay 80"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			quiet(t)
			var store memory.Store
			d := process(t, test.first, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			edit := func(when bool) {
				if !when {
					return
				}
				if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("80000") }, dispatcher.EditOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			edit(test.before)
			if err := d.Answer(t.Context(), run, "", true); err != nil {
				t.Fatal(err)
			}
			edit(test.behind)
			d = process(t, test.then, &store, dispatcher.Options{})
			res, err = d.Run(t.Context(), run, nil)
			if test.asks == "" {
				completes(t, res, err)
				says(t, res.State, res.State.Word.Get()+" true")
				return
			}
			rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			if got := string(res.Interrupts[0].Question); got != test.asks || res.State.Said.Len() != 0 {
				t.Fatalf("it asks %s, want %s, and has said %v", got, test.asks, res.State.Said.Slice())
			}
			answer, said := any(false), res.State.Word.Get()+" false"
			if strings.HasPrefix(test.name, "of another type") {
				answer, said = 7, "80 7"
			}
			if err := d.Answer(t.Context(), run, "", answer); err != nil {
				t.Fatal(err)
			}
			res, err = process(t, test.then, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, said)
		})
	}
}

// A question that waits stays what it was in a program that wants another type. It needs no answer
// to bring the other one: to skip it is enough, and does not skip that.
func TestAskThatWaitsStaysWhatItWas(t *testing.T) {
	var store memory.Store
	d := process(t, mayPay[bool](t, "pay ", noOptions), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	was := res.Interrupts[0].ID
	d = process(t, mayPay[int](t, "pay ", noOptions), &store, dispatcher.Options{})
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if i := res.Interrupts[0]; i.ID != was || i.Want.String() != "bool" {
		t.Fatalf("what waits is %s, for a %s", i.ID, i.Want)
	}
	refused(t, d.Answer(t.Context(), run, was, 7), dispatcher.ErrAnswerType)
	if err := d.Skip(t.Context(), run, was); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if i := res.Interrupts[0]; i.ID == was || i.Want.String() != "int" {
		t.Fatalf("what waits then is %s, for a %s", i.ID, i.Want)
	}
	if err := d.Answer(t.Context(), run, "", 7); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "80 7")
}

// In one attempt a key has one question, by what it is about if it says so.
func TestAskOtherQuestionInOneAttempt(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  []dag.AskOption
		second []dag.AskOption
		other  bool
	}{
		{"other words", nil, nil, true},
		{"other words about the same", []dag.AskOption{dag.About(1)}, []dag.AskOption{dag.About(1)}, false},
		{"about something else", []dag.AskOption{dag.About(1)}, []dag.AskOption{dag.About(2)}, true},
		{"about something, and not", []dag.AskOption{dag.About(1)}, nil, true},
	} {
		var store memory.Store
		b := dag.New[Tale]("line")
		var second error
		dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			_, err := dag.Ask[bool](ctx, "ok", "this?", test.first...)
			_, second = dag.Ask[bool](ctx, "ok", "that?", test.second...)
			return err
		})
		res, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		var misuse *dag.ArgumentError
		if errors.As(second, &misuse) != test.other {
			t.Errorf("%s: the second question returned %v", test.name, second)
		}
	}
}

// An attempt that asks something else is not told who answered what was asked before under the key.
// Until it asks nobody knows that.
func TestReplyIsToWhatIsAsked(t *testing.T) {
	words := "this?"
	told, listed, before := true, 1, 0
	b := dag.New[Tale]("line")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		before = len(dag.Answers(ctx))
		_, err := dag.Ask[bool](ctx, "ok", words)
		_, told = dag.Reply(ctx, "ok")
		listed = len(dag.Answers(ctx))
		return err
	})
	var store memory.Store
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	for round, then := range []string{"that?", "that?"} {
		words = then
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		if told || listed != 0 || before != round {
			t.Errorf("an unanswered question has a reply: %t, %d listed, %d before it was asked", told, listed, before)
		}
		if err := d.Answer(t.Context(), run, "", true); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
	}
	if completes(t, res, err); !told || listed != 1 || before != 1 {
		t.Errorf("the answered question has a reply: %t, %d listed, %d before", told, listed, before)
	}
}
