package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A weighed store weighs what goes to it and comes from it.
type weighed struct {
	memory.Store
	appended, snapshots, taken, read atomic.Int64
}

func (w *weighed) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, es []checkpoint.Entry) (checkpoint.Head, error) {
	for _, e := range es {
		w.appended.Add(weight(e))
	}
	return w.Store.Append(ctx, l, after, es)
}

func (w *weighed) PutSnapshot(ctx context.Context, l checkpoint.Lease, s checkpoint.Snapshot) error {
	w.taken.Add(1)
	w.snapshots.Add(int64(len(s.Data)))
	return w.Store.PutSnapshot(ctx, l, s)
}

func (w *weighed) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	s, err := w.Store.Snapshot(ctx, run, upTo)
	w.read.Add(int64(len(s.Data)))
	return s, err
}

func (w *weighed) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range w.Store.Read(ctx, run, from, to) {
			w.read.Add(weight(e))
			if !yield(e, err) {
				return
			}
		}
	}
}

func weight(e checkpoint.Entry) int64 {
	return int64(len(e.Delta) + len(e.Outer) + len(e.Data) + len(e.Path) + 64)
}

type diary struct {
	Lines state.List[string]
	Page  state.Value[string]
}

// A snapshot has Lists whole, and is taken so seldom that this is cheap: a run that only appends
// takes none, all snapshots together are a quarter of the log at most, and who reads a run cold
// reads five times its state at most, or its snapshot if visits make that larger, however long the
// log has become.
func TestSnapshotsCostAQuarterOfTheLog(t *testing.T) {
	t.Parallel()
	kilobyte := strings.Repeat("k", 1<<10)
	for name, c := range map[string]struct {
		body func(i int, d *diary)
		most int64 // snapshots
	}{
		"only appended to": {func(_ int, d *diary) { d.Lines.Append(kilobyte) }, 0},
		"at rest beside a cell that is replaced": {func(i int, d *diary) {
			if i == 0 {
				d.Lines.Append(strings.Repeat("l", 128<<10))
			}
			d.Page.Set(kilobyte)
		}, 4},
		"growing beside a cell that is replaced": {func(_ int, d *diary) {
			d.Lines.Append(kilobyte[:64])
			d.Page.Set(kilobyte)
		}, 20},
		"replaced": {func(_ int, d *diary) { d.Lines.Replace([]string{kilobyte, kilobyte}) }, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &weighed{}
				g := diaryOf(t, 2_000, func(i int, d *diary) {
					synctest.Wait() // for the snapshot that is being written, if there is one
					c.body(i, d)
				})
				d, err := dispatcher.New(g, w, dispatcher.Options{})
				if err != nil {
					t.Fatal(err)
				}
				res, err := d.Start(t.Context(), "run", nil)
				completes(t, res, err)
				const slack = 64 << 10
				live := int64(len(asJSON(t, res.State)))
				if n := w.taken.Load(); n > c.most {
					t.Errorf("%d snapshots were taken, want at most %d", n, c.most)
				}
				if most := w.appended.Load()/4 + slack; w.snapshots.Load() > most {
					t.Errorf("snapshots have %d bytes together, want at most %d: a quarter of the log", w.snapshots.Load(), most)
				}
				last, err := w.Store.Snapshot(t.Context(), "run", 0)
				if err != nil && c.most > 0 {
					t.Fatal(err)
				}
				if _, err := process(t, g, w, dispatcher.Options{}).State(t.Context(), "run"); err != nil {
					t.Fatal(err)
				}
				if most := 5*max(live, int64(len(last.Data))) + 2*slack; w.read.Load() > most {
					t.Errorf("%d bytes were read cold, want at most %d: five times the state", w.read.Load(), most)
				}
				t.Logf("state %d B, log %d B, %d snapshots of %d B together, %d B read cold",
					live, w.appended.Load(), w.taken.Load(), w.snapshots.Load(), w.read.Load())
			})
		})
	}
}

func diaryOf(t *testing.T, nodes int, body func(i int, d *diary)) *dag.Graph[diary] {
	b := dag.New[diary]("diary")
	var after []dag.Edge[diary]
	for i := range nodes {
		after = []dag.Edge[diary]{dag.Step(b, fmt.Sprintf("day-%d", i), func(_ context.Context, d *diary) error {
			body(i, d)
			return nil
		}, after...)}
	}
	return frozen(t, b)
}

// A snapshot that is due is written before the next one is, also by a store that answers at once
// and where there is one processor: else the next call would find that it is due, and its caller
// would wait for it.
func TestSnapshotsAreNotLeftToTheNextCall(t *testing.T) { // not parallel: it takes a processor away
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for n := 20; ; n-- { // the goroutine that writes the last one may be preempted, and the run have ended by then
		var store memory.Store
		d := callsDispatcher(t, askChain(t, 1_000), &store, dispatcher.Options{})
		if _, err := d.Start(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		log := len(readLog(t, &store))
		s, err := store.Snapshot(t.Context(), run, 0)
		switch {
		case err == nil && log >= 2_000 && s.Head.Seq >= 1_900: // one is due every 970 entries or so
			return
		case n == 1:
			t.Fatalf("the newest snapshot of a log of %d entries is at %d, %v", log, s.Head.Seq, err)
		}
	}
}

type tally struct {
	N state.Sum[int]
}

// Behind an Each that has merged into little, wherever it stands, the log is long for what is
// alive, and a snapshot is due: who reads the run cold reads little. While it is open none is.
func TestSnapshotBehindAnEach(t *testing.T) {
	t.Parallel()
	adds := func(_ context.Context, s *tally, _ int) error { s.N.Add(1_000_000); return nil }
	each := func(b *dag.Builder[tally], items int) dag.Edge[tally] {
		return dag.Each(b, "each", func(*tally) []int { return make([]int, items) }, adds)
	}
	for name, build := range map[string]func(b *dag.Builder[tally], items int) dag.Edge[tally]{
		"in the run's own graph": each,
		"in a Loop": func(b *dag.Builder[tally], items int) dag.Edge[tally] {
			body := dag.New[tally]("body")
			tallyAsks(body, each(body, items))
			return dag.Loop(b, "loop", frozen(t, body), func(*tally) bool { return true }, 3)
		},
		"in an Embed": func(b *dag.Builder[tally], items int) dag.Edge[tally] {
			inner := dag.New[tally]("inner")
			tallyAsks(inner, each(inner, items))
			return dag.Embed(b, "embed", frozen(t, inner), func(*tally, *tally) {}, func(*tally, *tally) {})
		},
		"in a Loop in a Loop": func(b *dag.Builder[tally], items int) dag.Edge[tally] {
			inner, outer := dag.New[tally]("inner"), dag.New[tally]("outer")
			tallyAsks(inner, each(inner, items))
			dag.Loop(outer, "loop", frozen(t, inner), func(*tally) bool { return true }, 3)
			return dag.Loop(b, "loop", frozen(t, outer), func(*tally) bool { return true }, 3)
		},
	} {
		for _, items := range []int{1_400, 2_000, 5_000} {
			t.Run(fmt.Sprint(name, " ", items), func(t *testing.T) {
				b := dag.New[tally]("tally")
				tallyAsks(b, build(b, items))
				g, w := frozen(t, b), &weighed{}
				d := callsDispatcher(t, g, w, dispatcher.Options{})
				if _, err := d.Start(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Fatal(err)
				}
				w.read.Store(0)
				if _, err := process(t, g, w, dispatcher.Options{}).State(t.Context(), run); err != nil {
					t.Fatal(err)
				}
				if n, read := w.taken.Load(), w.read.Load(); n != 1 || read > 64<<10 {
					t.Errorf("%d snapshots were taken, want 1; of a log of %d bytes %d were read cold", n, w.appended.Load(), read)
				}
			})
		}
	}
}

// tallyAsks adds a node that waits for a person.
func tallyAsks(b *dag.Builder[tally], after ...dag.Edge[tally]) {
	dag.Step(b, "asks", func(ctx context.Context, _ *tally) error {
		_, err := dag.Ask[string](ctx, "q", "what?")
		return err
	}, after...)
}
