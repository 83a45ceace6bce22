package dispatcher_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// superAfter is closed after d.
func superAfter(d time.Duration) <-chan struct{} {
	now := make(chan struct{})
	time.AfterFunc(d, func() { close(now) })
	return now
}

// superUnheld checks that a run was left for whoever comes next.
func superUnheld(t *testing.T, store checkpoint.Store, status checkpoint.Status) {
	t.Helper()
	info, err := store.Stat(t.Context(), run)
	if err != nil || info.Status != status || info.Owner != "" {
		t.Errorf("the store says %s, owned by %q, %v; want %s, owned by nobody", info.Status, info.Owner, err, status)
	}
}

// superWide is a superstep of three, one of which may have two attempts, and one behind it.
func superWide(t *testing.T, w *witness, body part) *dag.Graph[Tale] {
	b := dag.New[Tale]("wide")
	first := dag.Step(b, "a", w.sees(nil))
	quick := dag.Step(b, "b", w.sees(nil), first)
	slow := dag.Step(b, "c", w.sees(body), first)
	failing := dag.Step(b, "d", w.sees(func(ctx context.Context, _ *Tale) error {
		if dag.Attempt(ctx) == 1 {
			lasts(5 * time.Second)
			return errWeather
		}
		return nil
	}), first).With(dag.Policy{Attempts: 2})
	dag.Step(b, "e", w.sees(nil), quick, slow, failing)
	return frozen(t, b)
}

// A run that drains gently begins nothing more, not even another attempt; what runs is not
// told, and what it did counts. The next process goes on from there.
func TestDrainIsGentle(t *testing.T) {
	for _, parallel := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			g := superWide(t, &w, func(ctx context.Context, _ *Tale) error {
				lasts(10 * time.Second)
				return ctx.Err()
			})
			began := time.Now()
			o := dispatcher.Options{Parallel: parallel, Grace: time.Second}
			res, err := process(t, g, &store, o).Run(t.Context(), run, nil, dispatcher.Drain(superAfter(time.Second)))
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("the call took %v, want as long as what runs", took)
			}
			rests(t, res, err, checkpoint.StatusRunning, "d")
			if !errors.Is(err, dispatcher.ErrDrain) || len(res.Abandoned) > 0 {
				t.Errorf("Run = %v, abandoned %q, want the cause ErrDrain", err, res.Abandoned)
			}
			w.expect(t, "a", "b", "c", "d")
			superUnheld(t, &store, checkpoint.StatusRunning)
			again, err := process(t, g, &store, o).Continue(t.Context(), run)
			completes(t, again, err)
			w.expect(t, "d#2", "e")
		})
	}
}

// What takes too long to end is ended by the context, in both orders of the two.
func TestDrainThenEnd(t *testing.T) {
	for _, c := range []struct{ drain, end time.Duration }{{time.Second, 8 * time.Second}, {3 * time.Second, 2 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			g := superWide(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(c.end, func() { cancel(dispatcher.ErrDrain) })
			began := time.Now()
			o := dispatcher.Options{Grace: 10 * time.Second}
			res, err := process(t, g, &store, o).Run(ctx, run, nil, dispatcher.Drain(superAfter(c.drain)))
			if took := time.Since(began); took != max(c.end, 5*time.Second) { // d heeds nothing
				t.Errorf("the call took %v", took)
			}
			if !errors.Is(err, dispatcher.ErrDrain) {
				t.Errorf("Run = %v, want the cause ErrDrain", err)
			}
			rests(t, res, err, checkpoint.StatusRunning, "c", "d")
			superUnheld(t, &store, checkpoint.StatusRunning)
			for _, e := range readLog(t, &store) {
				if e.Kind == checkpoint.AttemptFailed && (e.Path != "d" || c.end < 5*time.Second) {
					t.Errorf("%s has failed, and its context was done", e.Path)
				}
			}
		})
	}
}

// A run in which nothing could run any more while it drains rests as it would have.
func TestDrainAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		status checkpoint.Status
		body   part
		last   bool
	}{
		{checkpoint.StatusCompleted, func(context.Context, *Tale) error { lasts(2 * time.Second); return nil }, true},
		{checkpoint.StatusRunning, func(context.Context, *Tale) error { lasts(2 * time.Second); return nil }, false},
		{checkpoint.StatusFailed, func(context.Context, *Tale) error { lasts(2 * time.Second); return errWeather }, true},
		{checkpoint.StatusFailed, func(context.Context, *Tale) error { lasts(2 * time.Second); return errWeather }, false},
		{checkpoint.StatusInterrupted, func(ctx context.Context, _ *Tale) error {
			lasts(2 * time.Second)
			_, err := dag.Ask[string](ctx, "k", "q")
			return err
		}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			b := dag.New[Tale]("ends")
			last := dag.Step(b, "a", w.sees(c.body))
			if !c.last {
				dag.Step(b, "b", w.sees(nil), last)
			}
			p := process(t, frozen(t, b), &store, dispatcher.Options{})
			res, err := p.Run(t.Context(), run, nil, dispatcher.Drain(superAfter(time.Second)))
			if res.Status != c.status || (err == nil) != (c.status == checkpoint.StatusCompleted) {
				t.Errorf("the run is %s, %v, want %s", res.Status, err, c.status)
			}
			superUnheld(t, &store, c.status)
			w.expect(t, "a")
		})
	}
}

// A Turn that drains in a turn that was queued before its own tells that it leaves the run, as it
// has told that it is at work; one that is refused before it tells of nothing.
func TestDrainInAQueuedTurn(t *testing.T) {
	for _, streams := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var store memory.Store
			var seen eventsSeen
			now := make(chan struct{})
			g := line(t, &w, func(_ context.Context, s *Tale) error {
				if s.Word.Get() == "queued" {
					close(now)
				}
				return nil
			})
			plain := process(t, g, &store, dispatcher.Options{})
			res, err := plain.Run(t.Context(), run, nil)
			completes(t, res, err)
			if err := plain.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set("queued") }); err != nil {
				t.Fatal(err)
			}
			var o dispatcher.Options
			if !streams {
				o.Observe = seen.observe
			}
			turn := func() (*dispatcher.Result[Tale], error) {
				return process(t, g, &store, o).Turn(t.Context(), run, nil, dispatcher.Drain(now))
			}
			if streams {
				turn = func() (*dispatcher.Result[Tale], error) {
					listen := dispatcher.Listen{Since: dispatcher.Now}
					items := process(t, g, &store, o).StreamTurn(t.Context(), run, nil, listen, dispatcher.Drain(now))
					events, res, err := eventsStreamed(t, items)
					seen.all = events
					return res, err
				}
			}
			res, err = turn()
			if !errors.Is(err, dispatcher.ErrNotCompleted) || !errors.Is(err, dispatcher.ErrDrain) || res.Status != checkpoint.StatusRunning {
				t.Errorf("streams=%t: Turn = %s, %v, want it left Running since it drains", streams, res.Status, err)
			}
			all := seen.of()
			last := all[len(all)-1]
			if n := len(seen.of(dispatcher.RunRested)); n != 1 {
				t.Errorf("streams=%t: told %d times that the run is left", streams, n)
			}
			if last.Kind != dispatcher.RunRested || last.Status != checkpoint.StatusRunning || !errors.Is(last.Err, dispatcher.ErrDrain) {
				t.Errorf("streams=%t: told %q, want that the run is left at the end", streams, eventsTold(all))
			}
			superUnheld(t, &store, checkpoint.StatusRunning)
			seen.all = nil
			if _, err := turn(); !errors.Is(err, dispatcher.ErrNotCompleted) || len(seen.all) > 0 {
				t.Errorf("streams=%t: a Turn of a run that is Running = %v, told %q", streams, err, eventsTold(seen.all))
			}
		})
	}
}

// A run that drains before it begins is opened, and waits for whoever continues it. A cancel
// that is posted to a run that drains still cancels it.
func TestDrainFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		p := process(t, line(t, &w, nil), &store, dispatcher.Options{})
		now := make(chan struct{})
		close(now)
		res, err := p.Run(t.Context(), run, func(s *Tale) { s.Word.Set("kept") }, dispatcher.Drain(now))
		rests(t, res, err, checkpoint.StatusPending, "a")
		superUnheld(t, &store, checkpoint.StatusPending)
		res, err = p.Run(t.Context(), run, nil, dispatcher.Drain(now)) // goes on with it
		rests(t, res, err, checkpoint.StatusRunning, "a")
		superUnheld(t, &store, checkpoint.StatusRunning)
		res, err = p.Run(t.Context(), run, nil)
		completes(t, res, err)
		if res.State.Word.Get() != "kept" {
			t.Error("the input is lost")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var store memory.Store
		p := process(t, line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) }), &store, dispatcher.Options{})
		meanwhile(t, 2*time.Second, func() {
			if err := p.Cancel(context.Background(), run, errWeather); err != nil {
				t.Error(err)
			}
		})
		res, err := p.Run(t.Context(), run, nil, dispatcher.Drain(superAfter(time.Second)))
		rests(t, res, err, checkpoint.StatusCancelled, "b")
	})
}

// A run that is left Running, or Pending, is not trimmed: it is neither at rest nor completed.
func TestDrainTrimsNothing(t *testing.T) {
	for _, pending := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			now := make(chan struct{})
			stop := sync.OnceFunc(func() { close(now) })
			if pending {
				stop()
			}
			store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
				if c.method == "Trim" {
					t.Error("the run is trimmed")
				}
				return nil
			}}
			g := line(t, &w, func(context.Context, *Tale) error { stop(); return nil })
			o := dispatcher.Options{Retention: dispatcher.Retention{Last: 1}}
			res, err := process(t, g, store, o).Run(t.Context(), run, nil, dispatcher.Drain(now))
			rests(t, res, err, map[bool]checkpoint.Status{false: checkpoint.StatusRunning, true: checkpoint.StatusPending}[pending],
				map[bool]string{false: "c", true: "a"}[pending])
			if len(res.Warnings) > 0 {
				t.Errorf("warnings: %q", res.Warnings)
			}
		})
	}
}

// Continue goes on with a run that exists, makes none, ends no interrupt, and returns the
// result of one that is completed.
func TestContinue(t *testing.T) {
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	res, err := process(t, g, &store, dispatcher.Options{}).Continue(t.Context(), run)
	if !errors.Is(err, dispatcher.ErrNotFound) || res.Status != "" {
		t.Errorf("Continue of no run = %s, %v", res.Status, err)
	}
	if page, err := store.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) > 0 {
		t.Errorf("Continue has made %v, %v", page, err)
	}
	p := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"b"}})
	_, err = p.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	w.expect(t, "a")
	res, err = p.Continue(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.expect(t)
	if _, err := p.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "b", "c")
	res, err = p.Continue(t.Context(), run)
	completes(t, res, err)
	_, err = p.Continue(t.Context(), run, dispatcher.OrStart())
	var option *dispatcher.OptionError
	if !errors.As(err, &option) {
		t.Errorf("Continue or start = %v, want an OptionError", err)
	}
}

// A run that is drained, or cancelled, just as the last visit that could begin was about to has
// nothing to wait for, though a question and a further attempt are outstanding: it returns at once.
func TestHaltAsTheLastVisitBegins(t *testing.T) {
	inner := dag.New[Tale]("inner")
	one := dag.Step(inner, "one", part(func(context.Context, *Tale) error { return nil }))
	dag.Step(inner, "two", part(func(context.Context, *Tale) error { return nil }), one)
	within := frozen(t, inner)
	for name, beside := range map[string]func(b *dag.Builder[Tale]){
		"a question": func(b *dag.Builder[Tale]) {
			dag.Step(b, "beside", func(ctx context.Context, _ *Tale) error {
				_, err := dag.Ask[string](ctx, "q", "?")
				return err
			})
		},
		"another attempt": func(b *dag.Builder[Tale]) {
			dag.Step(b, "beside", part(func(context.Context, *Tale) error { return errWeather })).
				With(dag.Policy{Attempts: 9, Backoff: dag.Constant(time.Hour)})
		},
	} {
		b := dag.New[Tale]("outer")
		dag.Embed(b, "embed", within, func(_, _ *Tale) {}, func(_, _ *Tale) {})
		beside(b)
		g := frozen(t, b)
		for _, drained := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				drain := make(chan struct{})
				o := dispatcher.Options{Grace: time.Minute, Observe: func(e dispatcher.Event) {
					if e.Kind != dispatcher.VisitStarted || e.Path != "embed/two" {
						return
					}
					if drained {
						close(drain)
					} else {
						cancel()
					}
				}}
				began := time.Now()
				res, err := process(t, g, new(memory.Store), o).Run(ctx, run, nil, dispatcher.Drain(drain))
				if took := time.Since(began); took > 0 {
					t.Errorf("%s beside it, drained %v: the call took %v, and nothing was running", name, drained, took)
				}
				want := checkpoint.StatusCancelled
				if drained {
					want = checkpoint.StatusRunning
				}
				if res.Status != want || err == nil {
					t.Errorf("%s beside it, drained %v: the run is %s, %v, want %s", name, drained, res.Status, err, want)
				}
			})
		}
	}
}

// A run that drains, and in which the time of a question is over, has something to go on with: it
// is left for recovery, and does not rest as one that waits.
func TestDrainBehindAQuestionThatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		b := dag.New[Tale]("asks")
		asks := dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "k", "q", dag.Within(time.Minute), dag.OrDefault("nothing"))
			s.Word.Set(word)
			return err
		})
		works := dag.Step(b, "works", func(context.Context, *Tale) error { lasts(5 * time.Minute); return nil })
		dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, asks, works)
		p := process(t, frozen(t, b), &store, dispatcher.Options{})
		res, err := p.Run(t.Context(), run, nil, dispatcher.Drain(superAfter(30*time.Second)))
		if res.Status != checkpoint.StatusRunning || !errors.Is(err, dispatcher.ErrDrain) {
			t.Errorf("the run is %s, %v, want it left", res.Status, err)
		}
		superUnheld(t, &store, checkpoint.StatusRunning)
		res, err = p.Run(t.Context(), run, nil)
		if completes(t, res, err); res.State.Word.Get() != "nothing" {
			t.Errorf("the state has %q", res.State.Word.Get())
		}
	})
}

// An answer that comes while the last visit of a run that drains is at work is read before the run
// rests, also from a store that does not tell of it: there is something to go on with.
func TestDrainBehindAnAnswerNobodyTellsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := struct{ checkpoint.Store }{new(memory.Store)}
		b := dag.New[Tale]("asks")
		dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "k", "q")
			s.Word.Set(word)
			return err
		})
		dag.Step(b, "works", func(context.Context, *Tale) error { lasts(5 * time.Minute); return nil })
		p := process(t, frozen(t, b), store, dispatcher.Options{})
		var answered sync.WaitGroup
		answered.Go(func() {
			lasts(time.Minute)
			if err := p.Answer(t.Context(), run, "", "yes"); err != nil {
				t.Error(err)
			}
		})
		res, err := p.Run(t.Context(), run, nil, dispatcher.Drain(superAfter(30*time.Second)))
		answered.Wait()
		if res.Status != checkpoint.StatusRunning || !errors.Is(err, dispatcher.ErrDrain) {
			t.Errorf("the run is %s, %v, want it left", res.Status, err)
		}
	})
}

// The cursor of a run that is left amid a visit is behind what the visit has said of its effects,
// also if that is the last thing in the log: whoever goes on from it does.
func TestDrainBehindAnEffect(t *testing.T) {
	for _, lag := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var d *dispatcher.Dispatcher[Tale]
			stop, drained := context.WithCancelCause(t.Context())
			b := dag.New[Tale]("pays")
			dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
				receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "receipt", nil })
				if err != nil {
					return err
				}
				s.Word.Set(receipt)
				if ctx.Err() == nil && stop.Err() == nil {
					if err := d.Enqueue(ctx, run, func(*Tale) {}, dispatcher.Message("m")); err != nil { // it has the posts read
						return err
					}
					synctest.Wait()
					drained(dispatcher.ErrDrain)
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
			d = process(t, frozen(t, b), &store, dispatcher.Options{Lag: lag})
			res, err := d.Run(stop, run, nil)
			if res.Status != checkpoint.StatusRunning || !errors.Is(err, dispatcher.ErrDrain) {
				t.Fatalf("the run is %s, %v, want it left", res.Status, err)
			}
			info, err := store.Stat(t.Context(), run)
			if err != nil || info.Head.Seq != res.Cursor.Seq {
				t.Errorf("lag %d: it is left at entry %d, and the log ends at %d, %v", lag, res.Cursor.Seq, info.Head.Seq, err)
			}
			res, err = d.Resume(t.Context(), run, dispatcher.From(res.Cursor))
			completes(t, res, err)
		})
	}
}
