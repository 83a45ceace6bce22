package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// observedAtRest makes calls at a run that rests because its only node asksAWord, and returns what
// the observer was told of them.
func observedAtRest(t *testing.T, store checkpoint.Store, calls ...func(context.Context, *dispatcher.Dispatcher[Tale]) error) []string {
	t.Helper()
	var seen eventsSeen
	d := process(t, solitary(t, asksAWord), store, dispatcher.Options{Observe: seen.observe})
	if err := eventsRun(t.Context(), d); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	before := len(seen.of())
	for _, call := range calls {
		if err := call(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	told := seen.of()
	toldAlike(t, slices.DeleteFunc(told, func(e dispatcher.Event) bool { return e.Live }), d.Events(t.Context(), run, dispatcher.Listen{}), readLog(t, store))
	return eventsTold(seen.of()[before:])
}

func asksAWord(ctx context.Context, _ *Tale) error {
	_, err := dag.Ask[string](ctx, "k", "?")
	return err
}

// What a call writes to a run at rest the observer is told before it returns, once, as the log
// tells it. A cancel is no end of a call that was at work on the run, and is told by the log alone.
func TestObserverOfARunAtRest(t *testing.T) {
	type calls = func(context.Context, *dispatcher.Dispatcher[Tale]) error
	edit := func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		return d.Edit(ctx, run, func(s *Tale) { s.Word.Set("other") }, dispatcher.EditOptions{Reason: "a slip"}, dispatcher.Author("ann"))
	}
	note := func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		return d.Note(ctx, run, "shop.n", 1, dispatcher.Message("once"))
	}
	tag := func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error { return d.Tag(ctx, run, "", "here") }
	rewind := func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
		return d.Rewind(ctx, run, "0", dispatcher.RewindOptions{})
	}
	cancel := func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error { return d.Cancel(ctx, run, nil) }
	for name, c := range map[string]struct {
		calls []calls
		want  []string
	}{
		"Edit": {[]calls{edit}, []string{"tale@5: state edited by ann: a slip"}},
		"an Edit of nothing": {[]calls{func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			return d.Edit(ctx, run, func(*Tale) {}, dispatcher.EditOptions{})
		}}, nil},
		"Note, twice":            {[]calls{note, note}, []string{"tale@5: noted shop.n 1"}},
		"Tag, twice":             {[]calls{tag, tag}, []string{"tale@5: checkpoint tagged here at 1"}},
		"Rewind":                 {[]calls{rewind}, []string{"tale@5: run rewound to tale@1"}},
		"Answer":                 {[]calls{eventsAnswer("yes")}, []string{"tale@5: interrupt answered \"yes\""}},
		"Cancel":                 {[]calls{cancel}, nil},
		"a note behind a Cancel": {[]calls{cancel, note}, []string{"tale@6: noted shop.n 1"}},
		"what goes on after them": {[]calls{tag, eventsAnswer("yes"), eventsRun}, []string{
			"tale@5: checkpoint tagged here at 1", "tale@6: interrupt answered \"yes\"", "tale: appended 1", "tale@7: run resumed", "tale: visit started q",
			"tale: appended 3", "tale@8: visit done q", "tale@9: superstep ended @1", "tale@10: run rested completed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if told := observedAtRest(t, new(memory.Store), c.calls...); !slices.Equal(told, c.want) {
				t.Errorf("the observer was told %q, want %q", told, c.want)
			}
		})
	}
}

// So it is told by whoever says what came of an effect in doubt, whether its visit waits to be told
// or has failed.
func TestObserverOfAResolution(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		var side doubtSide
		var seen eventsSeen
		store := new(memory.Store)
		doubtful(t, &side, store, dag.InDoubt(doubt))
		d := process(t, effectNode(t, side.pay(dag.InDoubt(doubt)), dag.Policy{}), store, dispatcher.Options{Observe: seen.observe})
		if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		if told := eventsTold(seen.of()); len(told) != 1 || seen.all[0].Kind != dispatcher.EffectEnded || seen.all[0].Outcome != "resolved" || seen.all[0].By != "Ada" {
			t.Errorf("%s: the observer was told %q", doubt, told)
		}
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if told := seen.of(dispatcher.EffectEnded); len(told) != 1 {
			t.Errorf("%s: the end of the effect was told %d times", doubt, len(told))
		}
	}
}

// An edit that brings the run to another graph tells of both, the edit as of that graph.
func TestObserverOfAMigratingEdit(t *testing.T) {
	var seen eventsSeen
	store := new(memory.Store)
	was := eventsLine(asksAWord)(t)
	_ = eventsRun(t.Context(), process(t, was, store, dispatcher.Options{}))
	b := dag.New[Tale]("line")
	dag.Step(b, "z", asksAWord)
	d := process(t, frozen(t, b), store, dispatcher.Options{Observe: seen.observe, Migrations: []dispatcher.Migration{
		{Name: "renamed", From: was.Digest(), Nodes: map[string]string{"a": "z"}},
	}})
	if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("other") }, dispatcher.EditOptions{}); err != nil {
		t.Fatal(err)
	}
	var kinds []dispatcher.EventKind
	for _, e := range seen.of() {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Equal(kinds, []dispatcher.EventKind{dispatcher.GraphMigrated, dispatcher.StateEdited}) {
		t.Errorf("the observer was told %q", eventsTold(seen.of()))
	}
	toldAlike(t, seen.of(), d.Events(t.Context(), run, dispatcher.Listen{}), readLog(t, store))
}

// The observer is told while the run is held still, so that nobody has gone on with it: it comes
// before what they tell. One that panics has seen it, and what was written stays.
func TestObserverIsToldBeforeTheRunIsLetGo(t *testing.T) {
	store := new(memory.Store)
	var owner string
	d := process(t, solitary(t, asksAWord), store, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.Noted {
			info, _ := store.Stat(context.Background(), run)
			owner = info.Owner
			panic("the observer")
		}
	}})
	_ = eventsRun(t.Context(), d)
	if err := d.Note(t.Context(), run, "shop.n", 1); err != nil || owner == "" {
		t.Errorf("Note: %v; the run was held by %q when its observer was told", err, owner)
	}
	if notes := notesOf(t, store); len(notes) != 1 {
		t.Errorf("the log has %q", notes)
	}
	if info, err := store.Stat(t.Context(), run); err != nil || info.Owner != "" {
		t.Errorf("the run is held by %q, %v", info.Owner, err)
	}
}

// One that ends the goroutine ends that of the call, as a function of the caller's own would, and
// holds nothing.
func TestObserverOfARunAtRestEndsTheGoroutine(t *testing.T) {
	store := new(memory.Store)
	d := process(t, solitary(t, asksAWord), store, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.Noted {
			runtime.Goexit()
		}
	}})
	_ = eventsRun(t.Context(), d)
	ended := make(chan struct{})
	go func() { // the test waits for it
		defer close(ended)
		t.Errorf("Note returned %v", d.Note(t.Context(), run, "shop.n", 1))
	}()
	<-ended
	if info, err := store.Stat(t.Context(), run); err != nil || info.Owner != "" || len(notesOf(t, store)) != 1 {
		t.Errorf("the run is held by %q, %v, and has the notes %q", info.Owner, err, notesOf(t, store))
	}
}

// Of what did not become durable, or perhaps did not, nothing is told.
func TestObserverOfAnAppendThatFails(t *testing.T) {
	for _, broken := range []error{errors.New("the disk is broken"), checkpoint.ErrCommitUnknown} {
		var seen eventsSeen
		inner := new(memory.Store)
		g := solitary(t, asksAWord)
		_ = eventsRun(t.Context(), process(t, g, inner, dispatcher.Options{}))
		d := process(t, g, &tampered{Store: inner, before: fails("Append", 1, broken)}, dispatcher.Options{Observe: seen.observe})
		err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("other") }, dispatcher.EditOptions{})
		if told := eventsTold(seen.of()); !errors.Is(err, broken) || len(told) > 0 {
			t.Errorf("Edit: %v, and the observer was told %q", err, told)
		}
	}
}

// Answers that were left with the run, and are too many for one append, are told by the call that
// goes on, each once and before it tells that it does.
func TestObserverOfAnswersThatWereLeft(t *testing.T) {
	const items = 600
	var seen eventsSeen
	store := new(memory.Store)
	d := process(t, crowd(t, items), store, dispatcher.Options{Observe: seen.observe})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, res.Cursor.Visits...)
	postAnswers(t, store, res.Interrupts)
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	follows(t, slices.DeleteFunc(seen.of(), func(e dispatcher.Event) bool { return e.Live }), readLog(t, store), "the observer")
}
