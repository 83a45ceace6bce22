package supervisor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// One key has no more runs at work than AtWork says, though places are free; others take these, and
// what waits of the key has its turn when one of its own has ended.
func TestNoKeyHasMoreAtWorkThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began}}
		s := supervise(t, &store, supervisor.Options{Cap: 4, AtWork: 2, Observe: told.observe}, d)
		var tasks []*supervisor.Task[parcel]
		for _, run := range []string{"a1", "a2", "a3", "a4", "a5"} {
			tasks = append(tasks, submit(t, s, d, "a", run))
		}
		synctest.Wait()
		if working, waiting := s.Load(); working != 2 || waiting != 3 {
			t.Errorf("%d are at work and %d wait, want 2 and 3", working, waiting)
		}
		lasts(500 * time.Millisecond)
		for _, run := range []string{"b1", "b2", "b3", "c1"} {
			tasks = append(tasks, submit(t, s, d, run[:1], run))
		}
		for _, task := range tasks {
			completes(t, task)
		}
		told.expect(t, "0s began a1", "0s began a2", "500ms began b1", "500ms began b2",
			"1s began a3", "1s began c1", // b3 may not, and c has its turn before the next of a
			"1.5s began b3", "1.5s began a4", "2s began a5")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Recovered runs are bounded as well, and a Drain drops all that wait, also of a key that has as
// many at work as it may.
func TestADrainDropsWhatAKeyMayNotHaveAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "a", "b", "c")
		d := process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{AtWork: 1}, d)
		recovered := recovering(t, s)
		synctest.Wait()
		if working, waiting := s.Load(); working != 1 || waiting != 2 {
			t.Errorf("%d are at work and %d wait, want 1 and 2", working, waiting)
		}
		report, err := s.Drain(t.Context())
		if r := <-recovered; err != nil || len(report.Waiting) != 2 || len(r.Rested)+len(r.Left) != 3 {
			t.Errorf("Drain = %+v, %v, and Recover = %+v", report, err, r)
		}
	})
}

// A run that is gone on with for one of another key, who joined it, begins at once if there is a
// place, beside the next of its own.
func TestAPlaceIsTakenThoughItIsOfAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		b := dag.New[parcel]("asks")
		dag.Step(b, "ask", func(ctx context.Context, p *parcel) error {
			lasts(time.Second)
			_, err := dag.Ask[bool](ctx, "ok", nil)
			return err
		})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		d := process(t, g, &store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began}}
		s := supervise(t, &store, supervisor.Options{Cap: 4, AtWork: 1, Observe: told.observe}, d)
		submit(t, s, d, "x", "first")
		submit(t, s, d, "x", "second")
		lasts(500 * time.Millisecond)
		joined := submit(t, s, d, "y", "first")
		_, _ = joined.Wait(t.Context())
		lasts(time.Second)
		told.expect(t, "0s began first", "1s began first", "1s began second")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Keys that have all they may at work are passed over, and keep their places before others.
func TestOneRunBehindKeysThatAreAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var order diary
		d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
			order.note(dag.Key(ctx)[:2])
			lasts(time.Second)
			return nil
		}), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 3, AtWork: 1}, d)
		var tasks []*supervisor.Task[parcel]
		for i := range 3 {
			for _, key := range []string{"a", "b"} {
				tasks = append(tasks, submit(t, s, d, key, fmt.Sprint(key, i)))
				synctest.Wait()
			}
		}
		tasks = append(tasks, submit(t, s, d, "c", "c0"))
		for _, task := range tasks {
			completes(t, task)
		}
		order.mu.Lock()
		defer order.mu.Unlock()
		if at := slices.Index(order.lines, "c0"); at != 2 {
			t.Errorf("c0 is number %d of %q", at, order.lines)
		}
	})
}

// When the store may have room again and no key that waits has a place one is looked for as often
// as the hold says: the run that waits begins soon after it could.
func TestKeysWithoutAPlaceWhileTheStoreWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDevice()
		left(t, "line", 2, store, "called")
		d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(9500 * time.Millisecond); return nil }), store, dispatcher.Options{})
		other := process(t, line(t, "line", 2, nil), store, dispatcher.Options{})
		told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began}}
		s := supervise(t, store, supervisor.Options{AtWork: 1, Observe: told.observe}, d)
		first := submit(t, s, d, "k", "first")
		synctest.Wait()
		store.full.Store(true)
		called := calls(t, s, other, "called", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
			return other.Resume(ctx, "called", drain)
		})
		ends(t, called, checkpoint.ErrFull)
		store.full.Store(false)
		second := submit(t, s, d, "k", "second")
		completes(t, first)
		completes(t, second)
		told.expect(t, "0s began first", "0s began called", "10s began second")
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
