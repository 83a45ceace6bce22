package dispatcher_test

import (
	"context"
	"slices"
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

// eachAppend is how long an append to an eachDisk takes.
const eachAppend = time.Millisecond

// An eachDisk is a store whose appends take their time, and are noted: how many entries
// each has.
type eachDisk struct {
	tampered
	appends   []int
	snapshots atomic.Int32
}

func newEachDisk() *eachDisk {
	d := new(eachDisk)
	d.Store = new(memory.Store)
	d.before = func(_ context.Context, c call) error {
		switch c.method {
		case "PutSnapshot":
			d.snapshots.Add(1)
		case "Append":
			d.appends = append(d.appends, len(c.entries))
			lasts(eachAppend)
		}
		return nil
	}
	return d
}

// eachLasting is a graph of one Each of n items, each of which lasts as long as last says.
func eachLasting(t testing.TB, n int, p dag.Policy, last func(item int) time.Duration) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("tale")
	items := func(*Tale) []int { return slices.Repeat([]int{0}, n) }
	dag.Each(b, "review", items, func(ctx context.Context, s *Tale, _ int) error {
		s.Count.Add(1)
		if d := last(s.Count.Get()); d > 0 {
			return heeds(ctx, d)
		}
		return nil
	}).With(p)
	return frozen(t, b)
}

// Ten thousand quick items, one after the other or side by side, share a few appends, of which none
// is large. No snapshot is made of what they have done: it would be about as long as their log.
// Behind their merge one may be due.
func TestEachQuickItemsShareAppends(t *testing.T) {
	for _, parallel := range []int{1, 7, 0} {
		synctest.Test(t, func(t *testing.T) {
			const n = 10_000
			g, store := eachLasting(t, n, dag.Policy{Parallel: parallel}, func(int) time.Duration { return 0 }), newEachDisk()
			d, err := dispatcher.New(g, store, dispatcher.Options{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if got := res.State.Count.Get(); got != n {
				t.Errorf("parallel %d: %d items counted, want %d", parallel, got, n)
			}
			if len(store.appends) > 20 {
				t.Errorf("parallel %d: %d appends: %v", parallel, len(store.appends), store.appends[:20])
			}
			if most := slices.Max(store.appends); most > 2*dispatcher.LandingVisits+4 { // waiting and landing; Superstep, Done, Superstep, Completed
				t.Errorf("parallel %d: an append of %d entries", parallel, most)
			}
			made := store.snapshots.Load()
			if s, err := store.Snapshot(t.Context(), run, 0); made != 1 || err != nil || s.Head.Seq != res.Cursor.Seq {
				t.Errorf("parallel %d: %d snapshots, the last one at %d of %d, %v", parallel, made, s.Head.Seq, res.Cursor.Seq, err)
			}
		})
	}
}

// Items that take longer than an append are durable one by one, before the next one begins.
func TestEachSlowItemsAreFlushedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, store := eachLasting(t, 10, dag.Policy{Parallel: 1}, func(int) time.Duration { return 2 * eachAppend }), newEachDisk()
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		// Opened, Entered twice, and the items. The last one shares its append with what follows:
		// two supersteps, the end of the Each, and that of the run.
		want := []int{3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5}
		if !slices.Equal(store.appends, want) {
			t.Errorf("appends of %v entries, want %v", store.appends, want)
		}
	})
}

// Side by side as well: when an item begins, all but those that still run are durable.
func TestEachSlowItemsAreFlushedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newEachDisk()
		b := dag.New[Tale]("tale")
		var items atomic.Int32
		dag.Each(b, "review", eachOf(20), func(ctx context.Context, s *Tale, _ string) error {
			begun, durable := int(items.Add(1)), 0
			for _, e := range readLog(t, store) {
				if e.Kind == checkpoint.Done {
					durable++
				}
			}
			if durable < begun-2 {
				t.Errorf("%d items have begun, and %d are durable", begun, durable)
			}
			return heeds(ctx, time.Duration(10+3*begun)*eachAppend)
		}).With(dag.Policy{Parallel: 2})
		res, err := process(t, frozen(t, b), store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// What is done while an append is under way waits no longer than what is done behind it: 900 ms of
// work, in appends of a tenth of a second, are not kept for company while the store has nothing to
// do.
func TestEachWorkDuringAnAppendIsFlushedBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unit = 100 * time.Millisecond
		store := &tampered{Store: new(memory.Store)}
		var began time.Time
		var appends []time.Duration
		store.before = func(_ context.Context, c call) error {
			if c.method == "Append" {
				if !began.IsZero() {
					appends = append(appends, time.Since(began))
				}
				lasts(unit)
			}
			return nil
		}
		var once sync.Once
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(20), func(ctx context.Context, _ *Tale, item string) error {
			once.Do(func() { began = time.Now() })
			switch item {
			case "item1":
				return heeds(ctx, time.Millisecond)
			case "item20":
				return heeds(ctx, time.Hour)
			}
			return heeds(ctx, unit/2)
		})
		res, err := process(t, frozen(t, b), store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if second := appends[1]; second > unit+5*time.Millisecond {
			t.Errorf("the second append began after %v, and the store had nothing to do from %v on", second, unit+time.Millisecond)
		}
	})
}

// What has waited as long as an append takes waits no longer, though a slow item goes on: an hour
// later nothing but that one would run again, whether others run beside it or it is the last.
func TestEachLagIsNoLongerThanAnAppend(t *testing.T) {
	t.Run("beside another", func(t *testing.T) { lagBesideSlow(t, 4, dag.Policy{Parallel: 2}, "review/3", "review/4") })
	t.Run("alone", func(t *testing.T) { lagBesideSlow(t, 3, dag.Policy{Parallel: 1}, "review/3") })
}

func lagBesideSlow(t *testing.T, items int, p dag.Policy, slow ...string) {
	synctest.Test(t, func(t *testing.T) {
		store := newEachDisk()
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(items), func(ctx context.Context, s *Tale, item string) error {
			s.Said.Append(item)
			if item > "item2" {
				return heeds(ctx, time.Hour)
			}
			return nil
		}).With(p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := process(t, frozen(t, b), store, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitDone && time.Since(e.At) > 3*eachAppend {
				t.Errorf("%v is told after %v", e, time.Since(e.At))
			}
		}}).Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, slow...)
		if want := []string{"review/1", "review/2"}; !slices.Equal(res.Finished, want) {
			t.Errorf("finished %q, want %q", res.Finished, want)
		}
		log := readLog(t, store)
		for _, e := range log {
			if e.Kind == checkpoint.Done && e.At.Sub(log[0].At) > time.Second {
				t.Errorf("%s is durable %v after the run began", e.Path, e.At.Sub(log[0].At))
			}
		}
	})
}

// A crash loses of quick items no more than one append's worth, and those run again.
func TestEachCrashBehindQuickItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, quick = 100, eachAppend / 10
		g, store := eachLasting(t, n, dag.Policy{Parallel: 1}, func(int) time.Duration { return quick }), newEachDisk()
		ran := 0
		o := dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitStarted {
				ran++
			}
		}}
		honest := store.before
		store.before = func(ctx context.Context, c call) error {
			if c.method == "Append" && len(store.appends) == 5 {
				return errDead
			}
			return honest(ctx, c)
		}
		_, err := process(t, g, store, o).Run(t.Context(), run, nil)
		if err == nil {
			t.Fatal("the store died, and the run is completed")
		}
		store.before = honest
		res, err := process(t, g, store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		if res.State.Count.Get() != n || ran > n+10 {
			t.Errorf("%d items are counted, of %d, and %d ran", res.State.Count.Get(), n, ran)
		}
	})
}
