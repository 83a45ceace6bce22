package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Moved is true of a call from a cursor at which the run no longer stands, be it that it has an
// entry more, or that another run has its id meanwhile.
func TestMovedFindsARunThatStandsElsewhere(t *testing.T) {
	ctx := t.Context()
	for name, of := range map[string]struct {
		since func(store *memory.Store, d *dispatcher.Dispatcher[parcel]) error
		want  error
	}{
		"it stands there": {func(*memory.Store, *dispatcher.Dispatcher[parcel]) error { return nil }, nil},
		"an entry more": {func(_ *memory.Store, d *dispatcher.Dispatcher[parcel]) error {
			return d.Note(ctx, "r", "shop.seen", nil)
		}, dispatcher.ErrStaleCursor},
		"another run": {func(store *memory.Store, d *dispatcher.Dispatcher[parcel]) error {
			return errors.Join(store.Delete(ctx, "r"), d.Create(ctx, "r", nil))
		}, checkpoint.ErrCursor},
		"no run": {func(store *memory.Store, _ *dispatcher.Dispatcher[parcel]) error {
			return store.Delete(ctx, "r")
		}, dispatcher.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			d := movable(t, &store, dispatcher.Options{}, func(ctx context.Context) error {
				_, err := dag.Ask[bool](ctx, "sure", nil)
				return err
			})
			seen, err := d.Run(ctx, "r", nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			if err := of.since(&store, d); err != nil {
				t.Fatal(err)
			}
			moved := of.want == dispatcher.ErrStaleCursor || of.want == checkpoint.ErrCursor
			err = d.Note(ctx, "r", "shop.read", nil, dispatcher.From(seen.Cursor))
			if !errors.Is(err, of.want) || dispatcher.Moved(err) != moved {
				t.Errorf("Note = %v, and Moved = %t", err, dispatcher.Moved(err))
			}
			if err == nil {
				return
			}
			_, err = d.Continue(ctx, "r", dispatcher.From(seen.Cursor))
			if !errors.Is(err, of.want) || dispatcher.Moved(fmt.Errorf("wrapped: %w", err)) != moved {
				t.Errorf("Continue = %v, and Moved = %t", err, dispatcher.Moved(err))
			}
		})
	}
}

// Nodes, hooks and Options.Revalidate may return the same errors, and have said nothing of the
// cursor by that.
func TestMovedIsNotWhatUserCodeReturns(t *testing.T) {
	for _, why := range []error{dispatcher.ErrStaleCursor, checkpoint.ErrCursor} {
		returns := func(context.Context) error { return why }
		stale := func(ctx context.Context) error {
			return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
		}
		for name, of := range map[string]struct {
			o    dispatcher.Options
			body func(context.Context) error
		}{
			"node": {dispatcher.Options{}, returns},
			"hook": {dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { return why }}}, returns},
			"what is asked of a dependency": {
				dispatcher.Options{InterruptBefore: []string{"next"}, Revalidate: func(context.Context, dag.Dependency) error { return why }}, stale,
			},
		} {
			var store memory.Store
			d := movable(t, &store, of.o, of.body)
			_, err := d.Run(t.Context(), "r", nil)
			if errors.Is(err, dispatcher.ErrInterrupted) {
				_, err = d.Resume(t.Context(), "r")
			}
			if !errors.Is(err, why) || dispatcher.Moved(err) {
				t.Errorf("%s: %v, and Moved = %t", name, err, dispatcher.Moved(err))
			}
		}
	}
	if dispatcher.Moved(nil) {
		t.Error("Moved of no error")
	}
}

func movable(t *testing.T, store checkpoint.Store, o dispatcher.Options, body func(context.Context) error) *dispatcher.Dispatcher[parcel] {
	t.Helper()
	b := dag.New[parcel]("movable")
	step := dag.Step(b, "step", func(ctx context.Context, _ *parcel) error { return body(ctx) })
	dag.Step(b, "next", func(context.Context, *parcel) error { return nil }, step)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(g, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
