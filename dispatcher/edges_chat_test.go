package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// chatty is a graph whose node repeats what was said last.
func chatty(t *testing.T) *dag.Graph[Tale] {
	b := dag.New[Tale]("chatty")
	dag.Step(b, "reply", func(ctx context.Context, s *Tale) error {
		s.Said.Append(dag.Key(ctx) + " " + s.Word.Get())
		return nil
	})
	return frozen(t, b)
}

func word(text string) func(*Tale) { return func(s *Tale) { s.Word.Set(text) } }

// One line takes whatever is said: OrStart has the first turn begin the run, with what it is
// opened with, and every later one is a turn as without it.
func TestEdgesTurnOrStart(t *testing.T) {
	quiet(t)
	var store memory.Store
	ctx := t.Context()
	for i, text := range []string{"one", "two", "three"} {
		d := process(t, chatty(t), &store, dispatcher.Options{}) // each in a process of its own
		res, err := d.Turn(ctx, run, word(text), dispatcher.OrStart(), dispatcher.Labels(map[string]string{"who": "ada"}))
		completes(t, res, err)
		if res.Turn != i+1 || res.Labels["who"] != "ada" {
			t.Errorf("turn %d with the labels %v, want %d", res.Turn, res.Labels, i+1)
		}
		if i == 2 {
			says(t, res.State, "tale/reply one", "tale/2/reply two", "tale/3/reply three")
		}
	}
	var alone memory.Store
	if _, err := process(t, chatty(t), &alone, dispatcher.Options{}).Start(ctx, run, word("one")); err != nil {
		t.Fatal(err)
	}
	begun, started := readLog(t, &store)[:5], readLog(t, &alone)
	all := []checkpoint.Kind{checkpoint.Opened, checkpoint.Entered, checkpoint.Done, checkpoint.Superstep, checkpoint.Completed}
	if got := kinds(begun, all...); !slices.Equal(got, kinds(started, all...)) {
		t.Errorf("Turn has begun the run with %q, Start with %q", got, kinds(started, all...))
	}
}

// The same as a stream: nothing of it is missing, from the opening on.
func TestEdgesStreamTurnOrStart(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := process(t, chatty(t), &store, dispatcher.Options{})
	for _, first := range []dispatcher.EventKind{dispatcher.RunStarted, dispatcher.TurnBegun} {
		var got []dispatcher.EventKind
		var said []string
		for item, err := range d.StreamTurn(t.Context(), run, word("hello"), dispatcher.Listen{}, dispatcher.OrStart()) {
			if err != nil {
				t.Fatal(err)
			}
			if item.Result != nil {
				said = item.Result.State.Said.Slice()
				break
			}
			got = append(got, item.Event.Kind)
		}
		if !slices.Contains(got, first) || len(said) == 0 {
			t.Errorf("the stream told %v and ended with %q, want %s in it", got, said, first)
		}
	}
	for _, err := range d.StreamTurn(t.Context(), "nobody", word("hello"), dispatcher.Listen{}) {
		if !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("StreamTurn of no run without OrStart: %v", err)
		}
	}
}

// OrStart changes nothing about a run that is there, and is refused by calls that can't mean it.
func TestEdgesOrStartRefused(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	ctx := t.Context()
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: []string{"b"}})
	unchanged(t, &store, run, func() {
		var option *dispatcher.OptionError
		if _, err := d.Run(ctx, run, nil, dispatcher.OrStart()); !errors.As(err, &option) || option.Option != "OrStart" {
			t.Errorf("Run returned %v", err)
		}
		if _, err := d.Turn(ctx, run, nil, dispatcher.OrStart(), dispatcher.OrStart()); !errors.As(err, &option) {
			t.Errorf("Turn with it twice returned %v", err)
		}
		if _, err := d.Turn(ctx, run, func(*Tale) { panic("no") }, dispatcher.OrStart()); err == nil {
			t.Error("the input of a new run broke, and Turn returned nil")
		}
	})
	res, err := d.Turn(ctx, run, word("one"), dispatcher.OrStart())
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	unchanged(t, &store, run, func() {
		_, err := d.Turn(ctx, run, func(*Tale) { t.Error("the input is called") }, dispatcher.OrStart())
		if !errors.Is(err, dispatcher.ErrNotCompleted) {
			t.Errorf("a turn of a run that rests: %v", err)
		}
	})
	if _, err := process(t, line(t, &w, nil), nil, dispatcher.Options{}).Turn(ctx, run, nil, dispatcher.OrStart()); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("without a store: %v", err)
	}
}

// What can't be meant is refused, and changes nothing: input that nobody wrote, a channel that
// nobody can close, and an option without what it needs.
func TestEdgesNilInputAndChannel(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := process(t, chatty(t), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, word("one"))
	completes(t, res, err)
	var option *dispatcher.OptionError
	unchanged(t, &store, run, func() {
		if err := d.Enqueue(t.Context(), run, nil); !errors.As(err, &option) || option.Option != "input" {
			t.Errorf("Enqueue of nil returned %v", err)
		}
		if _, err := d.Turn(t.Context(), run, nil, dispatcher.Drain(nil)); !errors.As(err, &option) || option.Option != "Drain" {
			t.Errorf("Turn with a nil Drain returned %v", err)
		}
	})
	_, err = dispatcher.New(chatty(t), nil, dispatcher.Options{Retention: dispatcher.Retention{Last: 1}})
	if !errors.As(err, &option) || option.Option != "Retention" {
		t.Errorf("New without a store and with Retention returns %v", err)
	}
}

// What can't return an error says in its panic which call it was and what to do.
func TestEdgesNilDispatcherPanics(t *testing.T) {
	var d *dispatcher.Dispatcher[Tale]
	for call, f := range map[string]func(){"Store": func() { d.Store() }, "Graph": func() { d.Graph() }} {
		func() {
			defer func() {
				if want := "dispatcher: " + call + ": the Dispatcher is nil: make one with New"; recover() != want {
					t.Errorf("%s of nil does not say %q", call, want)
				}
			}()
			f()
		}()
	}
}
