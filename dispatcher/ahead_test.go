package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// chainOf is a graph of n nodes, one behind the other, whose body is told their number.
func chainOf(t testing.TB, n int, body func(ctx context.Context, i int, s *Tale) error) *dag.Graph[Tale] {
	b := dag.New[Tale]("chain")
	var after []dag.Edge[Tale]
	for i := range n {
		after = []dag.Edge[Tale]{dag.Step(b, fmt.Sprint("n", i), func(ctx context.Context, s *Tale) error {
			return body(ctx, i, s)
		}, after...)}
	}
	return frozen(t, b)
}

// heldFrom is a store over inner whose appends are held up, from the n-th on, until free is closed.
func heldFrom(inner checkpoint.Store, n int, free <-chan struct{}) *tampered {
	return &tampered{Store: inner, before: func(_ context.Context, c call) error {
		if c.method == "Append" && c.n >= n {
			<-free
		}
		return nil
	}}
}

// A run is at most Lag supersteps ahead of the disk, and as far ahead as it may be; and nobody is
// told of what is not durable, neither by an event nor by the return of the call.
func TestLagIsHowFarARunIsAhead(t *testing.T) {
	for lag := range 5 {
		synctest.Test(t, func(t *testing.T) {
			var began atomic.Int32
			var inner memory.Store
			free := make(chan struct{})
			g := chainOf(t, 40, func(_ context.Context, i int, s *Tale) error {
				began.Add(1)
				s.Said.Append(fmt.Sprint(i))
				return nil
			})
			var seen []uint64
			d := process(t, g, heldFrom(&inner, 4, free), dispatcher.Options{Lag: lag, Observe: func(e dispatcher.Event) {
				info, err := inner.Stat(t.Context(), run)
				if err != nil || e.Seq > info.Head.Seq {
					t.Errorf("told of %s at %d, the log ends at %d, %v", e.Kind, e.Seq, info.Head.Seq, err)
				}
				if !e.Live {
					seen = append(seen, e.Seq)
				}
			}})
			over := beginRun(t, d)
			synctest.Wait()
			info, err := inner.Stat(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			ended := 0
			for e, err := range inner.Read(t.Context(), run, 1, info.Head.Seq) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == checkpoint.Superstep {
					ended++
				}
			}
			if got := int(began.Load()) - 1 - ended; got != lag {
				t.Errorf("Lag %d: %d supersteps have ended and are not durable", lag, got)
			}
			select {
			case <-over:
				t.Error("the call returned ahead of the disk")
			default:
			}
			close(free)
			e := <-over
			completes(t, e.res, e.err)
			if e.res.State.Said.Len() != 40 {
				t.Errorf("%d nodes ran", e.res.State.Said.Len())
			}
			for i, seq := range seen {
				if seq != uint64(i+1) {
					t.Fatalf("told of the entries %v", seen)
				}
			}
			if last := uint64(len(seen)); last != e.res.Cursor.Seq {
				t.Errorf("told of %d entries, the log has %d", last, e.res.Cursor.Seq)
			}
		})
	}
}

// With a Lag the log is what it is without one.
func TestLagLeavesTheLogAsItIs(t *testing.T) {
	logOf := func(lag int) (all []string) {
		var store memory.Store
		g := chainOf(t, 9, func(_ context.Context, i int, s *Tale) error { s.Said.Append(fmt.Sprint(i)); return nil })
		res, err := process(t, g, &store, dispatcher.Options{Lag: lag}).Run(t.Context(), run, nil)
		completes(t, res, err)
		for e, err := range store.Read(t.Context(), run, 2, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(e.Seq, e.Kind, e.Path, string(e.Delta), string(e.Data)))
		}
		return all
	}
	want := logOf(0)
	for _, lag := range []int{1, 3, 100} {
		if got := logOf(lag); !slices.Equal(got, want) {
			t.Errorf("Lag %d: the log is\n%q\nwant\n%q", lag, got, want)
		}
	}
}

// An effect begins when all that came before it is durable, and an interrupt is told then.
func TestLagEndsBeforeEffectsAndInterrupts(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var inner memory.Store
			free := make(chan struct{})
			did, told := false, false
			g := chainOf(t, 5, func(ctx context.Context, i int, _ *Tale) error {
				switch {
				case i != 3:
					return nil
				case asks:
					_, err := dag.Ask[string](ctx, "go", "on?")
					return err
				}
				_, err := dag.Effect(ctx, "pays", i, func(context.Context, int) (string, error) { did = true; return "", nil })
				return err
			})
			d := process(t, g, heldFrom(&inner, 2, free), dispatcher.Options{Lag: 100, Observe: func(e dispatcher.Event) {
				told = told || e.Kind == dispatcher.VisitInterrupted || e.Kind == dispatcher.EffectBegun
			}})
			over := beginRun(t, d)
			synctest.Wait()
			select {
			case e := <-over:
				t.Errorf("the call returned %v", e.err)
			default:
			}
			if did || told {
				t.Errorf("the effect was done: %t; somebody was told of it, or of the question: %t", did, told)
			}
			close(free)
			e := <-over
			if asks {
				rests(t, e.res, e.err, checkpoint.StatusInterrupted, "n3")
				return
			}
			if completes(t, e.res, e.err); !did {
				t.Error("the effect was not done")
			}
		})
	}
}

// A process dies at any of its appends. What was told is there for the next one, a visit that was
// is not run again, and the run comes to the same end.
func TestLagSurvivesCrashes(t *testing.T) {
	for lag := 1; lag <= 3; lag++ {
		for _, after := range []bool{false, true} {
			for n := 1; ; n++ {
				mortal := &pawltest.Mortal{Store: new(memory.Store)}
				told := map[string]bool{}
				g := chainOf(t, 8, func(ctx context.Context, i int, s *Tale) error {
					if told[fmt.Sprint("n", i)] {
						t.Errorf("Lag %d, death %d: n%d runs again, and was told to be done", lag, n, i)
					}
					s.Said.Append(fmt.Sprint(i))
					return nil
				})
				o := dispatcher.Options{Lag: lag, Observe: func(e dispatcher.Event) {
					if e.Kind == dispatcher.VisitDone {
						told[e.Path] = true
					}
				}}
				mortal.DieBefore(n)
				if after {
					mortal.DieAfter(n)
				}
				res, err := process(t, g, mortal, o).Run(t.Context(), run, nil)
				died := mortal.Died()
				if died {
					if !errors.Is(err, pawltest.ErrDead) {
						t.Fatalf("Lag %d, death %d: %v", lag, n, err)
					}
					if err := mortal.Revive(t.Context()); err != nil {
						t.Fatal(err)
					}
					res, err = process(t, g, mortal, o).Run(t.Context(), run, nil)
				}
				completes(t, res, err)
				if got := res.State.Said.Slice(); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5", "6", "7"}) {
					t.Errorf("Lag %d, death %d: the run has said %q", lag, n, got)
				}
				if !died {
					diedOften(t, n-1, 2)
					break
				}
			}
		}
	}
}

// A store that hangs while a run is ahead of it holds the call up for no longer than the grace
// period.
func TestLagHangingAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		free := make(chan struct{})
		g := chainOf(t, 8, func(context.Context, int, *Tale) error { return nil })
		d := process(t, g, heldFrom(&inner, 3, free), dispatcher.Options{Lag: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end := time.Now().Add(time.Second)
		res, err := d.Run(ctx, run, nil)
		stuck(t, res, err, end, "append")
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) {
			t.Errorf("a run beside it returned %v", err)
		}
		close(free)
		synctest.Wait()
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// slowly is a store over inner each of whose appends takes a while.
func slowly(inner checkpoint.Store, took time.Duration) *tampered {
	return &tampered{Store: inner, before: func(_ context.Context, c call) error {
		if c.method == "Append" {
			time.Sleep(took)
		}
		return nil
	}}
}

// manySided is a graph with all that a run may wait with: items, attempts that fail, effects side
// by side and one behind the other.
func manySided(t testing.TB, fails *atomic.Bool) *dag.Graph[Tale] {
	pays := func(name string) func(context.Context, *Tale) error {
		return func(ctx context.Context, s *Tale) error {
			_, err := dag.Effect(ctx, "pays", name, func(context.Context, string) (string, error) { return name, nil })
			s.Notes.Put(name, "paid")
			return err
		}
	}
	b := dag.New[Tale]("many")
	items := func(*Tale) []int { return []int{1, 2} }
	e0 := dag.Each(b, "e0", items, func(context.Context, *Tale, int) error { return nil })
	f := dag.Step(b, "f", func(context.Context, *Tale) error {
		if fails.CompareAndSwap(false, true) {
			return errors.New("once")
		}
		return nil
	}, e0).With(dag.Policy{Attempts: 2})
	e1 := dag.Each(b, "e1", items, func(context.Context, *Tale, int) error { return nil }, f)
	n1 := dag.Step(b, "n1", func(context.Context, *Tale) error { return nil }, e1)
	n2 := dag.Step(b, "n2", pays("n2"), n1)
	var sides []dag.Edge[Tale]
	for i := range 4 {
		name := fmt.Sprint("side", i)
		sides = append(sides, dag.Step(b, name, pays(name), n2))
	}
	dag.Step(b, "last", pays("last"), sides...)
	return frozen(t, b)
}

// However far a run may be ahead, and whatever is slow, an effect stands in the log behind the
// nodes that it follows from, and events come in the order of the log, each when it is durable.
func TestLagKeepsTheOrder(t *testing.T) {
	for _, took := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		for lag := range 6 {
			for range 5 {
				synctest.Test(t, func(t *testing.T) {
					var inner memory.Store
					next := uint64(1)
					var fails atomic.Bool
					o := dispatcher.Options{Lag: lag * lag * 4, Observe: func(e dispatcher.Event) {
						if e.Live {
							return
						}
						if info, err := inner.Stat(t.Context(), run); err != nil || e.Seq != next || e.Seq > info.Head.Seq {
							t.Errorf("Lag %d: told of %d where %d is next, %v", lag, e.Seq, next, err)
						}
						next = e.Seq + 1
					}}
					res, err := process(t, manySided(t, &fails), slowly(&inner, took), o).Run(t.Context(), run, nil)
					completes(t, res, err)
					at := map[string]uint64{}
					for e, err := range inner.Read(t.Context(), run, 1, 0) {
						if err != nil {
							t.Fatal(err)
						}
						at[fmt.Sprint(e.Kind, " ", e.Path)] = e.Seq
					}
					for _, order := range [][2]string{
						{"done n1", "effect_begun n2"}, {"effect_ended n2", "done n2"}, {"done n2", "effect_begun side0"}, {"done side3", "effect_begun last"},
					} {
						if at[order[0]] == 0 || at[order[0]] > at[order[1]] {
							t.Errorf("Lag %d, appends of %v: %s is entry %d, %s is %d", lag, took, order[0], at[order[0]], order[1], at[order[1]])
						}
					}
				})
			}
		}
	}
}

// A drain returns when all that had ended is durable, and tells what kept it from being so.
func TestLagIsCaughtUpByADrain(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var inner memory.Store
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			broken := errors.New("the disk is broken")
			store := slowly(&inner, 50*time.Millisecond)
			slow := store.before
			store.before = func(ctx context.Context, c call) error {
				_ = slow(ctx, c)
				if breaks && c.method == "Append" && c.n >= 2 {
					return broken
				}
				return nil
			}
			last := uint64(0)
			d := process(t, chainOf(t, 9, func(_ context.Context, i int, s *Tale) error {
				if s.Said.Append(fmt.Sprint(i)); i == 2 {
					cancel(dispatcher.ErrDrain)
				}
				return nil
			}), store, dispatcher.Options{Lag: 10, Observe: func(e dispatcher.Event) {
				if !e.Live {
					last = e.Seq
				}
			}})
			res, err := d.Run(ctx, run, nil)
			if breaks {
				if !errors.Is(err, broken) {
					t.Errorf("the call returned %v, want why nothing is durable", err)
				}
				return
			}
			info, serr := inner.Stat(t.Context(), run)
			if !errors.Is(err, dispatcher.ErrDrain) || serr != nil || res.Cursor.Seq != info.Head.Seq || last != info.Head.Seq {
				t.Errorf("the call returned %v at %s, told of %d entries; the log ends at %d, %v", err, res.Cursor, last, info.Head.Seq, serr)
			}
			then, err := process(t, chainOf(t, 9, func(context.Context, int, *Tale) error { return nil }), &inner, dispatcher.Options{}).State(t.Context(), run)
			if err != nil || !slices.Equal(then.State.Said.Slice(), res.State.Said.Slice()) {
				t.Errorf("the call says %q, the log %q, %v", res.State.Said.Slice(), then.State.Said.Slice(), err)
			}
		})
	}
}

// What was handed over shares no append with what comes behind it if a store could not make them
// atomic together.
func TestLagOfLargeVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		free := make(chan struct{})
		store := heldFrom(&inner, 2, free)
		held := store.before
		store.before = func(ctx context.Context, c call) error {
			size := 0
			for _, e := range c.entries {
				size += len(e.Delta)
			}
			if size > badgerstore.MaxAppend {
				return fmt.Errorf("%w: %d bytes", checkpoint.ErrTooLarge, size)
			}
			return held(ctx, c)
		}
		word := strings.Repeat("x", 8<<20-4000)
		d, err := dispatcher.New(chainOf(t, 4, func(_ context.Context, i int, s *Tale) error {
			for range []int{0, 1, 4, 4}[i] { // 1 is all that may wait without keeping 2 from joining it
				s.Said.Append(word)
			}
			return nil
		}), store, dispatcher.Options{Lag: 9})
		if err != nil {
			t.Fatal(err)
		}
		ended := beginRun(t, d)
		close(free) // its end waits for what was handed over
		e := <-ended
		completes(t, e.res, e.err)
		if res, err := d.State(t.Context(), run); err != nil || res.State.Said.Len() != 9 {
			t.Errorf("the store has %d words, %v", res.State.Said.Len(), err)
		}
	})
}

// A run that is ahead of the disk writes its snapshots on the way, as any other: what a replay
// reads does not grow with it.
func TestLagWritesSnapshotsOnTheWay(t *testing.T) {
	t.Parallel()
	var at []int32
	var done atomic.Int32
	store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
		if c.method == "PutSnapshot" { // one at a time
			at = append(at, done.Load())
		}
		return nil
	}}
	const n = 1000
	g := chainOf(t, n, func(_ context.Context, i int, s *Tale) error {
		s.Word.Set(strings.Repeat("x", 1<<10))
		done.Add(1)
		return nil
	})
	res, err := process(t, g, store, dispatcher.Options{Lag: 4}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if len(at) < 3 || at[0] > n/4 {
		t.Errorf("snapshots were written behind so many visits of %d: %d", n, at)
	}
}
