package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// bills asks in each turn whether to pay, and says what it was told.
func bills(t *testing.T) *dag.Graph[Tale] {
	return effectNode(t, func(ctx context.Context, s *Tale) error {
		answer, err := dag.Ask[string](ctx, "pay", "pay it?")
		if err != nil {
			return err
		}
		s.Said.Append(answer)
		return nil
	}, dag.Policy{})
}

// An answer under an id is given once, however often it is sent, whatever the run asks by then, and
// also if the log that says so was trimmed: so a request that is sent again does not answer the
// next question.
func TestAnswerUnderAMessageIsGivenOnce(t *testing.T) {
	for _, o := range []dispatcher.Options{{}, {Retention: dispatcher.Retention{Last: 1}}} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, of dispatcher.Options) {
			of.Retention = o.Retention
			d := callsDispatcher(t, bills(t), store, of)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			for turn, message := range []string{"m1", "m2", "m3"} {
				if turn > 0 {
					res, err := d.Turn(t.Context(), run, nil)
					rests(t, res, err, checkpoint.StatusInterrupted, "pay")
					unchanged(t, store, run, func() {
						if err := d.Answer(t.Context(), run, "", "again", dispatcher.Message("m1")); err != nil {
							t.Errorf("an answer that is sent again returned %v", err)
						}
						if err := d.Skip(t.Context(), run, "", dispatcher.Message("m1")); err != nil {
							t.Errorf("a skip under its id returned %v", err)
						}
					})
				}
				if err := d.Answer(t.Context(), run, "", message, dispatcher.Message(message)); err != nil {
					t.Fatal(err)
				}
				res, err := d.Run(t.Context(), run, nil)
				completes(t, res, err)
			}
			res, err = d.State(t.Context(), run)
			completes(t, res, err)
			says(t, res.State, "m1", "m2", "m3")
			opened, err := d.Open(t.Context(), run)
			if err != nil || !slices.Equal(opened.Messages, []string{"m1", "m2", "m3"}) {
				t.Errorf("the ids of answers are %q, %v", opened.Messages, err)
			}
		})
	}
}

// Of many who send one answer at once, with different words, one counts, and all are told that it
// was taken.
func TestAnswersUnderOneMessageAtOnce(t *testing.T) {
	const many = 8
	var store memory.Store
	b := dag.New[Tale]("line")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		first, err := dag.Ask[string](ctx, "first", "first?")
		second, err2 := dag.Ask[string](ctx, "second", "second?")
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		s.Said.Append(first, second)
		return nil
	})
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	ids := []string{res.Interrupts[0].ID, res.Interrupts[1].ID}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if err := d.Answer(t.Context(), run, ids[i%2], string(rune('a'+i)), dispatcher.Message("m")); err != nil {
				t.Errorf("answer %d returned %v", i, err)
			}
		})
	}
	all.Wait()
	if got := askAnswers(t, &store, run); len(got) != 1 {
		t.Errorf("the log has the answers %v, want one", got)
	}
	res, err = d.State(t.Context(), run)
	if err != nil || res.Status != checkpoint.StatusInterrupted || len(res.Interrupts) != 1 {
		t.Errorf("wait %v, %v, want the other question", res.Interrupts, err)
	}
}

// Who says what came of an effect says it of that effect, of which it is said once whatever its id:
// one is refused, and said again without one it is refused as well, once it is in the log.
func TestAnswerOfADoubtHasNoMessage(t *testing.T) {
	var store memory.Store
	g := effectNode(t, func(ctx context.Context, s *Tale) error {
		_, err := dag.Effect(ctx, "charge", 1, func(context.Context, int) (int, error) { return 0, errWeather }, dag.InDoubt(dag.DoubtAsks))
		return err
	}, dag.Policy{})
	d := process(t, g, &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	unchanged(t, &store, run, func() {
		err := d.Answer(t.Context(), run, "", dispatcher.NotHappened("it did not"), dispatcher.Message("m"))
		refused(t, err, dispatcher.ErrAnswerType)
		advises(t, err, "of each doubt there is one")
	})
	id := res.Interrupts[0].ID
	if err := d.Answer(t.Context(), run, id, dispatcher.NotHappened("it did not")); err != nil {
		t.Fatal(err)
	}
	unchanged(t, &store, run, func() {
		refused(t, d.Answer(t.Context(), run, id, dispatcher.NotHappened("it did not")), dispatcher.ErrNotAwaited)
	})
}
