package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// User code that decides something may hang like a node does: the call returns in time and
// names it; what it would have said is asked again by the next call. Its verdict would have
// shared an append with what had just finished, so that is not durable, and runs again.
func TestHangingDecision(t *testing.T) {
	for _, place := range []string{"until", "in", "out", "hook before", "hook after"} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var store memory.Store
				hung := false
				hang := func(at string) {
					if at == place && !hung {
						hung = true
						lasts(time.Minute)
					}
				}
				inner := dag.New[Tale]("inner")
				dag.Step(inner, "x", w.sees(nil))
				b := dag.New[Tale]("outer")
				house := dag.Embed(b, "house", frozen(t, inner),
					func(_, _ *Tale) { hang("in") }, func(_, _ *Tale) { hang("out") })
				rounds := dag.Loop(b, "rounds", frozen(t, inner), func(*Tale) bool { hang("until"); return true }, 2, house)
				dag.Step(b, "last", w.sees(nil), rounds)
				g := frozen(t, b)
				o := dispatcher.Options{InterruptIf: func(b dispatcher.Boundary) bool {
					if b.Path == "last" {
						hang(map[bool]string{false: "hook before", true: "hook after"}[b.After])
					}
					return false
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end := time.Now().Add(time.Second)
				d := process(t, g, &store, o)

				res, err := d.Run(ctx, run, nil)
				names := map[string]string{
					"until": "until of rounds", "in": "input of house", "out": "output of house",
					"hook before": "InterruptIf for last", "hook after": "InterruptIf for last",
				}
				stuck(t, res, err, end, names[place])
				before, _ := store.Stat(t.Context(), run)
				if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) {
					t.Errorf("a run beside it returned %v, want ErrStillRunning", err)
				}
				lasts(2 * time.Minute)
				if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
					t.Errorf("a late verdict was committed: the log went from %d to %d entries", before.Head.Seq, after.Head.Seq)
				}
				res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
				completes(t, res, err)
				again := map[string][]string{
					"until": {"rounds/1/x"}, "out": {"house/x"}, "hook before": {"rounds/1/x"}, "hook after": {"last"},
				}
				w.expect(t, append(again[place], "house/x", "rounds/1/x", "last")...)
			})
		})
	}
}

// Posts may hang in the reader that looks for cancels beside the caller, or in the owner:
// either way a cancelled call returns in time.
func TestHangingPosts(t *testing.T) {
	for n := 1; n <= 3; n++ {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			free := make(chan struct{})
			store := &tampered{Store: &inner, before: hangs("Posts", n, free)}
			g := line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			end := time.Now().Add(time.Minute)
			time.AfterFunc(time.Second, func() {
				if err := inner.Post(t.Context(), run, checkpoint.Post{ID: "greeting", Kind: "greeting"}); err != nil {
					t.Error(err)
				}
			})

			res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
			if took := time.Since(end); err == nil || took > 5*time.Second {
				t.Errorf("call %d of Posts hangs: the run returned %v, %v after the end of its context", n, err, took)
			}
			if res.State == nil {
				t.Error("the result is not valid")
			}
			close(free)
			synctest.Wait()
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			res, err = process(t, g, &inner, dispatcher.Options{}).Run(ctx, run, nil)
			completes(t, res, err)
			says(t, res.State, "a", "b", "c")
		})
	}
}

// Reading, cancelling and answering are calls like any other: they end with their context.
func TestHangingStoreUnderOtherCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
	}{
		{"State", "Stat"}, {"State", "Read"}, {"State", "Snapshot"},
		{"Cancel", "Stat"}, {"Cancel", "Acquire"}, {"Cancel", "Read"}, {"Cancel", "Append"}, {"Cancel", "Release"},
		{"Answer", "Stat"}, {"Answer", "Post"}, {"Answer", "Acquire"}, {"Answer", "Append"}, {"Answer", "Release"},
	} {
		t.Run(c.name+"/"+c.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var inner memory.Store
				g := line(t, &w, func(ctx context.Context, _ *Tale) error {
					_, err := dag.Ask[bool](ctx, "sure", "sure?")
					return err
				})
				res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "b")
				id := res.Interrupts[0].ID
				store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
					if k.method == c.method && k.n == 1 {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}}
				d := process(t, g, store, dispatcher.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end := time.Now().Add(time.Second)
				switch c.name {
				case "State":
					_, err = d.State(ctx, run)
				case "Cancel":
					err = d.Cancel(ctx, run, nil)
				case "Answer":
					err = d.Answer(ctx, run, id, true)
				}
				if took := time.Since(end); took > 5*time.Second {
					t.Errorf("the call returned %v after the end of its context", took)
				}
				if c.method != "Release" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the call returned %v, want its context's error", err)
				}
				if c.method == "Release" && err != nil {
					t.Errorf("the call did its work and returned %v", err)
				}
			})
		})
	}
}
