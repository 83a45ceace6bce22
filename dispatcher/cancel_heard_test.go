package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// postCancelBy posts what Cancel does.
func postCancelBy(t *testing.T, store checkpoint.Store, id, by string) {
	t.Helper()
	p := checkpoint.Post{ID: "cancel:" + id, Kind: checkpoint.PostCancel, Data: fmt.Appendf(nil, `{"cause":"enough","by":%q}`, by)}
	if err := store.Post(t.Context(), run, p); err != nil {
		t.Error(err)
	}
}

// drainedBy counts the entries that drain a message.
func drainedBy(t *testing.T, store checkpoint.Store, post string) (n int) {
	t.Helper()
	for _, e := range readLog(t, store) {
		if e.Post == post {
			n++
		}
	}
	return n
}

// A cancel that came when the process that had the run was dead is one of a run that has not come
// to rest: who goes on with it hears it.
func TestCancelOfARunWhoseProcessHasDied(t *testing.T) {
	quiet(t)
	var w witness
	store := new(mortal)
	d := process(t, line(t, &w, nil), store, dispatcher.Options{})
	if err := store.revive(t.Context(), 3, false); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	if err := store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	postCancelBy(t, store, "1", "Ada")
	if res, err := d.Run(t.Context(), run, nil); !errors.As(err, new(*dispatcher.Rest)) || res.Status != checkpoint.StatusCancelled {
		t.Errorf("who goes on with the run returned %v", err)
	}
	isCancelledByAda(t, d, store)
}

// Of two cancels the one that was posted first counts, whatever they are called, and whoever drains
// them.
func TestTheFirstOfTwoCancelsCounts(t *testing.T) {
	for name, drains := range map[string]func(context.Context, *dispatcher.Dispatcher[Tale]) error{
		"Note": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			return d.Note(ctx, run, "shop.n", 1)
		},
		"Resume": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			_, err := d.Resume(ctx, run)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: []string{"b"}})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			postCancelBy(t, &store, "2", "Ada")
			lasts(time.Second)
			postCancelBy(t, &store, "1", "Bob")
			if err := drains(t.Context(), d); err != nil {
				t.Fatal(name, err)
			}
			if events, _ := cancelsTold(t, d); !slices.Equal(events, []string{"Ada: enough"}) {
				t.Errorf("%s: events tell %q", name, events)
			}
			nothingIsPosted(t, &store)
		})
	}
}

// A cancel that is read twice, since something else was posted until the run has rested, is drained
// once.
func TestACancelThatIsReadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		b := dag.New[Tale]("tale")
		gate := make(chan struct{})
		waits := func(context.Context, *Tale) error { <-gate; return nil }
		dag.Step(b, "c", nothing[Tale], dag.Step(b, "a", waits), dag.Step(b, "b", waits))
		d := process(t, frozen(t, b), &store, dispatcher.Options{})
		ended := beginRun(t, d)
		postCancelBy(t, &store, "1", "Ada")
		synctest.Wait()
		for _, id := range []string{"other:1", "other:2"} {
			if err := store.Post(t.Context(), run, checkpoint.Post{ID: id, Kind: "other"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		close(gate)
		<-ended
		isCancelledByAda(t, d, &store)
		if n := drainedBy(t, &store, "cancel:1"); n != 1 {
			t.Errorf("%d entries drain the cancel, want one", n)
		}
	})
}

// The append that says how a run rests drains all cancels that it has heard; a run that has nothing
// left to do is completed all the same, and drains them too.
func TestCancelsAreDrainedWithTheRest(t *testing.T) {
	for _, more := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var inner memory.Store
			b := dag.New[Tale]("tale")
			gate := make(chan struct{})
			waits := func(context.Context, *Tale) error { <-gate; return nil }
			left, right := dag.Step(b, "a", waits), dag.Step(b, "b", waits)
			if more {
				dag.Step(b, "c", nothing[Tale], left, right)
			}
			var with []string
			store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
				if k.says(checkpoint.Cancelled) || k.says(checkpoint.Completed) {
					for _, e := range k.entries {
						if e.Post != "" {
							with = append(with, e.Post)
						}
					}
				}
				return nil
			}}
			ended := beginRun(t, process(t, frozen(t, b), store, dispatcher.Options{}))
			for _, id := range []string{"1", "2", "3"} {
				postCancelBy(t, &inner, id, "Ada")
			}
			synctest.Wait()
			close(gate)
			e := <-ended
			want := checkpoint.StatusCompleted
			if more {
				want = checkpoint.StatusCancelled
			}
			if e.res.Status != want {
				t.Errorf("the run is %s, %v, want %s", e.res.Status, e.err, want)
			}
			if all := []string{"cancel:1", "cancel:2", "cancel:3"}; !slices.Equal(with, all) {
				t.Errorf("the run is %s, and the append that says so drains %q, want %q", want, with, all)
			}
			nothingIsPosted(t, &inner)
		})
	}
}

// What is posted to a run while it is let go of: a cancel of one that was cancelled changes
// nothing, a cancel of one that rests cancels it, and leaves a note to who comes next, and notes of
// one that is completed are drained in the order of their posting.
func TestPostedWhileARunIsLetGoOf(t *testing.T) {
	note := func(t *testing.T, store checkpoint.Store, id string) {
		p := checkpoint.Post{ID: "note:" + id, Kind: checkpoint.PostNote, Data: fmt.Appendf(nil, `{"note":"shop.n","value":%q}`, id)}
		if err := store.Post(t.Context(), run, p); err != nil {
			t.Error(err)
		}
	}
	begin := func(t *testing.T, o dispatcher.Options, body part, made func(*memory.Store), posted func(t *testing.T, inner *memory.Store)) (*dispatcher.Dispatcher[Tale], *memory.Store) {
		var w witness
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
			if k.method == "Release" && k.n == 1 {
				posted(t, &inner)
			}
			return nil
		}}
		g := line(t, &w, body)
		made(&inner)
		_, _ = process(t, g, store, o).Run(t.Context(), run, nil)
		return process(t, g, &inner, dispatcher.Options{}), &inner
	}
	t.Run("cancelled", func(t *testing.T) {
		var at *memory.Store
		cancels := func(ctx context.Context, _ *Tale) error {
			postCancelBy(t, at, "1", "Ada")
			<-ctx.Done()
			return ctx.Err()
		}
		d, store := begin(t, dispatcher.Options{}, cancels, func(inner *memory.Store) { at = inner }, func(t *testing.T, inner *memory.Store) {
			postCancelBy(t, inner, "2", "Bob")
		})
		isCancelledByAda(t, d, store)
	})
	t.Run("interrupted", func(t *testing.T) {
		d, store := begin(t, dispatcher.Options{InterruptBefore: []string{"b"}}, nil, func(*memory.Store) {}, func(t *testing.T, inner *memory.Store) {
			note(t, inner, "1")
			postCancelBy(t, inner, "1", "Ada")
		})
		if res, err := d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
			t.Errorf("the run is %s, %v", res.Status, err)
		}
		if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) != 1 || posts[0].ID != "note:1" {
			t.Errorf("what waits is %+v, %v, want the note", posts, err)
		}
	})
	t.Run("completed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, store := begin(t, dispatcher.Options{}, nil, func(*memory.Store) {}, func(t *testing.T, inner *memory.Store) {
				for _, id := range []string{"3", "1", "2"} {
					note(t, inner, id)
					lasts(time.Second)
				}
			})
			var order []string
			for _, e := range readLog(t, store) {
				if e.Post != "" {
					order = append(order, e.Post)
				}
			}
			if want := []string{"note:3", "note:1", "note:2"}; !slices.Equal(order, want) {
				t.Errorf("the log drains %q, want %q", order, want)
			}
		})
	})
}

// However many cancels a live run is left, an append drains no more of them than fit, and the run
// rests; the next call notes the others.
func TestManyCancelsOfALiveRun(t *testing.T) {
	var w witness
	var inner memory.Store
	store, drained := portions(&inner)
	h := beginHeld(t, &w, store)
	for i := range 1203 {
		postCancelBy(t, &inner, fmt.Sprintf("%04d", i), "Ada")
	}
	<-h.ctx.Done()
	close(h.gate)
	e := <-h.ended
	rests(t, e.res, e.err, checkpoint.StatusCancelled, "c")
	if most := slices.Max(*drained); most > 500 {
		t.Errorf("an append drains %d messages", most)
	}
	res, err := h.Run(t.Context(), run, nil)
	completes(t, res, err)
	nothingIsPosted(t, &inner)
	if events, _ := cancelsTold(t, h.Dispatcher); !slices.Equal(events, []string{"Ada: enough"}) {
		t.Errorf("events tell %q", events)
	}
}
