package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Questions end in the same way over every store, also inside items and iterations, and a
// snapshot of the run is what a replay leads to, whatever has ended how.
func TestAskOverStores(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		inner := dag.New[Tale]("inner")
		dag.Step(inner, "asks", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "word", "which?", dag.Within(time.Millisecond), dag.OrDefault("none"))
			if err == nil {
				s.Said.Append(visitPath(ctx) + " " + word)
			}
			return err
		})
		b := dag.New[Tale]("stores")
		loop := dag.Loop(b, "loop", frozen(t, inner), func(*Tale) bool { return false }, 2)
		items := dag.Each(b, "items", func(*Tale) []int { return []int{1, 2, 3} }, func(ctx context.Context, s *Tale, _ int) error {
			word, err := dag.Ask[string](ctx, "word", "which?", dag.Within(time.Hour))
			info, ended := dag.Reply(ctx, "word")
			if !ended {
				return err
			}
			s.Said.Append(fmt.Sprint(visitPath(ctx), " ", info.How, " ", info.By, word))
			return nil
		})
		late := dag.Step(b, "late", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[int](ctx, "number", "how many?", dag.Within(time.Nanosecond))
			return err
		})
		sorry := dag.Step(b, "sorry", func(ctx context.Context, s *Tale) error {
			s.Said.Append(string(dag.Failures(ctx)[0].Kind))
			return nil
		}, late.Failed())
		dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, dag.All(loop, items, sorry))
		g := frozen(t, b)
		d := callsDispatcher(t, g, store, dispatcher.Eager(o))
		for call := 0; ; call++ {
			res, err := d.Run(t.Context(), run, nil)
			if err == nil {
				completes(t, res, err)
				break
			}
			if !errors.Is(err, dispatcher.ErrInterrupted) || call > 100 {
				t.Fatalf("call %d: %v", call, err)
			}
			for _, i := range res.Interrupts {
				switch i.Path {
				case "items/1":
					err = d.Answer(t.Context(), run, i.ID, "this", dispatcher.Author("Ada"))
				case "items/2":
					err = d.Skip(t.Context(), run, i.ID)
				case "items/3":
					err = d.Answers(t.Context(), run, map[string]any{i.ID: "that"})
				default: // it is over in a moment
					<-time.After(time.Until(i.Until))
					err = nil
				}
				if err != nil {
					t.Fatalf("%v: %v", i, err)
				}
			}
		}
		res, err := d.State(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		got := res.State.Said.Slice()
		want := []string{
			"expired", "items/1 answered Adathis", "items/2 skipped ", "items/3 answered that",
			"loop/1/asks none", "loop/2/asks none",
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the nodes said %q, want %q", got, want)
		}
		for seq := range res.Cursor.Seq {
			kept, err := dispatcher.MachineAt(t.Context(), d, run, seq+1)
			if err != nil {
				t.Fatal(err)
			}
			if replayed, err := dispatcher.Replayed(t.Context(), d, run, seq+1); err != nil || !bytes.Equal(kept, replayed) {
				t.Fatalf("at entry %d the snapshot is\n%s\nand a replay\n%s, %v", seq+1, kept, replayed, err)
			}
		}
	})
}

// A store that fails, or hangs, while a live run ends a question ends the call like any other
// call of it; the question stays, and ends in the next call.
func TestAskExpiryOverAStoreThatFails(t *testing.T) {
	for _, method := range []string{"Post", "Posts"} {
		for _, hang := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var inner memory.Store
				var broken atomic.Bool
				goOn := make(chan struct{})
				store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
					switch {
					case c.method != method || !broken.Load():
						return nil
					case hang:
						<-goOn
					}
					return errFire
				}}
				g := askTimed(t, &w, make(chan struct{}), dag.Within(time.Hour), dag.OrDefault("none"))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				time.AfterFunc(time.Minute, func() { broken.Store(true) })
				begin := time.Now()
				res, err := process(t, g, store, dispatcher.Options{Grace: time.Second}).Run(ctx, run, nil)
				took := time.Since(begin)
				if hang && (took != 2*time.Hour+time.Second || !slices.Contains(res.Abandoned, "ending questions that have expired")) {
					t.Errorf("%s hangs: the call took %v and abandoned %v: %v", method, took, res.Abandoned, err)
				}
				if !hang && (!errors.Is(err, errFire) || took != time.Hour) {
					t.Errorf("%s fails: the call took %v and returned %v", method, took, err)
				}
				close(goOn)
				synctest.Wait()
				w.took()
				d := process(t, askTimed(t, &w, closedChan(), dag.Within(time.Hour), dag.OrDefault("none")), &inner, dispatcher.Options{})
				res, err = d.Run(t.Context(), run, nil)
				completes(t, res, err)
				w.expect(t, "works", "asks", "last")
				if all := askAnswers(t, &inner, run); len(all) != 1 {
					t.Errorf("the log has the answers %v", all)
				}
			})
		}
	}
}
