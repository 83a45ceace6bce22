package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// rewindBeside is a loop of two iterations beside a node "pay". With the options that first
// returns the loop waits until ready is closed, and pay is told when it is done: so "loop/1@1"
// is a checkpoint in the midst of pay.
func rewindBeside(t testing.TB, pay func(ctx context.Context, looped <-chan struct{}) error) (
	g *dag.Graph[Tale], first func(dispatcher.Options, <-chan struct{}) dispatcher.Options,
) {
	t.Helper()
	var w witness
	body := dag.New[Tale]("body")
	dag.Step(body, "in", w.sees(nil))
	b := dag.New[Tale]("beside")
	looped := make(chan struct{})
	dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Said.Len() >= 2 }, 3)
	dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error { return pay(ctx, looped) })
	return frozen(t, b), func(o dispatcher.Options, ready <-chan struct{}) dispatcher.Options {
		o.Observe = func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitStarted && e.Path == "loop/1/in" {
				<-ready
			}
			if e.Kind == dispatcher.VisitDone && e.Path == "loop" {
				close(looped)
			}
		}
		return o
	}
}

// Promise P4: an effect that was begun, and of which nobody knows whether it happened, begins
// again under the key that it had, also behind a rewind: the other side knows it by that one. If
// it was approved it goes on under its approval, for that one key.
func TestRewoundReplayableEffectKeepsItsKey(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var keys []string
		begun := make(chan struct{})
		g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
				keys = append(keys, dag.Key(ctx))
				if len(keys) == 1 {
					close(begun)
					<-looped
				}
				if len(keys) < 4 {
					return 0, errors.New("no reply")
				}
				return 1, nil
			}, dag.Replayable)
			return err
		})
		res, err := callsDispatcher(t, g, store, first(o, begun)).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		d := callsDispatcher(t, g, store, o)
		for n := range 3 {
			if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			if n < 2 {
				rests(t, res, err, checkpoint.StatusFailed, "pay")
				sameMachine(t, d, run)
				continue
			}
			completes(t, res, err)
		}
		if want := slices.Repeat([]string{"tale/pay#pay"}, 4); !slices.Equal(keys, want) {
			t.Errorf("the effect was done under %q, want %q", keys, want)
		}
		sameMachine(t, d, run)
	})
}

// An effect that did not happen before the checkpoint, and did in a later attempt behind it, has
// happened for the rewound run.
func TestRewoundRunKnowsALaterAttempt(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var tries, bank atomic.Int32
		refused := make(chan struct{})
		g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				if tries.Add(1) == 1 {
					return 0, dag.NotDone
				}
				return int(bank.Add(1)), nil
			})
			if tries.Load() == 1 {
				close(refused)
				<-looped
			}
			return err
		})
		d := callsDispatcher(t, g, store, first(o, refused))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "pay")
		d = callsDispatcher(t, g, store, o)
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		for range 2 {
			if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
		}
		if n := bank.Load(); n != 1 {
			t.Errorf("the effect happened %d times", n)
		}
		sameMachine(t, d, run)
	})
}

// An effect that begins under the same path and key behind a rewind to before it is another one: a
// run that goes back to where the first was under way does not take what came of that for its own.
func TestRewoundRunTakesNoOtherEffectForItsOwn(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		tries, begun := 0, make(chan struct{})
		g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				if tries++; tries > 1 {
					return tries, nil
				}
				close(begun)
				<-looped
				return 0, errors.New("no reply")
			})
			return err
		})
		if _, err := callsDispatcher(t, g, store, first(o, begun)).Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
			t.Fatalf("the run came to %v", err)
		}
		var at uint64
		for _, e := range readLog(t, store) {
			if e.Kind == checkpoint.Superstep && e.Path == "loop/1" {
				at = e.Seq
			}
		}
		d := callsDispatcher(t, g, store, o)
		if err := d.Resolve(t.Context(), run, "pay", "pay", dispatcher.NotHappened("no trace")); err != nil {
			t.Fatal(err)
		}
		for n, address := range []string{"0", fmt.Sprintf("%s@%d", run, at)} {
			if err := d.Rewind(t.Context(), run, address, dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if want := n + 2; tries != want {
				t.Errorf("behind a rewind to %s the effect was done %d times, want %d", address, tries, want)
			}
		}
	})
}

// Behind a rewind an effect is known by its key: what came of another one of its visit is not what
// came of it.
func TestRewoundRunKnowsEffectsByTheirKeys(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		tries, begun := 0, make(chan struct{})
		g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				if tries++; tries == 1 {
					close(begun)
					<-looped
				}
				return 0, errors.New("no reply")
			})
			_, told := dag.Effect(ctx, "tell", 1, func(context.Context, int) (int, error) { return 1, nil })
			return errors.Join(err, told)
		})
		if _, err := callsDispatcher(t, g, store, first(o, begun)).Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
			t.Fatalf("the run came to %v", err)
		}
		d := callsDispatcher(t, g, store, o)
		if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) || tries != 1 {
			t.Errorf("the effect was done %d times, and the run came to %v", tries, err)
		}
	})
}

// What somebody has said of an effect that was in doubt at the checkpoint stays said, also if
// that was behind another rewind to it.
func TestRewoundRunKnowsAResolution(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var bank atomic.Int32
		begun := make(chan struct{})
		g, first := rewindBeside(t, func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				bank.Add(1)
				close(begun)
				<-looped
				return 0, errors.New("no reply")
			})
			return err
		})
		d := callsDispatcher(t, g, store, first(o, begun))
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
			t.Fatalf("the run came to %v", err)
		}
		d = callsDispatcher(t, g, store, o)
		for n := range 3 {
			if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				if err := d.Resolve(t.Context(), run, "pay", "pay", dispatcher.Happened(1)); err != nil {
					t.Fatal(err)
				}
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
		}
		if n := bank.Load(); n != 1 {
			t.Errorf("the effect happened %d times", n)
		}
		sameMachine(t, d, run)
	})
}

// What an effect of a node is that got its name from a migration is not taken, by a run that goes
// back to before that, for what came of an effect that had not happened there: that is done again,
// under its own key.
func TestRewoundRunKnowsNoEffectBehindARename(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var keys []string
		begun := make(chan struct{})
		pay := func(ctx context.Context, looped <-chan struct{}) error {
			_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
				if keys = append(keys, dag.Key(ctx)); len(keys) == 1 {
					close(begun)
					<-looped
					return 0, errors.New("no reply")
				}
				return len(keys), nil
			})
			return err
		}
		g, first := rewindBeside(t, pay)
		d := callsDispatcher(t, g, store, first(o, begun))
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dag.ErrInDoubt) {
			t.Fatalf("the run came to %v", err)
		}
		if err := d.Resolve(t.Context(), run, "pay", "pay", dispatcher.NotHappened("no trace of it")); err != nil {
			t.Fatal(err)
		}

		body := dag.New[Tale]("body")
		dag.Step(body, "in", new(witness).sees(nil))
		b := dag.New[Tale]("beside")
		dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Said.Len() >= 2 }, 3)
		pays := func(ctx context.Context, _ *Tale) error { return pay(ctx, nil) }
		dag.Step(b, "pay", pays, dag.Step(b, "first", pays))
		o.Migrations = []dispatcher.Migration{{Name: "m", Nodes: map[string]string{"pay": "first"}}}
		d = callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		want := []string{"tale/pay#pay", "tale/first#pay", "tale~0.1/pay#pay", "tale~1/first#pay", "tale~1.1/pay#pay"}
		if !slices.Equal(keys, want) {
			t.Errorf("the effects were done under %q, want %q", keys, want)
		}
		sameMachine(t, d, run)
	})
}

// Nor is it taken where the run has gone back, in between, to a checkpoint behind the migration, at
// which the effect of the node that has the name now had not happened either.
func TestRewoundRunKnowsNoEffectOfARenamedNode(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var m till
		var refused sync.WaitGroup
		refused.Add(2)
		refuses := func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) {
				refused.Done()
				refused.Wait()
				return 0, dag.NotDone
			})
			return err
		}
		program := func(pay func(context.Context, *Tale) error, o dispatcher.Options, names ...string) *dispatcher.Dispatcher[Tale] {
			b := dag.New[Tale]("shop")
			for _, name := range names {
				dag.Step(b, name, pay)
			}
			return callsDispatcher(t, frozen(t, b), store, o)
		}
		edits := func(d *dispatcher.Dispatcher[Tale]) string {
			t.Helper()
			if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
				t.Fatal(err)
			}
			at, err := d.At(t.Context(), run, "")
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s@%d", run, at.Cursor.Seq)
		}
		goesBack := func(d *dispatcher.Dispatcher[Tale], at string) {
			t.Helper()
			if err := d.Rewind(t.Context(), run, at, dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Resume(t.Context(), run)
			completes(t, res, err)
			sameMachine(t, d, run)
		}

		res, err := program(refuses, o, "a", "b").Run(t.Context(), run, nil)
		if res.Status != checkpoint.StatusFailed {
			t.Fatalf("the run is %s: %v", res.Status, err)
		}
		was := program(m.buys, o, "a", "b")
		before := edits(was)
		o.Migrations = []dispatcher.Migration{{Name: "m", Nodes: map[string]string{"a": "b", "b": "c"}}}
		now := program(m.buys, o, "b", "c")
		goesBack(now, edits(now))
		goesBack(was, before)
		slices.Sort(m.keys)
		if want := []string{"tale~1.1/b#pay", "tale~1/c#pay", "tale~2/a#pay", "tale~2/b#pay"}; !slices.Equal(m.keys, want) {
			t.Errorf("the effects were done under %q, want %q", m.keys, want)
		}
	})
}

// A run that is deleted and made again under its id has the keys that it had: the other side of its
// effects takes them for the same.
func TestARunMadeAgainHasTheSameKeys(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var keys []string
		d := callsDispatcher(t, effectNode(t, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", 1, func(ctx context.Context, _ int) (int, error) {
				keys = append(keys, dag.Key(ctx))
				return 0, nil
			})
			return err
		}, dag.Policy{}), store, o)
		for range 2 {
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if err := store.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
		if len(keys) != 2 || keys[0] != keys[1] {
			t.Errorf("the keys are %q, want the same twice", keys)
		}
	})
}
