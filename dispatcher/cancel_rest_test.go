package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// says reports whether an append says something of this kind.
func (c call) says(k checkpoint.Kind) bool {
	return c.method == "Append" && slices.ContainsFunc(c.entries, func(e checkpoint.Entry) bool { return e.Kind == k })
}

// isCancelledByAda checks that the run is found cancelled, and that nothing waits to be drained.
func isCancelledByAda(t *testing.T, d *dispatcher.Dispatcher[Tale], store checkpoint.Store) {
	t.Helper()
	if res, err := d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
		t.Errorf("the run is %s, %v, want it cancelled", res.Status, err)
	}
	if events, _ := cancelsTold(t, d); !slices.Equal(events, []string{"Ada: enough"}) {
		t.Errorf("events tell %q", events)
	}
	nothingIsPosted(t, store)
}

// Who cancels a run while it comes to rest, before or behind the append that says so, finds it cancelled, and so does who
// has run it.
func TestCancelWhileARunComesToRest(t *testing.T) {
	for name, c := range map[string]struct {
		kind checkpoint.Kind
		body part
		o    dispatcher.Options
	}{
		"interrupted": {checkpoint.Waiting, nil, dispatcher.Options{InterruptBefore: []string{"b"}}},
		"failed":      {checkpoint.Failed, func(context.Context, *Tale) error { return errWeather }, dispatcher.Options{}},
	} {
		for _, behind := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " before", true: " behind"}[behind], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					var inner memory.Store
					var by *dispatcher.Dispatcher[Tale]
					first := true
					cancels := func(c call, k checkpoint.Kind) {
						if !c.says(k) || !first {
							return
						}
						first = false
						if err := by.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
							t.Error(err)
						}
					}
					store := &tampered{Store: &inner}
					if behind {
						store.after = func(is call, err error) error { cancels(is, c.kind); return err }
					} else {
						store.before = func(_ context.Context, is call) error { cancels(is, c.kind); return nil }
					}
					g := line(t, &w, c.body)
					by = process(t, g, &inner, dispatcher.Options{})
					d := process(t, g, store, c.o)
					res, err := d.Run(t.Context(), run, nil)
					rests(t, res, err, checkpoint.StatusCancelled, "b")
					var rest *dispatcher.Rest
					if !errors.As(err, &rest) || rest.By != "Ada" {
						t.Errorf("the call returned %v, want it to name who cancelled it", err)
					}
					isCancelledByAda(t, d, &inner)
					if c.body == nil {
						res, err = d.Resume(t.Context(), run)
						completes(t, res, err)
					}
				})
			})
		}
	}
}

// A run that rests and is kept by its OnEnd, or by a node that was abandoned, is cancelled when that lets go of it.
func TestCancelOfARunThatIsKept(t *testing.T) {
	t.Run("OnEnd", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			var d *dispatcher.Dispatcher[Tale]
			o := dispatcher.Options{InterruptBefore: []string{"b"}}
			o.Hooks.OnEnd = func(ctx context.Context, _ dispatcher.End) error {
				return d.Cancel(ctx, run, errors.New("enough"), dispatcher.Author("Ada"))
			}
			d = process(t, line(t, &w, nil), &store, o)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			if len(res.Warnings) > 0 {
				t.Errorf("warnings %q", res.Warnings)
			}
			isCancelledByAda(t, d, &store)
		})
	})
	t.Run("a node", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var n stubborn
			var store memory.Store
			d := process(t, line(t, &w, n.part), &store, dispatcher.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := d.Run(ctx, run, nil)
			rests(t, res, err, checkpoint.StatusTimedOut, "b")
			if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			lasts(2 * time.Minute)
			isCancelledByAda(t, d, &store)
		})
	})
}

// A cancel of a run at rest that nobody has drained, since a process died, is drained by who comes next: the log
// tells that the run was cancelled, and a call that goes on does so from there.
func TestCancelThatIsLeftAtRest(t *testing.T) {
	quiet(t)
	leave := func(t *testing.T) (d *dispatcher.Dispatcher[Tale], store *memory.Store, at checkpoint.Cursor) {
		var w witness
		store = new(memory.Store)
		d = process(t, line(t, &w, nil), store, dispatcher.Options{InterruptBefore: []string{"b"}})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		for _, id := range []string{"cancel:1", "cancel:2"} {
			p := checkpoint.Post{ID: id, Kind: "cancel", Data: []byte(`{"cause":"enough","by":"Ada"}`)}
			if err := store.Post(t.Context(), run, p); err != nil {
				t.Fatal(err)
			}
		}
		return d, store, res.Cursor
	}
	t.Run("Note", func(t *testing.T) {
		d, store, _ := leave(t)
		if err := d.Note(t.Context(), run, "shop.n", 1); err != nil {
			t.Fatal(err)
		}
		isCancelledByAda(t, d, store)
	})
	t.Run("Resume", func(t *testing.T) {
		d, store, at := leave(t)
		_, err := d.Resume(t.Context(), run, dispatcher.From(at))
		if !errors.Is(err, dispatcher.ErrStaleCursor) {
			t.Errorf("Resume from where the run stood before = %v, want ErrStaleCursor", err)
		}
		isCancelledByAda(t, d, store)
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
	})
	t.Run("another Resume", func(t *testing.T) {
		d, store, _ := leave(t)
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if events, _ := cancelsTold(t, d); !slices.Equal(events, []string{"Ada: enough"}) {
			t.Errorf("events tell %q", events)
		}
		nothingIsPosted(t, store)
	})
}
