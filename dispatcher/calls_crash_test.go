package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A callsProgram brings a run to its end over any number of processes, each of which does
// what the state of the run tells it to do next. It is called with a fresh process.
type callsProgram func(ctx context.Context, d *dispatcher.Dispatcher[Talk]) (*dispatcher.Result[Talk], error)

// threeTurns gives a run three inputs, one after the other.
func threeTurns(ctx context.Context, d *dispatcher.Dispatcher[Talk]) (*dispatcher.Result[Talk], error) {
	words := []string{"one", "two", "three"}
	res, err := d.Run(ctx, run, hear(words[0]))
	for err == nil && res.Turn < len(words) {
		res, err = d.Turn(ctx, run, hear(words[res.Turn]))
	}
	return res, err
}

// threeInputs gives a run three inputs, of which two are posted, with one that is refused
// between them. A process that does not know what was posted posts again.
func threeInputs(ctx context.Context, d *dispatcher.Dispatcher[Talk]) (*dispatcher.Result[Talk], error) {
	res, err := d.Run(ctx, run, hear("one"))
	for i, word := range []string{"two", "bad", "three"} {
		if err == nil {
			err = d.Enqueue(ctx, run, hear(word), dispatcher.Message(fmt.Sprint(i)))
		}
	}
	if err == nil {
		res, err = d.Run(ctx, run, nil)
	}
	return res, err
}

// Promises P2, P3, P4 and P8 over turns: a run of three that is killed at any append, whether
// that became durable or not, ends as if it had not been, with each input heard once, and
// does nothing again that was durable.
func TestCallsTurnsSurviveCrashes(t *testing.T) {
	for name, program := range map[string]callsProgram{"turns": threeTurns, "posted": threeInputs} {
		for _, paranoid := range []bool{false, true} {
			o := dispatcher.Options{Paranoid: paranoid}
			want, _ := callsLife(t, program, o, 0, false)
			if !strings.Contains(want, "tale/3/say three") {
				t.Fatalf("%s: an undisturbed run says %s", name, want)
			}
			for _, written := range []bool{false, true} {
				for k := 1; ; k++ {
					got, died := callsLife(t, program, o, k, written)
					if got != want {
						t.Fatalf("%s, killed at append %d, written=%t:\n got %s\nwant %s", name, k, written, got, want)
					}
					if !died {
						diedOften(t, k-1, 10)
						break
					}
				}
			}
		}
	}
}

// callsLife runs a program until it ends, with a process that dies at append k (0: none
// does), and tells how the run stands then.
func callsLife(t *testing.T, program callsProgram, o dispatcher.Options, k int, written bool) (string, bool) {
	t.Helper()
	store := new(mortal)
	ran := map[string]int{}
	g := callsTalk(t, func(ctx context.Context, s *Talk) error {
		key := dag.Key(ctx)
		if ran[key]++; ran[key] > 2 {
			t.Errorf("%s runs %d times", key, ran[key])
		}
		s.Lines.Append(key + " " + s.Heard.Get())
		return nil
	})
	died := false
	for life := k; ; life = 0 {
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		res, err := program(t.Context(), callsDispatcher(t, g, store, o))
		if store.died() {
			if !errors.Is(err, errDead) {
				t.Fatalf("the store died, and the program returns %v", err)
			}
			died = true
			continue
		}
		completes(t, res, err)
		if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
			t.Errorf("%d posts are left, %v", len(posts), err)
		}
		return fmt.Sprintf("turn %d, superstep %d: %s", res.Turn, res.Superstep, asJSON(t, res.State)), died
	}
}

// A run of many turns that is read by way of snapshots is the one that a replay from the
// start gives, at every checkpoint.
func TestCallsTurnsFromSnapshots(t *testing.T) {
	store := &forgetful{served: new(atomic.Int32)}
	b := dag.New[Talk]("long")
	hears := dag.Step(b, "hear", func(ctx context.Context, s *Talk) error {
		s.Lines.Append(dag.Key(ctx))
		return nil
	})
	dag.Loop(b, "loop", callsTalk(t, func(context.Context, *Talk) error { return nil }), func(s *Talk) bool { return true }, 1, hears)
	g := frozen(t, b)
	d := process(t, g, store, dispatcher.Options{})
	ctx := t.Context()
	res, err := d.Run(ctx, run, hear("one"))
	completes(t, res, err)
	for i := range 12 {
		res, err = process(t, g, store, dispatcher.Options{}).Turn(ctx, run, func(s *Talk) {
			s.Lines.Truncate(0)
			s.Heard.Set(strings.Repeat(fmt.Sprint(i%10), 5_000))
		})
		completes(t, res, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	res, err = d.Turn(cancelled, run, hear("last"))
	rests(t, res, err, checkpoint.StatusCancelled, "hear")
	read := func(forgets bool) (all []string) {
		store.forgets = forgets
		res, err := d.State(ctx, run)
		all = append(all, fmt.Sprint(res.Turn, res.Cursor, res.Superstep, asJSON(t, res.State), err))
		for p, err := range d.History(ctx, run, "") {
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.At(ctx, run, p.Address())
			all = append(all, fmt.Sprint(p, res.Turn, res.Cursor, res.Superstep, asJSON(t, res.State), err))
		}
		return all
	}
	if with, without := read(false), read(true); !slices.Equal(with, without) {
		t.Errorf("read by way of snapshots\n%.2000q\nand from the start\n%.2000q", with, without)
	}
	if store.served.Load() == 0 {
		t.Error("no snapshot was read")
	}
	store.forgets = false
	res, err = d.Resume(ctx, run)
	completes(t, res, err)
	if res.Turn != 14 || res.Superstep != 28 {
		t.Errorf("turn %d, superstep %d, want 14 and 28", res.Turn, res.Superstep)
	}
}
