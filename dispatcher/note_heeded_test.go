package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// noteFirst is a note as it waits for who has the run.
var noteFirst = checkpoint.Post{ID: "note:1", Kind: "note", Data: []byte(`{"note":"first","value":1}`)}

// bothNoted checks that both notes are in the log, and that nothing waits to be drained.
func bothNoted(t *testing.T, store checkpoint.Store) {
	t.Helper()
	if told, want := notesOf(t, store), []string{"a is done", "1 first 1", "2 second 2"}; !slices.Equal(told, want) {
		t.Errorf("the log tells %q, want %q", told, want)
	}
	nothingIsPosted(t, store)
}

// A note that is accepted while another one of a completed run is drained is in the log, too:
// whoever drains that, a call that lets go of the run, or a cancel that comes too late.
func TestANoteWhileAnotherIsDrained(t *testing.T) {
	for name, first := range map[string]func(*testing.T, *tampered, dispatcher.Options, *dag.Graph[Tale]){
		"by a call": func(t *testing.T, store *tampered, o dispatcher.Options, g *dag.Graph[Tale]) {
			var d *dispatcher.Dispatcher[Tale]
			o.Hooks.OnEnd = func(ctx context.Context, _ dispatcher.End) error {
				return d.Note(ctx, run, "first", 1, dispatcher.Message("1"))
			}
			d = process(t, g, store, o)
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
		},
		"by a cancel": func(t *testing.T, store *tampered, o dispatcher.Options, g *dag.Graph[Tale]) {
			res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			l, err := store.Acquire(t.Context(), run, "somebody")
			if err != nil {
				t.Fatal(err)
			}
			n := store.calls["Acquire"]
			store.before = func(ctx context.Context, c call) error {
				if c.method == "Acquire" && c.n == n+2 { // the first one was in vain
					return errors.Join(store.Store.Release(ctx, l), store.Store.Post(ctx, run, noteFirst))
				}
				return nil
			}
			if err := process(t, g, store, o).Cancel(t.Context(), run, nil); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var inner memory.Store
				b := dag.New[Tale]("line")
				dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
				g := frozen(t, b)
				other := process(t, g, &inner, dispatcher.Options{})
				first(t, &tampered{Store: &inner}, dispatcher.Options{Observe: func(e dispatcher.Event) {
					if e.Kind != dispatcher.Noted || e.Name != "first" {
						return
					}
					if err := other.Note(context.Background(), run, "second", 2, dispatcher.Message("2")); err != nil {
						t.Error(err)
					}
				}}, g)
				bothNoted(t, &inner)
			})
		})
	}
}

// A note of a run that rests is left to the next call, which reads no log for it: the machine of
// the run is kept.
func TestANoteWhileARunThatWaitsIsLetGoOfCostsNoReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tampered{Store: new(memory.Store)}
		var d *dispatcher.Dispatcher[Tale]
		d, err := dispatcher.New(asksTwo(t), store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: func(ctx context.Context, e dispatcher.End) error {
			return d.Note(ctx, run, "ended", string(e.Status))
		}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		replays := store.calls["Snapshot"] // each one begins with that
		if _, err = d.Run(t.Context(), run, nil, dispatcher.Answering(res.Interrupts[0].ID, "1")); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Error(err)
		}
		if n := store.calls["Snapshot"] - replays; n > 0 {
			t.Errorf("who goes on reads the log %d times", n)
		}
	})
}

// An observer that hangs when it is told of what was posted to a run that was let go of is named,
// and holds the run until it returns: of a call that lets go of the run itself, and of one that
// does so behind its OnEnd.
func TestAnObserverThatHangsBehindTheRun(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("OnEnd=%t", ends), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { hangsBehindTheRun(t, ends) })
		})
	}
}

func hangsBehindTheRun(t *testing.T, ends bool) {
	var inner memory.Store
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
	g := frozen(t, b)
	other := process(t, g, &inner, dispatcher.Options{})
	note := func() error { return other.Note(context.Background(), run, "late", 1) }
	store := &tampered{Store: &inner}
	free := make(chan struct{})
	o := dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.Noted {
			<-free
		}
	}}
	if ends {
		o.Hooks.OnEnd = func(context.Context, dispatcher.End) error { return note() }
	} else {
		store.before = func(_ context.Context, c call) error {
			if c.method == "Release" && c.n == 1 {
				return note()
			}
			return nil
		}
	}
	d := process(t, g, store, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res, err := d.Run(ctx, run, nil)
	completes(t, res, err)
	if want := []string{"Options.Observe"}; !slices.Equal(res.Abandoned, want) {
		t.Errorf("the call abandoned %q, want %q", res.Abandoned, want)
	}
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.Contains(err.Error(), "Options.Observe") {
		t.Errorf("a run beside it returned %v, want ErrStillRunning that names it", err)
	}
	if err := d.Note(t.Context(), run, "later", 2); err != nil {
		t.Errorf("a note beside it: %v", err)
	}
	close(free)
	synctest.Wait()
	if told, want := notesOf(t, &inner), []string{"a is done", "late 1", "later 2"}; !slices.Equal(told, want) {
		t.Errorf("the log tells %q, want %q", told, want)
	}
	nothingIsPosted(t, &inner)
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// A call that an observer breaks off gives the lease back as any other does: it tries again for a
// moment, and warns of one that is kept.
func TestLeaseOfACallThatIsBrokenOff(t *testing.T) {
	for _, fails := range []int{1, 100} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { brokenOff(t, fails) })
		})
	}
}

func brokenOff(t *testing.T, fails int) {
	left := fails
	store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
		if c.method != "Release" || left == 0 {
			return nil
		}
		left--
		return errWeather
	}}
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(context.Context, *Tale) error { return nil })
	g := frozen(t, b)
	d := process(t, g, store, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitDone {
			runtime.Goexit()
		}
	}})
	res, err := d.Run(t.Context(), run, nil)
	var fault *dispatcher.FaultError
	if !errors.As(err, &fault) || res.Status != checkpoint.StatusRunning {
		t.Errorf("the call returned %v, and the run is %s", err, res.Status)
	}
	warns := slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "bad weather") })
	if kept := left > 0; warns != kept || len(res.Warnings) > 1 {
		t.Errorf("the lease is kept: %t, and the call warns of %q", kept, res.Warnings)
	}
	if left > 0 {
		return
	}
	res, err = process(t, g, store.Store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
}

// An observer that notes a completed run whenever it is told of a note holds nobody up for ever:
// what comes behind the grace period is left to who comes next.
func TestAnObserverThatNotesWhatItIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, noted := new(memory.Store), 0
		g := line(t, new(witness), nothing[Tale])
		var d *dispatcher.Dispatcher[Tale]
		d = process(t, g, store, dispatcher.Options{Grace: time.Second, Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.Noted {
				noted++
				if err := d.Note(context.Background(), run, "again", noted); err != nil {
					t.Error(err)
				}
			}
		}})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		began := time.Now()
		if err := d.Note(t.Context(), run, "first", 0); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second || noted < 2 {
			t.Errorf("the note took %v, and the observer was told of %d", took, noted)
		}
	})
}
