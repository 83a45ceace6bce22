package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Every call of a Dispatcher that is nil, or without a context, is refused by an OptionError.
func TestEdgesNilCalls(t *testing.T) {
	quiet(t)
	var w witness
	var option *dispatcher.OptionError
	var nobody *memory.Store
	if _, err := dispatcher.New(line(t, &w, nil), nobody, dispatcher.Options{}); !errors.As(err, &option) || option.Option != "store" {
		t.Errorf("New with a nil *memory.Store returns %v", err)
	}
	var store memory.Store
	for what, d := range map[string]*dispatcher.Dispatcher[Tale]{
		"Dispatcher": nil, "context": process(t, line(t, &w, nil), &store, dispatcher.Options{}),
	} {
		ctx := t.Context()
		if what == "context" {
			ctx = nil
		}
		refused := func(call string, err error) {
			t.Helper()
			var e *dispatcher.OptionError
			if !errors.As(err, &e) || e.Option != what || !strings.Contains(err.Error(), "is nil: ") {
				t.Errorf("%s returns %v, want that the %s is nil", call, err, what)
			}
		}
		_, err := d.Run(ctx, run, nil)
		refused("Run", err)
		_, err = d.Start(ctx, run, nil)
		refused("Start", err)
		_, err = d.Resume(ctx, run)
		refused("Resume", err)
		_, err = d.Continue(ctx, run)
		refused("Continue", err)
		_, err = d.Turn(ctx, run, nil)
		refused("Turn", err)
		_, err = d.State(ctx, run)
		refused("State", err)
		_, err = d.At(ctx, run, "1")
		refused("At", err)
		_, err = dispatcher.StateOf[Tale](ctx, d, run, "")
		refused("StateOf", err)
		refused("Enqueue", d.Enqueue(ctx, run, nil))
		refused("Cancel", d.Cancel(ctx, run, nil))
		refused("Answer", d.Answer(ctx, run, "id", true))
		refused("Answers", d.Answers(ctx, run, map[string]any{"id": true}))
		refused("no Answers", d.Answers(ctx, run, nil))
		refused("Skip", d.Skip(ctx, run, "id"))
		for _, err := range d.History(ctx, run) {
			refused("History", err)
		}
		for _, err := range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
			refused("Stream", err)
		}
		for _, err := range d.Events(ctx, run, dispatcher.Listen{}) {
			refused("Events", err)
		}
	}
	if _, err := store.Stat(t.Context(), run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("a refused call has made the run: %v", err)
	}
	w.expect(t)
}

// An option says which call takes it.
func TestEdgesOptionOfAnotherCall(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{})
	_, err := d.Run(t.Context(), run, nil, dispatcher.Message("m"))
	if err == nil || !strings.Contains(err.Error(), "Message is for Enqueue, Note and answers alone") {
		t.Errorf("Run with a Message returns %v", err)
	}
	err = d.Enqueue(t.Context(), run, nil, dispatcher.Correlation("c"))
	if err == nil || !strings.Contains(err.Error(), "Correlation is not for Enqueue, which takes Message alone") {
		t.Errorf("Enqueue with a Correlation returns %v", err)
	}
}

// A denial without a reason has a text.
func TestEdgesDenyWithoutReason(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{Hooks: dispatcher.Hooks{
		Intercept: []dispatcher.Interceptor{{Name: "gate", Before: func(context.Context, dispatcher.Call) dispatcher.Ruling {
			return dispatcher.Deny("")
		}}},
	}})
	_, err := d.Run(t.Context(), run, nil)
	if err == nil || !strings.Contains(err.Error(), `interceptor "gate": denied without a reason`) {
		t.Errorf("the run ends with %v", err)
	}
}

// Readers hear that a visit has started only if its body does: not of one whose context the
// observer ends, alone or beside others.
func TestEdgesStartedIsToldOfBodiesAlone(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			b, began := dag.New[Tale]("wide"), new(atomic.Int32)
			for _, name := range []string{"a", "b", "c"}[:nodes] {
				dag.Step(b, name, func(context.Context, *Tale) error { began.Add(1); return nil })
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := process(t, frozen(t, b), &store, dispatcher.Options{Observe: func(e dispatcher.Event) {
				if e.Kind == dispatcher.VisitStarted {
					cancel()
				}
			}})
			var told []string
			for item := range d.Stream(ctx, run, nil, dispatcher.Listen{}) {
				if item.Event.Kind == dispatcher.VisitStarted {
					told = append(told, item.Event.Path)
				}
			}
			if began.Load() != 0 || len(told) != 0 {
				t.Errorf("of %d nodes %d bodies began, and readers were told of %q", nodes, began.Load(), told)
			}
			res, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			if int(began.Load()) != nodes {
				t.Errorf("%d bodies ran after the cancel, want %d", began.Load(), nodes)
			}
		})
	}
}

// At reads a run by the migration by which State reads it.
func TestEdgesAtMigratesAsState(t *testing.T) {
	quiet(t)
	var store memory.Store
	migrateWords(t, &store)
	d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
	want, err := d.State(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var last dispatcher.Checkpoint
	for c, err := range d.History(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	got, err := d.At(t.Context(), run, last.Address())
	if err != nil {
		t.Fatalf("At returns %v where State reads the run", err)
	}
	if !slices.Equal(got.State.Said.Slice(), want.State.Said.Slice()) || got.State.Word.Get() != want.State.Word.Get() {
		t.Errorf("At reads %v and %d, State %v and %d", got.State.Said.Slice(), got.State.Word.Get(),
			want.State.Said.Slice(), want.State.Word.Get())
	}
	var changed *dispatcher.GraphChangedError
	if _, err := process(t, migrateNumbers(t), &store, dispatcher.Options{}).At(t.Context(), run, last.Address()); !errors.As(err, &changed) {
		t.Errorf("without the migration At returns %v", err)
	}
}
