package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A color is one of a few words, and panics where a programmer forgot something.
type color string

func (c color) MarshalText() ([]byte, error) { return []byte(c), nil }

func (c *color) UnmarshalText(text []byte) error {
	switch *c = color(text); *c {
	case "red", "blue":
		return nil
	case "grey":
		panic(errFire)
	}
	return fmt.Errorf("%q is no color", text)
}

// whichOne asks for an A beside another node.
func whichOne[A any](t *testing.T, w *witness, options ...dag.AskOption) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	a := dag.Step(b, "a", w.sees(nil))
	dag.Step(b, "beside", w.sees(nil), a)
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		x, err := dag.Ask[A](ctx, "which", "which one?", options...)
		if err != nil {
			return err
		}
		s.Said.Append(fmt.Sprint(x))
		return nil
	}, a)
	return frozen(t, b)
}

// What a type with its own unmarshaller can't decode is refused when it is given, by whoever knows
// the type: for those of the standard library that is everybody.
func TestAskRefusesWhatCanNotBeDecoded(t *testing.T) {
	t.Run("color", func(t *testing.T) {
		refusesAnswers[color](t, false, []any{"green", "grey", 4, ""}, "red")
	})
	t.Run("list of colors", func(t *testing.T) {
		refusesAnswers[[]color](t, false, []any{[]string{"red", "green"}}, []string{"red"})
	})
	t.Run("color, within an hour", func(t *testing.T) {
		refusesAnswers[color](t, false, []any{"green", "grey"}, "red", dag.Within(time.Hour))
	})
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("time, elsewhere=%t", elsewhere), func(t *testing.T) {
			refusesAnswers[time.Time](t, elsewhere, []any{"tomorrow", 4, "", "2026-13-01T00:00:00Z"}, "2026-01-01T00:00:00Z")
		})
	}
}

func refusesAnswers[A any](t *testing.T, elsewhere bool, wrong []any, right any, options ...dag.AskOption) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, whichOne[A](t, &w, options...), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	if elsewhere {
		d = process(t, whichOne[A](t, &w, options...), &store, dispatcher.Options{})
	}
	for _, answer := range wrong {
		if err := d.Answer(t.Context(), run, "", answer); !errors.Is(err, dispatcher.ErrAnswerType) {
			t.Errorf("Answer(%v) = %v, want ErrAnswerType", answer, err)
		}
	}
	if err := d.Answer(t.Context(), run, "", right); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "beside")
}

// Who has never asked takes any JSON for a type that he does not know. If it can't be decoded it is
// no answer: it is asked for again, and nothing has to be taken back.
func TestAskAgainForWhatCanNotBeDecoded(t *testing.T) {
	var w witness
	var store memory.Store
	g := whichOne[color](t, &w)
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	for _, answer := range []string{"green", "grey"} {
		d := process(t, g, &store, dispatcher.Options{})
		if err := d.Answer(t.Context(), run, "", answer); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		if len(res.Interrupts) != 1 || res.Interrupts[0].Key != "which" {
			t.Fatalf("it waits for %v", res.Interrupts)
		}
	}
	if err := process(t, g, &store, dispatcher.Options{}).Answer(t.Context(), run, "", "red"); err != nil {
		t.Fatal(err)
	}
	res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "beside")
	says(t, res.State, "a", "beside", "red")
}

// A default has to be an answer: else the visit would ask for ever.
func TestAskDefaultHasToBeDecoded(t *testing.T) {
	quiet(t)
	var w witness
	d := process(t, whichOne[color](t, &w, dag.Within(time.Hour), dag.OrDefault("green")), new(memory.Store), dispatcher.Options{})
	_, err := d.Run(t.Context(), run, nil)
	var bad *dag.ArgumentError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `"green" is no color`) {
		t.Errorf("Run() = %v, want an ArgumentError about the default", err)
	}
}

// A message that an earlier version took, of a type that is looked at more closely now, was
// acknowledged: it is drained with all that it says, and what can't be decoded is asked for again.
func TestAskAgainForWhatAnEarlierVersionTook(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("line")
	says := func(ctx context.Context, s *Tale, key string) error {
		word, err := dag.Ask[string](ctx, key, "what?")
		s.Said.Append(word)
		return err
	}
	dag.Step(b, "when", func(ctx context.Context, s *Tale) error {
		_, err := dag.Ask[time.Time](ctx, "when", "when?")
		return err
	})
	dag.Step(b, "what", func(ctx context.Context, s *Tale) error { return says(ctx, s, "what") })
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "when", "what")
	var data []string
	for _, i := range res.Interrupts {
		data = append(data, fmt.Sprintf(`{"interrupt":%q,"how":%q,"value":"tomorrow"}`, i.ID, checkpoint.AnswerGiven))
	}
	post := checkpoint.Post{ID: "answer:000000000001", Kind: "answer", Data: []byte(`{"replies":[` + strings.Join(data, ",") + `]}`)}
	if err := store.Post(t.Context(), run, post); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "when")
	if err := d.Answer(t.Context(), run, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}
