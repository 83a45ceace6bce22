package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An effect that has ended can't be done with an input that was edited since: the error and Open
// say that the way out is to go back before it, and it is.
func TestAdviceInputThatWasEdited(t *testing.T) {
	var bank effectBank
	var store memory.Store
	mended := false
	b := dag.New[Tale]("shop")
	fill := dag.Step(b, "fill", nothing[Tale])
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", s.Count.Get(), bank.pay)
		if s.Word.Set(receipt); err == nil && !mended {
			err = errWeather
		}
		return err
	}, fill)
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	dearer := func(s *Tale) { s.Count.Set(7) }
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Count.Set(5) })
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	timeEdit(t, d, dispatcher.EditOptions{}, dearer)
	mended = true
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if !errors.Is(err, dag.ErrInputChanged) {
		t.Errorf("the run failed with %v", err)
	}
	advises(t, err, "go back before it with Rewind or Fork")
	opened, err := d.Open(t.Context(), run)
	if err != nil || len(opened.Effects) != 1 {
		t.Fatalf("opened %+v, %v", opened, err)
	}
	advises(t, errors.New(opened.Effects[0].Advice), "dag.ErrInputChanged", "go back before the effect with Rewind or Fork")
	if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	timeEdit(t, d, dispatcher.EditOptions{}, dearer)
	res, err = d.Run(t.Context(), run, nil)
	if completes(t, res, err); res.State.Word.Get() != "7 for tale~1/pay#charge" {
		t.Errorf("the receipt is %q", res.State.Word.Get())
	}
}

// An answer that does not fit what a changed program asks for answers nothing: the program asks for
// what it wants.
func TestAdviceAnswerOfAnotherType(t *testing.T) {
	var store memory.Store
	res, err := process(t, effectNode(t, askFor[string], dag.Policy{}), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	d := process(t, effectNode(t, askFor[int], dag.Policy{}), &store, dispatcher.Options{})
	if err := d.Answer(t.Context(), run, "", "seven"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	if err := d.Answer(t.Context(), run, "", 7); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// askFor is a body that asks one question, whose answer is to be an A.
func askFor[A any](ctx context.Context, _ *Tale) error {
	_, err := dag.Ask[A](ctx, "many", "how many?")
	return err
}

// A Turn of a run that is not completed says how that run comes to its end: what a person has to
// answer no Resume ends. One of no run names what begins it.
func TestAdviceTurn(t *testing.T) {
	fails := func(context.Context, *Tale) error { return errWeather }
	end := dag.New[Tale]("end")
	dag.Fail(end, "never", dag.Step(end, "a", nothing[Tale]))
	for name, test := range map[string]struct {
		graph  *dag.Graph[Tale]
		before []string
		says   string
	}{
		"a question":      {effectNode(t, askFor[int], dag.Policy{}), nil, "is interrupted: Answer what it waits for, and bring it to its end with Resume"},
		"a pause":         {effectNode(t, nothing[Tale], dag.Policy{}), []string{"pay"}, "is interrupted: bring it to its end with Resume"},
		"a failure":       {effectNode(t, fails, dag.Policy{}), nil, "is failed: bring it to its end with Resume, behind an Edit if it would fail again, or go back with Rewind"},
		"an end it fails": {frozen(t, end), nil, "is failed: it would only fail again: go back with Rewind"},
	} {
		var store memory.Store
		d := process(t, test.graph, &store, dispatcher.Options{InterruptBefore: test.before})
		if _, err := d.Run(t.Context(), run, nil); err == nil {
			t.Fatalf("%s: the run is completed", name)
		}
		unchanged(t, &store, run, func() {
			_, err := d.Turn(t.Context(), run, nil)
			if !errors.Is(err, dispatcher.ErrNotCompleted) {
				t.Errorf("%s: Turn returned %v", name, err)
			}
			advises(t, err, test.says, "or leave the input with Enqueue")
		})
		_, err := d.Turn(t.Context(), "nope", nil)
		advises(t, err, "or begin it with Run, or with this Turn and OrStart")
		for _, err := range d.StreamTurn(t.Context(), "nope", nil, dispatcher.Listen{}) {
			advises(t, err, "or begin it with Run, or with this Turn and OrStart")
		}
	}
}

// A run whose state has a cell that is of another type now, as a struct with one field more, is
// refused until a Migration has a State, which may return what it gets: the error says so, without
// a Migration and with one that has none.
func TestAdviceCellOfAnotherType(t *testing.T) {
	type place struct{ Street string }
	type placeOfNow struct{ Street, Zip string }
	var store memory.Store
	old := dag.New[struct{ Place state.Value[place] }]("letters")
	dag.Step(old, "write", func(_ context.Context, s *struct{ Place state.Value[place] }) error {
		s.Place.Set(place{"Long Lane"})
		return nil
	})
	res, err := process(t, frozen(t, old), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	b := dag.New[struct{ Place state.Value[placeOfNow] }]("letters")
	dag.Step(b, "write", nothing[struct{ Place state.Value[placeOfNow] }])
	next := frozen(t, b)
	asItIs := func(_ string, s json.RawMessage) (json.RawMessage, error) { return s, nil }
	odd := func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"Place":1}`), nil }
	for name, test := range map[string]struct {
		all  []dispatcher.Migration
		says string
	}{
		"no migration":       {nil, "use the graph that made it, or a Migration with a State, which may return what it gets if that fits the new types"},
		"one with no State":  {[]dispatcher.Migration{{Name: "m"}}, `migration "m" does not fit: cell Place was a value of {Street: string} and is a value of {Street: string, Zip: string}: its State says what cells of another type hold, and may return what it gets if that fits`},
		"one with a bad one": {[]dispatcher.Migration{{Name: "m", State: odd}}, "cell Place"},
	} {
		d := process(t, next, &store, dispatcher.Options{Migrations: test.all})
		_, err := d.State(t.Context(), run)
		advises(t, err, test.says)
		if _, err = d.Turn(t.Context(), run, nil); err == nil {
			t.Fatalf("%s: the run goes on", name)
		}
		advises(t, err, test.says)
	}
	d := process(t, next, &store, migrating(dispatcher.Migration{Name: "m", State: asItIs}))
	now, err := d.State(t.Context(), run)
	if err != nil || now.State.Place.Get() != (placeOfNow{Street: "Long Lane"}) {
		t.Errorf("as it is the state is %+v, %v", now.State.Place.Get(), err)
	}
}
