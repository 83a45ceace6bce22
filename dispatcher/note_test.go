package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// notesOf are the notes in the log of the run, and the visits that are done among them.
func notesOf(t *testing.T, store checkpoint.Store) []string {
	t.Helper()
	var told []string
	for e, err := range store.Read(t.Context(), run, 0, 0) {
		var n checkpoint.Note
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == checkpoint.Done:
			told = append(told, e.Path+" is done")
		case e.Kind == checkpoint.Noted && json.Unmarshal(e.Data, &n) == nil:
			told = append(told, strings.TrimSpace(strings.Join([]string{e.Path, e.ID, n.Name, string(n.Value), n.By}, " ")))
		}
	}
	return told
}

// What a node notes is in the log right before its end, if it finishes well: an attempt that
// fails, or waits for an answer, has noted nothing. The state has no part of it.
func TestNotesOfANode(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var left context.Context
		b := dag.New[Tale]("notes")
		dag.Step(b, "only", func(ctx context.Context, s *Tale) error {
			left = ctx
			if err := dag.Note(ctx, "shop.attempt", dag.Attempt(ctx)); err != nil {
				return err
			}
			if dag.Attempt(ctx) == 1 {
				return errWeather
			}
			word, err := dag.Ask[string](ctx, "word", "which?")
			if err != nil {
				return err
			}
			return errors.Join(dag.Decide(ctx, dag.Decision{ID: "w", Description: word}), dag.Note(ctx, "shop.end", nil))
		}).With(dag.Policy{Attempts: 2})
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
		if told := notesOf(t, store); len(told) > 0 {
			t.Errorf("noted %q before its end", told)
		}
		if err := d.Answer(t.Context(), run, "", "yes"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		want := []string{
			"only  shop.attempt 2", `only  record.decision {"id":"w","description":"yes","status":"accepted"}`,
			"only  shop.end null", "only is done",
		}
		if told := notesOf(t, store); !slices.Equal(told, want) {
			t.Errorf("the log tells %q", told)
		}
		if err := dag.Note(left, "shop.late", 1); !errors.Is(err, dag.ErrVisitOver) {
			t.Errorf("a note of a visit that is over: %v", err)
		}
		var names []string
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == dispatcher.Noted {
				names = append(names, e.Path+" "+e.Name)
			}
			if e.Seq == res.Cursor.Seq {
				break
			}
		}
		if want := []string{"only shop.attempt", "only record.decision", "only shop.end"}; !slices.Equal(names, want) {
			t.Errorf("the events are of %q", names)
		}
	})
}

// Somebody outside makes a note of a run in any status; under an id it is made once, and with From
// only if nothing has happened since.
func TestNotesFromOutside(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		ctx := t.Context()
		var d *dispatcher.Dispatcher[Tale]
		b := dag.New[Tale]("notes")
		dag.Step(b, "only", func(ctx context.Context, s *Tale) error { // the run is live
			if err := d.Note(ctx, run, "shop.live", 1, dispatcher.Message("m")); err != nil {
				return err
			}
			if err := d.Note(ctx, run, "shop.live", 1, dispatcher.From(checkpoint.Cursor{Run: run, Seq: 1})); !errors.Is(err, checkpoint.ErrBusy) {
				t.Errorf("From of a live run: %v", err)
			}
			return nil
		})
		d = callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(ctx, run, nil)
		completes(t, res, err)
		for range 2 {
			if err := d.Note(ctx, run, "shop.rest", "x", dispatcher.Author("Ada"), dispatcher.Message("n")); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Note(ctx, run, "shop.live", 1, dispatcher.Message("m")); err != nil { // it was made
			t.Fatal(err)
		}
		at, err := d.State(ctx, run)
		if err != nil || at.Status != checkpoint.StatusCompleted {
			t.Fatalf("the run is %s, %v", at.Status, err)
		}
		if err := d.Note(ctx, run, "shop.cas", nil, dispatcher.From(at.Cursor)); err != nil {
			t.Fatal(err)
		}
		unchanged(t, store, run, func() {
			if err := d.Note(ctx, run, "shop.cas", nil, dispatcher.From(at.Cursor)); !errors.Is(err, dispatcher.ErrStaleCursor) {
				t.Errorf("From of a while ago: %v", err)
			}
		})
		want := []string{"only is done", "m shop.live 1", `n shop.rest "x" Ada`, "shop.cas null"}
		told := notesOf(t, store)
		slices.Sort(told[:2]) // the post may come before the end
		if slices.Sort(want[:2]); !slices.Equal(told, want) {
			t.Errorf("the log tells %q, want %q", told, want)
		}
		if res, err = d.Run(ctx, run, nil); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("the run is %s, %v", res.Status, err)
		}
		sameMachine(t, d, run)
	})
}

// A note that is refused changes nothing.
func TestNotesRefused(t *testing.T) {
	var store memory.Store
	d := timeLine(t, &store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 100}})
	var option *dispatcher.OptionError
	var limit *dispatcher.LimitError
	unchanged(t, &store, run, func() {
		for name, value := range map[string]any{"": 1, "pawl.x": 1, "record.decision": 1, "a\x00": 1, strings.Repeat("n", 129): 1, "f": func() {}} {
			if err := d.Note(t.Context(), run, name, value); !errors.As(err, &option) {
				t.Errorf("%.20q: %v", name, err)
			}
		}
		if err := d.Note(t.Context(), run, "a", strings.Repeat("x", 100)); !errors.As(err, &limit) {
			t.Errorf("a large note: %v", err)
		}
		if err := d.Note(t.Context(), run, "a", 1, dispatcher.Because("x")); !errors.As(err, &option) || option.Option != "Because" {
			t.Errorf("a note with a reason: %v", err)
		}
		if err := d.Note(t.Context(), "nobody", "a", 1); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("a note of no run: %v", err)
		}
	})
	b := dag.New[Tale]("large")
	dag.Step(b, "only", func(ctx context.Context, s *Tale) error {
		for range 3 {
			if err := dag.Note(ctx, "a", strings.Repeat("x", 60)); err != nil {
				return err
			}
		}
		return nil
	})
	small := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 150}})
	if _, err := small.Run(t.Context(), run, nil); !errors.As(err, &limit) || limit.Limit != "visit bytes" {
		t.Errorf("many notes: %v", err)
	}
}

// Notes from outside are in the log in the order in which they were posted, whatever their names
// are.
func TestNotesInTheirOrder(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var d *dispatcher.Dispatcher[Tale]
		b := dag.New[Tale]("notes")
		dag.Step(b, "only", func(ctx context.Context, s *Tale) error {
			return errors.Join(d.Note(ctx, run, "shop.x", 1, dispatcher.Message("b")), d.Note(ctx, run, "shop.x", 2, dispatcher.Message("a")))
		})
		d = callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		told := slices.DeleteFunc(notesOf(t, store), func(line string) bool { return line == "only is done" })
		if want := []string{"b shop.x 1", "a shop.x 2"}; !slices.Equal(told, want) {
			t.Errorf("the notes are %q, want %q", told, want)
		}
	})
}

// A note that waits is one, also for who says something else under its id.
func TestANoteThatWaitsNamesNoOther(t *testing.T) {
	store := struct{ checkpoint.Store }{new(memory.Store)} // nobody at work hears of a post
	var d *dispatcher.Dispatcher[Tale]
	b := dag.New[Tale]("notes")
	dag.Step(b, "only", func(ctx context.Context, s *Tale) error {
		for range 2 {
			if err := d.Note(ctx, run, "shop.once", 1, dispatcher.Message("m")); err != nil {
				return err
			}
		}
		var option *dispatcher.OptionError
		if err := d.Note(ctx, run, "shop.once", 2, dispatcher.Message("m")); !errors.As(err, &option) || option.Option != "Message" {
			t.Errorf("another note of the same id: %v", err)
		}
		return nil
	})
	d = process(t, frozen(t, b), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if told, want := notesOf(t, store), []string{"only is done", "m shop.once 1"}; !slices.Equal(told, want) {
		t.Errorf("the log tells %q, want %q", told, want)
	}
}

// noteA is a note as it waits for who has the run.
var noteA = checkpoint.Post{ID: "note:m", Kind: "note", Data: []byte(`{"note":"shop.bill","value":"A"}`)}

// A note from a cursor takes no other note of its id away, which was acknowledged and waits.
func TestANoteFromACursorBesideOneThatWaits(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  []string
		fails bool
	}{
		"the same": {"A", []string{"only is done", `m shop.bill "A"`}, false},
		"another":  {"B", []string{"only is done", `m shop.bill "A"`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			b := dag.New[Tale]("notes")
			dag.Step(b, "only", func(context.Context, *Tale) error { return nil })
			g := frozen(t, b)
			d := process(t, g, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if err := store.Post(t.Context(), run, noteA); err != nil {
				t.Fatal(err)
			}
			var option *dispatcher.OptionError
			err = d.Note(t.Context(), run, "shop.bill", c.value, dispatcher.Message("m"), dispatcher.From(res.Cursor))
			if (err != nil) != c.fails || err != nil && !errors.As(err, &option) {
				t.Errorf("Note = %v", err)
			}
			if told := notesOf(t, &store); !slices.Equal(told, c.want) {
				t.Errorf("the log tells %q, want %q", told, c.want)
			}
			if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
				t.Errorf("posted are %+v, %v", posts, err)
			}
		})
	}
}

// Nor one that is posted in the moment between its look and its append.
func TestANoteFromACursorBesideOneThatComes(t *testing.T) {
	var inner memory.Store
	b := dag.New[Tale]("notes")
	dag.Step(b, "only", func(context.Context, *Tale) error { return nil })
	g := frozen(t, b)
	res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	store := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
		if c.method == "Append" && c.n == 1 {
			return inner.Post(ctx, run, noteA)
		}
		return nil
	}}
	err = process(t, g, store, dispatcher.Options{}).Note(t.Context(), run, "shop.bill", "B", dispatcher.Message("m"), dispatcher.From(res.Cursor))
	if err == nil {
		t.Error("Note = nil, want that another note of the id has come")
	}
	if told, want := notesOf(t, &inner), []string{"only is done", `m shop.bill "A"`}; !slices.Equal(told, want) {
		t.Errorf("the log tells %q, want %q", told, want)
	}
}
