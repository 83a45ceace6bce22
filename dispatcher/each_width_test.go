package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// The place of an item is taken as soon as it is free: a slow item holds up none but itself.
func TestEachSlowItemHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(6), func(ctx context.Context, s *Tale, item string) error {
			lasts(time.Second)
			if item == "item1" {
				lasts(time.Hour)
			}
			s.Notes.Put(item, time.Since(began).String())
			return nil
		}).With(dag.Policy{Parallel: 2})
		res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		for i, want := range []string{"1h0m1s", "1s", "2s", "3s", "4s", "5s"} {
			if got, _ := res.State.Notes.Get(fmt.Sprint("item", i+1)); got != want {
				t.Errorf("item %d ended after %s, want %s", i+1, got, want)
			}
		}
	})
}

// A run that was cut off with many places goes on with few, and the other way round: never
// are more items at work than there are places now.
func TestEachWidthOfAResume(t *testing.T) {
	for _, graphs := range []bool{false, true} {
		for _, widths := range [][]int{{5, 2, 1}, {1, 3, 2}, {4, 1, 4}} {
			synctest.Test(t, func(t *testing.T) {
				store := new(memory.Store)
				for call, width := range widths {
					var gauge eachGauge
					g := eachPlodders(t, graphs, width, &gauge)
					ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
					res, err := process(t, g, store, dispatcher.Options{Grace: time.Second}).Run(ctx, run, nil)
					cancel()
					if want := width; gauge.most != want && want > 0 {
						t.Errorf("call %d: %d bodies were in flight, want %d", call, gauge.most, want)
					}
					if call < len(widths)-1 {
						if res.Status != checkpoint.StatusTimedOut || len(res.Cursor.Visits) == 0 {
							t.Fatalf("call %d: the run is %s at %q: %v", call, res.Status, res.Cursor.Visits, err)
						}
					}
				}
				res, err := process(t, eachPlodders(t, graphs, 0, new(eachGauge)), store, dispatcher.Options{}).Run(t.Context(), run, nil)
				completes(t, res, err)
				if res.State.Count.Get() != 40 {
					t.Errorf("%d items are counted", res.State.Count.Get())
				}
			})
		}
	}
}

// eachPlodders is a graph of one Each of forty items, each of which takes a second, or two in
// a graph.
func eachPlodders(t testing.TB, graphs bool, width int, gauge *eachGauge) *dag.Graph[Tale] {
	plod := func(ctx context.Context, s *Tale) error {
		defer gauge.begin()()
		return heeds(ctx, time.Second)
	}
	b := dag.New[Tale]("tale")
	if !graphs {
		dag.Each(b, "review", eachOf(40), func(ctx context.Context, s *Tale, _ string) error {
			s.Count.Add(1)
			return plod(ctx, s)
		}).With(dag.Policy{Parallel: width})
		return frozen(t, b)
	}
	leaf := dag.New[Tale]("leaf")
	first := dag.Step(leaf, "first", plod)
	dag.Step(leaf, "second", plod, first)
	dag.EachGraph(b, "review", eachOf(40), frozen(t, leaf), func(*Tale, string, *Tale) {}, func(_ *Tale, _ string, to *Tale) {
		to.Count.Add(1)
	}).With(dag.Policy{Parallel: width})
	return frozen(t, b)
}

// An item that waits for a person leaves its place to the next one. Answered, while the run
// is live or at rest, it queues again, before those that have not begun.
func TestEachWidthBesideAnswers(t *testing.T) {
	for seed := range 12 {
		synctest.Test(t, func(t *testing.T) {
			pick := func(n int, what string) int {
				return int(crc32.ChecksumIEEE(fmt.Append(nil, seed, what))>>8) % n
			}
			width := 1 + pick(3, "width")
			var gauge eachGauge
			var w witness
			b := dag.New[Tale]("tale")
			leaf := dag.New[Tale]("leaf")
			body := func(ctx context.Context, s *Tale) error {
				defer gauge.begin()()
				w.note(ctx)
				if d := time.Duration(pick(3, "lasts "+visitPath(ctx))); d > 0 {
					lasts(d * time.Second)
				}
				for _, key := range []string{"a", "b"}[:pick(3, "asks "+visitPath(ctx))] {
					if _, err := dag.Ask[int](ctx, key, key); err != nil {
						return err
					}
				}
				s.Count.Add(1)
				return nil
			}
			first := dag.Step(leaf, "first", body)
			dag.Step(leaf, "second", body, first)
			dag.EachGraph(b, "review", eachOf(8), frozen(t, leaf), func(*Tale, string, *Tale) {},
				func(from *Tale, _ string, to *Tale) { to.Count.Add(from.Count.Get()) }).With(dag.Policy{Parallel: width})
			g, store := frozen(t, b), new(memory.Store)
			d := process(t, g, store, dispatcher.Options{Parallel: 1 + pick(4, "parallel")})
			for calls := 0; ; calls++ {
				ended := make(chan struct{})
				go eachAnswers(t, d, pick(4, "answers"), ended)
				res, err := d.Run(t.Context(), run, nil)
				close(ended)
				synctest.Wait()
				if gauge.most > width {
					t.Fatalf("seed %d: %d bodies were in flight, want at most %d", seed, gauge.most, width)
				}
				if res.Status == checkpoint.StatusCompleted {
					if res.State.Count.Get() != 16 {
						t.Errorf("%d visits are counted, want 16", res.State.Count.Get())
					}
					return
				}
				if res.Status != checkpoint.StatusInterrupted || calls > 40 {
					t.Fatalf("seed %d: the run is %s at %q: %v", seed, res.Status, res.Cursor.Visits, err)
				}
				for _, i := range res.Interrupts {
					if err := d.Answer(t.Context(), run, i.ID, 1); err != nil && !errors.Is(err, dispatcher.ErrNotAwaited) {
						t.Fatal(err)
					}
				}
				if calls%2 == 0 { // another process
					d = process(t, g, store, dispatcher.Options{})
				}
			}
		})
	}
}

// eachAnswers answers, every few seconds, what a live run has asked.
func eachAnswers(t *testing.T, d *dispatcher.Dispatcher[Tale], every int, ended <-chan struct{}) {
	for every > 0 {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(every) * 700 * time.Millisecond):
		}
		res, err := d.State(context.Background(), run)
		if err != nil {
			continue // it was not opened yet
		}
		for _, i := range res.Interrupts {
			if err := d.Answer(context.Background(), run, i.ID, 1); err != nil && !errors.Is(err, dispatcher.ErrNotAwaited) {
				t.Error(err)
			}
		}
	}
}

// A graph of an item that is held behind a visit leaves its place to the next item too.
func TestEachHeldBehindAVisitLeavesItsPlace(t *testing.T) {
	t.Parallel()
	for _, o := range []dispatcher.Options{
		{InterruptAfter: []string{"review/1/first"}}, {InterruptBefore: []string{"review/1/second"}},
	} {
		store := new(memory.Store)
		g := eachHolders(t)
		res, err := process(t, g, store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "review/1/second")
		if want := []string{"review/2", "review/3"}; !slices.Equal(res.Finished, want) {
			t.Errorf("finished %q, want %q", res.Finished, want)
		}
		res, err = process(t, g, store, o).Resume(t.Context(), run)
		completes(t, res, err)
		if res.State.Count.Get() != 6 {
			t.Errorf("%d visits are counted, want 6", res.State.Count.Get())
		}
	}
}

// eachHolders is a graph of one Each of three graphs of two visits, one after the other.
func eachHolders(t testing.TB) *dag.Graph[Tale] {
	count := func(_ context.Context, s *Tale) error {
		s.Count.Add(1)
		return nil
	}
	leaf := dag.New[Tale]("leaf")
	dag.Step(leaf, "second", count, dag.Step(leaf, "first", count))
	b := dag.New[Tale]("tale")
	dag.EachGraph(b, "review", eachOf(3), frozen(t, leaf), func(*Tale, string, *Tale) {},
		func(from *Tale, _ string, to *Tale) { to.Count.Add(from.Count.Get()) }).With(dag.Policy{Parallel: 1})
	return frozen(t, b)
}

// Items begin in order, and one that was answered before those that have not begun.
func TestEachBeginsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(5), func(ctx context.Context, s *Tale, item string) error {
			w.note(ctx)
			if item == "item2" {
				if _, err := dag.Ask[int](ctx, "why", "?"); err != nil {
					return err
				}
			}
			lasts(time.Second)
			return nil
		}).With(dag.Policy{Parallel: 1})
		dag.Step(b, "beside", func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) })
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		go eachAnswers(t, d, 2, t.Context().Done()) // after 1.4 seconds, in item 4
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		want := []string{"review/1", "review/2", "review/3", "review/2", "review/4", "review/5"}
		if got := w.took(); !slices.Equal(got, want) {
			t.Errorf("bodies began as %q, want %q", got, want)
		}
	})
}

// An item between two attempts keeps its place, and its attempts are its own.
func TestEachAttemptsKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		began := time.Now()
		var order []string
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(3), func(ctx context.Context, s *Tale, item string) error {
			order = append(order, fmt.Sprintf("%s#%d at %v", visitPath(ctx), dag.Attempt(ctx), time.Since(began)))
			w.note(ctx)
			if item != "item1" || dag.Attempt(ctx) > 2 {
				return nil
			}
			return heeds(ctx, time.Hour) // times out
		}).With(dag.Policy{Parallel: 1, Attempts: 3, Timeout: time.Second, Backoff: dag.Constant(time.Minute)})
		res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		want := []string{"review/1#1 at 0s", "review/1#2 at 1m1s", "review/1#3 at 2m2s", "review/2#1 at 2m2s", "review/3#1 at 2m2s"}
		if !slices.Equal(order, want) {
			t.Errorf("bodies began as %q, want %q", order, want)
		}
	})
}
