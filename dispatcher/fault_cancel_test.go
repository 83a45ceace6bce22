package dispatcher_test

import (
	"context"
	"errors"
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
}

// beginRun lets d run beside the test, and returns when nothing moves any more.
func beginRun(t *testing.T, d *dispatcher.Dispatcher[Tale]) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		res, err := d.Run(t.Context(), run, nil)
		ended <- ending{res, err}
	}()
	synctest.Wait()
	return ended
}

// Cancel reaches a live run from anywhere, whatever it is at: a node alone, on the owner's
// own goroutine; parallel ones; the wait between two attempts.
func TestCancelLive(t *testing.T) {
	node := func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }
	for name, graph := range map[string]func(t *testing.T, w *witness) (*dag.Graph[Tale], []string){
		"alone": func(t *testing.T, w *witness) (*dag.Graph[Tale], []string) { return line(t, w, node), []string{"b"} },
		"parallel": func(t *testing.T, w *witness) (*dag.Graph[Tale], []string) {
			b := dag.New[Tale]("parallel")
			dag.Step(b, "one", w.sees(node))
			dag.Step(b, "two", w.sees(node))
			return frozen(t, b), []string{"one", "two"}
		},
		"back-off": func(t *testing.T, _ *witness) (*dag.Graph[Tale], []string) {
			var began []time.Time
			return patient(t, 9, 9, &began), []string{"try"}
		},
		"nested": func(t *testing.T, w *witness) (*dag.Graph[Tale], []string) {
			return nest(t, w, map[string]part{"sweep": node}), []string{"house/rounds/1/sweep"}
		},
	} {
		for _, from := range []string{"the same dispatcher", "another"} {
			t.Run(name+"/from "+from, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					var store memory.Store
					g, cursor := graph(t, &w)
					d := process(t, g, &store, dispatcher.Options{})
					ended := beginRun(t, d)
					by := d
					if from == "another" {
						by = process(t, g, &store, dispatcher.Options{})
					}
					lasts(time.Second)
					began := time.Now()
					if err := by.Cancel(t.Context(), run, errors.New("the museum closes")); err != nil {
						t.Fatal(err)
					}
					e := <-ended
					rests(t, e.res, e.err, checkpoint.StatusCancelled, cursor...)
					if took := time.Since(began); took != 0 {
						t.Errorf("the run rested %v after the cancel, want at once", took)
					}
					if !strings.Contains(e.err.Error(), "the museum closes") {
						t.Errorf("the error %q does not tell the cause", e.err)
					}
					if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
						t.Errorf("posts %v are left, %v", posts, err)
					}
					res, err := by.State(t.Context(), run)
					if err != nil || res.Status != checkpoint.StatusCancelled {
						t.Errorf("the store says %s, %v", res.Status, err)
					}
				})
			})
		}
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

// At rest, whatever it rests as, a run becomes Cancelled at once, and goes on from there.
func TestCancelAtRest(t *testing.T) {
	for _, c := range []struct {
		status checkpoint.Status
		stop   func(cancel context.CancelCauseFunc) error
		again  []string
	}{
		{checkpoint.StatusFailed, func(context.CancelCauseFunc) error { return errWeather }, nil},
		{checkpoint.StatusCancelled, func(cancel context.CancelCauseFunc) error { cancel(nil); return errWeather }, []string{"b", "c"}},
		{checkpoint.StatusRunning, func(cancel context.CancelCauseFunc) error {
			cancel(dispatcher.ErrDrain)
			return errWeather
		}, []string{"b", "c"}},
		{checkpoint.StatusInterrupted, nil, []string{"b", "c"}},
	} {
		t.Run(string(c.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				ctx, cancel := context.WithCancelCause(t.Context())
				g := line(t, &w, func(context.Context, *Tale) error {
					if c.stop == nil {
						return nil
					}
					stop := c.stop
					c.stop = nil
					return stop(cancel)
				})
				var o dispatcher.Options
				if c.status == checkpoint.StatusInterrupted {
					o.InterruptBefore = []string{"b"}
				}
				res, err := process(t, g, &store, o).Run(ctx, run, nil)
				if err == nil || res.Status != c.status {
					t.Fatalf("the run is %s, %v", res.Status, err)
				}
				w.took()
				d := process(t, g, &store, o)
				if err := d.Cancel(t.Context(), run, errors.New("enough")); err != nil {
					t.Fatal(err)
				}
				res, err = d.State(t.Context(), run)
				if err != nil || res.Status != checkpoint.StatusCancelled {
					t.Errorf("the run is %s, %v, want it cancelled", res.Status, err)
				}
				if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
					t.Errorf("posts %v are left, %v", posts, err)
				}
				res, err = d.Resume(t.Context(), run)
				if c.status == checkpoint.StatusFailed { // what ranks lower is kept
					rests(t, res, err, checkpoint.StatusFailed, "b")
					return
				}
				completes(t, res, err)
				w.expect(t, c.again...)
			})
		})
	}
}

// ErrDrain stops a run and leaves it Running, owned by nobody: the next process goes on.
func TestDrain(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			ctx, cancel := context.WithCancelCause(t.Context())
			if early {
				cancel(dispatcher.ErrDrain)
			} else {
				time.AfterFunc(time.Second, func() { cancel(dispatcher.ErrDrain) })
			}
			times := 0
			g := line(t, &w, func(ctx context.Context, _ *Tale) error {
				if times++; times > 1 {
					return nil
				}
				return heeds(ctx, time.Minute)
			})
			res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, func(s *Tale) { s.Word.Set("kept") })
			status, cursor, ran := checkpoint.StatusRunning, "b", []string{"a", "b"}
			if early {
				status, cursor, ran = checkpoint.StatusPending, "a", nil
			}
			rests(t, res, err, status, cursor)
			if !errors.Is(err, dispatcher.ErrDrain) {
				t.Errorf("the error %v does not hold its cause", err)
			}
			w.expect(t, ran...)
			info, err := store.Stat(t.Context(), run)
			if err != nil || info.Status != status || info.Owner != "" {
				t.Errorf("the store says %s, owned by %q, %v", info.Status, info.Owner, err)
			}
			res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			if res.State.Word.Get() != "kept" {
				t.Error("the input is lost")
			}
			says(t, res.State, "a", "b", "c")
		})
	}
}
