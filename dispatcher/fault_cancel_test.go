package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An ending is what a call returned that ran beside a test.
type ending struct {
	res *dispatcher.Result[Tale]
	err error
	at  time.Time
}

// beginRun lets d run beside the test, and returns when nothing moves any more.
func beginRun(t *testing.T, d *dispatcher.Dispatcher[Tale]) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		res, err := d.Run(t.Context(), run, nil)
		ended <- ending{res, err, time.Now()}
	}()
	synctest.Wait()
	return ended
}

// A place is where a run can be when it is cancelled: a graph, and the cursor that is left.
type place struct {
	graph  func(t *testing.T, w *witness) *dag.Graph[Tale]
	cursor []string
}

// idles is a body that waits for the end of its context.
func idles(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }

// livePlaces are a node alone, on the goroutine that looks after the run; parallel ones; the
// wait between two attempts; and a node inside.
var livePlaces = map[string]place{
	"alone": {func(t *testing.T, w *witness) *dag.Graph[Tale] { return line(t, w, idles) }, []string{"b"}},
	"parallel": {func(t *testing.T, w *witness) *dag.Graph[Tale] {
		b := dag.New[Tale]("parallel")
		dag.Step(b, "one", w.sees(idles))
		dag.Step(b, "two", w.sees(idles))
		return frozen(t, b)
	}, []string{"one", "two"}},
	"back-off": {func(t *testing.T, _ *witness) *dag.Graph[Tale] { return patient(t, 9, 9, new([]time.Time)) }, []string{"try"}},
	"nested": {func(t *testing.T, w *witness) *dag.Graph[Tale] {
		return nest(t, w, map[string]part{"sweep": idles})
	}, []string{"house/rounds/1/sweep"}},
}

// Cancel reaches a live run from anywhere, whatever it is at.
func TestCancelLive(t *testing.T) {
	for name, p := range livePlaces {
		for _, another := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/another=%t", name, another), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { p.cancel(t, another) })
			})
		}
	}
}

// cancel cancels a live run, by its own dispatcher or by another.
func (p place) cancel(t *testing.T, another bool) {
	var w witness
	var store memory.Store
	g := p.graph(t, &w)
	d := process(t, g, &store, dispatcher.Options{})
	ended := beginRun(t, d)
	if another {
		d = process(t, g, &store, dispatcher.Options{})
	}
	lasts(time.Second)
	began := time.Now()
	if err := d.Cancel(t.Context(), run, errors.New("the museum closes")); err != nil {
		t.Fatal(err)
	}
	e := <-ended
	rests(t, e.res, e.err, checkpoint.StatusCancelled, p.cursor...)
	if took := e.at.Sub(began); took != 0 { // Cancel itself may wait a moment for the lease that the run gives back
		t.Errorf("the run rested %v after the cancel, want at once", took)
	}
	if !strings.Contains(e.err.Error(), "the museum closes") {
		t.Errorf("the error %q does not tell the cause", e.err)
	}
	if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
		t.Errorf("posts %v are left, %v", posts, err)
	}
	res, err := d.State(t.Context(), run)
	if err != nil || res.Status != checkpoint.StatusCancelled {
		t.Errorf("the store says %s, %v", res.Status, err)
	}
}

// A message that was there before the store was asked to tell of messages is heard as well.
func TestCancelBeforeTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		free := make(chan struct{})
		store := &tampered{Store: &inner, before: hangs("Watch", 1, free)}
		g := line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) })
		ended := beginRun(t, process(t, g, store, dispatcher.Options{}))
		by := process(t, g, &inner, dispatcher.Options{})
		err := by.Cancel(t.Context(), run, nil)
		if errors.Is(err, dispatcher.ErrNotFound) { // the run waits for the watch to begin
			close(free)
			synctest.Wait()
			err = by.Cancel(t.Context(), run, nil)
		} else {
			close(free)
		}
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusCancelled, "b")
		if took := time.Since(began); took != 0 {
			t.Errorf("the run rested %v after the cancel, want at once", took)
		}
	})
}

// A node that ignores a live cancel is abandoned like at the end of a context.
func TestCancelLiveOfAStubbornNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var n stubborn
		var store memory.Store
		g := line(t, &w, n.part)
		ended := beginRun(t, process(t, g, &store, dispatcher.Options{}))
		by := process(t, g, &store, dispatcher.Options{})
		if err := by.Cancel(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
		end := time.Now()
		e := <-ended
		within(t, end, 5*time.Second)
		rests(t, e.res, e.err, checkpoint.StatusCancelled, "b")
		if got := strings.Join(e.res.Abandoned, " "); got != "b" {
			t.Errorf("abandoned: %q, want b", got)
		}
		lasts(2 * time.Minute)
		res, err := by.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "a", "b", "b", "c")
	})
}

// Cancelling twice is cancelling once: a later resume is not cancelled for it.
func TestCancelLiveTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		first := true
		g := line(t, &w, func(ctx context.Context, _ *Tale) error {
			if !first {
				return nil
			}
			first = false
			err := heeds(ctx, time.Hour)
			lasts(time.Second) // both messages are there by now
			return err
		})
		ended := beginRun(t, process(t, g, &store, dispatcher.Options{}))
		by := process(t, g, &store, dispatcher.Options{})
		for range 3 {
			if err := by.Cancel(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
		}
		e := <-ended
		rests(t, e.res, e.err, checkpoint.StatusCancelled, "b")
		if err := by.Cancel(t.Context(), run, nil); err != nil {
			t.Errorf("Cancel of a cancelled run returned %v", err)
		}
		res, err := by.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "a", "b", "b", "c")
	})
}

// A run that ends by itself before it hears of the cancel is what it became.
func TestCancelThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		g := line(t, &w, func(context.Context, *Tale) error { lasts(time.Second); return nil })
		d := process(t, g, &store, dispatcher.Options{})
		ended := beginRun(t, d)
		e := <-ended
		completes(t, e.res, e.err)
		before, _ := store.Stat(t.Context(), run)
		if err := d.Cancel(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrCompleted) {
			t.Errorf("Cancel of a completed run returned %v", err)
		}
		if after, _ := store.Stat(t.Context(), run); after.Head != before.Head || after.Status != before.Status {
			t.Errorf("the run went from %+v to %+v", before, after)
		}
		if err := d.Cancel(t.Context(), "nobody", nil); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("Cancel of a run that is missing returned %v", err)
		}
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}
