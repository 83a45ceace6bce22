package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
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

// Who cancels a run while it comes to rest, before or behind the append that says so, finds it
// cancelled. The call that has run it tells how it rested, and its observer of one rest.
func TestCancelWhileARunComesToRest(t *testing.T) {
	for name, c := range map[string]struct {
		kind checkpoint.Kind
		as   checkpoint.Status
		body part
		o    dispatcher.Options
	}{
		"interrupted": {checkpoint.Waiting, checkpoint.StatusInterrupted, nil, dispatcher.Options{InterruptBefore: []string{"b"}}},
		"failed": {
			checkpoint.Failed, checkpoint.StatusFailed,
			func(context.Context, *Tale) error { return errWeather }, dispatcher.Options{},
		},
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
					atWork := 0
					c.o.Observe = func(e dispatcher.Event) {
						switch e.Kind {
						case dispatcher.RunStarted:
							atWork++
						case dispatcher.RunRested:
							atWork--
						}
					}
					d := process(t, g, store, c.o)
					res, err := d.Run(t.Context(), run, nil)
					rests(t, res, err, c.as, "b")
					if atWork != 0 {
						t.Errorf("the observer counts %d runs at work", atWork)
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

// A run that rests and is kept by its OnEnd, or by a node that was abandoned, is cancelled when
// that lets go of it.
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
	t.Run("OnEnd of a Turn whose input is not taken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			b := dag.New[Tale]("tale")
			dag.Step(b, "a", func(ctx context.Context, s *Tale) error {
				if s.Word.Get() == "" {
					return nil
				}
				_, err := dag.Ask[int](ctx, "q", "?")
				return err
			})
			g := frozen(t, b)
			d := process(t, g, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			input := func(s *Tale) { s.Word.Set("ask") }
			if err := d.Enqueue(t.Context(), run, input); err != nil {
				t.Fatal(err)
			}
			var o dispatcher.Options
			o.Hooks.OnEnd = func(ctx context.Context, _ dispatcher.End) error {
				return d.Cancel(ctx, run, errors.New("enough"), dispatcher.Author("Ada"))
			}
			res, err = process(t, g, &store, o).Turn(t.Context(), run, input)
			if !errors.Is(err, dispatcher.ErrNotCompleted) || res.Status != checkpoint.StatusInterrupted || len(res.Warnings) > 0 {
				t.Errorf("Turn = %s, %q, %v, want that the turn before it waits", res.Status, res.Warnings, err)
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

// The same while whoever has the lease is slow: in a snapshot, in giving it back, in a hook that
// refuses the call, in an edit.
func TestCancelWhileTheLeaseIsHeld(t *testing.T) {
	for name, hold := range map[string]func(t *testing.T, store *tampered, cancel func(), plain *dispatcher.Dispatcher[Tale], g *dag.Graph[Tale]){
		"in the store": func(t *testing.T, store *tampered, cancel func(), _ *dispatcher.Dispatcher[Tale], g *dag.Graph[Tale]) {
			store.before = func(_ context.Context, c call) error {
				if c.method == "Release" {
					cancel()
				}
				return nil
			}
			d := process(t, g, store, dispatcher.Options{InterruptBefore: []string{"b"}})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
		},
		"in a hook": func(t *testing.T, store *tampered, cancel func(), plain *dispatcher.Dispatcher[Tale], g *dag.Graph[Tale]) {
			res, err := plain.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			var o dispatcher.Options
			o.Hooks.OnStart = func(context.Context, dispatcher.Start) error { cancel(); return errWeather }
			if _, err := process(t, g, store.Store, o).Resume(t.Context(), run); !errors.Is(err, errWeather) {
				t.Errorf("Resume = %v, want what the hook says", err)
			}
		},
		"in an edit": func(t *testing.T, _ *tampered, cancel func(), plain *dispatcher.Dispatcher[Tale], _ *dag.Graph[Tale]) {
			res, err := plain.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			edit := func(s *Tale) { cancel(); s.Said.Append("x") }
			if err := plain.Edit(t.Context(), run, edit, dispatcher.EditOptions{}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var inner memory.Store
				g := line(t, &w, nil)
				d := process(t, g, &inner, dispatcher.Options{InterruptBefore: []string{"b"}})
				once := sync.OnceFunc(func() {
					if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
						t.Error(err)
					}
				})
				hold(t, &tampered{Store: &inner}, once, d, g)
				isCancelledByAda(t, d, &inner)
			})
		})
	}
}

// The same while its past is trimmed, by a Trim or behind a call.
func TestCancelWhileARunIsTrimmed(t *testing.T) {
	for _, retention := range []dispatcher.Retention{{}, {Last: 1}} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			g := line(t, &w, nil)
			by := process(t, g, &inner, dispatcher.Options{})
			store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
				if c.method != "Trim" {
					return nil
				}
				return by.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada"))
			}}
			d := process(t, g, store, dispatcher.Options{InterruptBefore: []string{"b"}, Retention: retention})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			if retention == (dispatcher.Retention{}) {
				if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
					t.Error(err)
				}
			}
			info, err := inner.Stat(t.Context(), run)
			if err != nil || info.First <= 1 || info.Status != checkpoint.StatusCancelled {
				t.Errorf("the log begins at %d and the run is %s, %v, want it trimmed and cancelled", info.First, info.Status, err)
			}
			for e, err := range inner.Read(t.Context(), run, info.Head.Seq, 0) {
				if err != nil || !strings.Contains(string(e.Data), "Ada") {
					t.Errorf("the log ends with %s %s, %v, want who has cancelled it", e.Kind, e.Data, err)
				}
			}
			nothingIsPosted(t, &inner)
		})
	}
}

// Nor is a cancel lost beside a trim that was abandoned, or beside a call that was refused and
// abandoned when it had given the lease back.
func TestCancelBesideWhatIsAbandonedAtRest(t *testing.T) {
	for method, c := range map[string]struct {
		call      func(context.Context, *dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error)
		abandoned string
	}{
		"Trim": {func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error) {
			return d.Resume(ctx, run)
		}, "trimming the run in the store"},
		"Posts": {func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error) {
			return d.Start(ctx, run, nil)
		}, "releasing the lease in the store"},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var inner memory.Store
				free := make(chan struct{})
				var released, hung atomic.Bool
				store := &tampered{Store: &inner, after: func(is call, err error) error {
					if is.method == "Release" {
						released.Store(true)
					}
					if is.method == method && released.Load() && !hung.Swap(true) { // of posts it has seen none
						<-free
					}
					return err
				}}
				g := line(t, &w, nil)
				o := dispatcher.Options{InterruptBefore: []string{"b"}, Grace: time.Second}
				res, err := process(t, g, &inner, o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "b")
				o.InterruptBefore, o.Retention = []string{"c"}, dispatcher.Retention{Last: 1}
				d := process(t, g, store, o)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				res, err = c.call(ctx, d)
				if err == nil || !slices.Equal(res.Abandoned, []string{c.abandoned}) {
					t.Errorf("the call returned %v and abandoned %q, want %q", err, res.Abandoned, c.abandoned)
				}
				if err := d.Cancel(t.Context(), run, errors.New("enough")); err != nil {
					t.Fatal(err)
				}
				close(free)
				synctest.Wait()
				if res, err := d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCancelled {
					t.Errorf("the run is %s, %v, want it cancelled", res.Status, err)
				}
				nothingIsPosted(t, &inner)
			})
		})
	}
}

// A run that comes to rest by an append that hung beyond the grace period is cancelled as well.
func TestCancelBesideAnAppendThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var inner memory.Store
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if c.says(checkpoint.Waiting) {
				lasts(time.Minute)
			}
			return nil
		}}
		d := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptBefore: []string{"b"}, Grace: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Run(ctx, run, nil); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("Run = %v, want ErrStuck", err)
		}
		if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		lasts(2 * time.Minute)
		isCancelledByAda(t, d, &inner)
	})
}

// So is one that would have been completed by an append that failed.
func TestCancelBesideALastAppendThatFails(t *testing.T) {
	for _, lag := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			var by *dispatcher.Dispatcher[Tale]
			store := &tampered{Store: &inner, before: func(ctx context.Context, c call) error {
				if !c.says(checkpoint.Completed) {
					return nil
				}
				if err := by.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
					t.Error(err)
				}
				return checkpoint.ErrFull
			}}
			g := line(t, &w, nil)
			by = process(t, g, &inner, dispatcher.Options{})
			if _, err := process(t, g, store, dispatcher.Options{Lag: lag}).Run(t.Context(), run, nil); !errors.Is(err, checkpoint.ErrFull) {
				t.Errorf("Run = %v, want ErrFull", err)
			}
			isCancelledByAda(t, by, &inner)
		})
	}
}

// So is one that its observer holds up, be it at rest by then or left running.
func TestCancelBesideAnObserverThatHangs(t *testing.T) {
	for _, at := range []dispatcher.EventKind{dispatcher.RunRested, dispatcher.RunStarted} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				d := process(t, line(t, &w, nil), &store, dispatcher.Options{
					InterruptBefore: []string{"b"}, Grace: time.Second,
					Observe: func(e dispatcher.Event) {
						if e.Kind == at {
							lasts(time.Minute)
						}
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := d.Run(ctx, run, nil); !errors.Is(err, dispatcher.ErrStuck) {
					t.Errorf("Run = %v, want ErrStuck", err)
				}
				if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
					t.Fatal(err)
				}
				lasts(2 * time.Minute)
				isCancelledByAda(t, d, &store)
			})
		})
	}
}

// So is a run at rest that a call was about to go on with.
func TestCancelBesideAnOnStartThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		g := line(t, &w, nil)
		res, err := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"b"}}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		o := dispatcher.Options{Grace: time.Second}
		o.Hooks.OnStart = func(context.Context, dispatcher.Start) error {
			lasts(time.Minute)
			return nil
		}
		d := process(t, g, &store, o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Resume(ctx, run); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("Resume = %v, want ErrStuck", err)
		}
		if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		lasts(2 * time.Minute)
		isCancelledByAda(t, d, &store)
	})
}

// A cancel that the run hears when its context has ended already, while a node tidies up, is what
// the run rests by: it says who did it, and not that the time was over.
func TestCancelBehindTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		d := process(t, line(t, &w, func(ctx context.Context, _ *Tale) error {
			<-ctx.Done()
			lasts(time.Second)
			return ctx.Err()
		}), &store, dispatcher.Options{Grace: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err = d.Run(ctx, run, nil)
		}()
		lasts(1500 * time.Millisecond)
		if err := d.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		<-ended
		var rest *dispatcher.Rest
		if !errors.As(err, &rest) || rest.Status != checkpoint.StatusCancelled || rest.By != "Ada" {
			t.Errorf("the call returned %v, want it to name who cancelled it", err)
		}
		isCancelledByAda(t, d, &store)
	})
}

// A cancel of a run at rest that nobody has drained, since a process died, is drained by who comes
// next: the log tells that the run was cancelled, and a call that goes on does so from there.
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

// A cancel without a cause has none, of a live run as of one at rest.
func TestCancelWithoutACause(t *testing.T) {
	quiet(t)
	for _, live := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			b := dag.New[Tale]("tale")
			dag.Step(b, "a", func(ctx context.Context, _ *Tale) error {
				if live {
					<-ctx.Done()
					return ctx.Err()
				}
				_, err := dag.Ask[int](ctx, "q", "?")
				return err
			})
			d := process(t, frozen(t, b), &store, dispatcher.Options{})
			var all sync.WaitGroup
			var left error
			all.Go(func() { _, left = d.Run(t.Context(), run, nil) })
			synctest.Wait()
			if err := d.Cancel(t.Context(), run, nil, dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			if told, _ := cancelsTold(t, d); !slices.Equal(told, []string{"Ada: "}) {
				t.Errorf("live %t: events tell %q", live, told)
			}
			var rest *dispatcher.Rest
			if live && (!errors.As(left, &rest) || rest.Cause != nil || rest.By != "Ada" || !errors.Is(left, context.Canceled) ||
				left.Error() != `dispatcher: run "tale" was cancelled by Ada at a`) {
				t.Errorf("the call that was cancelled returns %v: %+v", left, rest)
			}
		})
	}
}

// Who cancels a run that was cancelled before, and that a call is about to go on with, has
// cancelled that call.
func TestCancelOfACancelledRunThatIsGoneOnWith(t *testing.T) {
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	d := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"b"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	if err := d.Cancel(t.Context(), run, nil, dispatcher.Author("Bob")); err != nil {
		t.Fatal(err)
	}
	var o dispatcher.Options
	o.Hooks.OnStart = func(ctx context.Context, _ dispatcher.Start) error {
		return d.Cancel(ctx, run, errors.New("enough"), dispatcher.Author("Ada"))
	}
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusCancelled, "b")
	if events, _ := cancelsTold(t, d); !slices.Equal(events, []string{"Bob: ", "Ada: enough"}) {
		t.Errorf("events tell %q", events)
	}
	nothingIsPosted(t, &store)
}

// A run that cancels itself ends the context with which it does so. What was posted counts,
// whatever else comes of that.
func TestCancelWhoseContextItEnds(t *testing.T) {
	for name, outcome := range map[string]error{"posted": nil, "broken off": checkpoint.ErrCommitUnknown} {
		for _, hook := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in OnStart %t", name, hook), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cancelsItself(t, outcome, hook) })
			})
		}
	}
}

// cancelsItself checks a run that cancels itself, of whose message the store says outcome when its
// context has ended.
func cancelsItself(t *testing.T, outcome error, hook bool) {
	var inner memory.Store
	var mine context.Context
	store := &tampered{Store: &inner, after: func(c call, err error) error {
		if c.method != "Post" || err != nil {
			return err
		}
		<-mine.Done()
		return outcome
	}}
	var d *dispatcher.Dispatcher[Tale]
	var told error
	cancel := func(ctx context.Context) {
		mine = ctx
		told = d.Cancel(ctx, run, errors.New("enough"), dispatcher.Author("Ada"))
	}
	b := dag.New[Tale]("tale")
	dag.Step(b, "a", func(ctx context.Context, _ *Tale) error {
		if !hook {
			cancel(ctx)
		}
		return ctx.Err()
	})
	var o dispatcher.Options
	if hook {
		o.Hooks.OnStart = func(ctx context.Context, _ dispatcher.Start) error {
			cancel(ctx)
			return nil
		}
	}
	g := frozen(t, b)
	res, err := process(t, g, &inner, dispatcher.Options{InterruptBefore: []string{"a"}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "a")
	d = process(t, g, store, o)
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusCancelled, "a")
	if told != nil {
		t.Errorf("Cancel: %v", told)
	}
	isCancelledByAda(t, d, &inner)
}
