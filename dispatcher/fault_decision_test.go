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
	for _, v := range verdicts {
		t.Run(v.place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { v.hang(t) })
		})
	}
}

// A verdict is user code that decides: where it stands, how the call names it, and which
// body shares an append with it.
type verdict struct {
	place, name string
	again       []string
}

var verdicts = []verdict{
	{"until", "until of rounds", []string{"rounds/1/x"}},
	{"in", "input of house", nil},
	{"out", "output of house", []string{"house/x"}},
	{"hook before", "InterruptIf for last", []string{"rounds/1/x"}},
	{"hook after", "InterruptIf for last", []string{"last"}},
}

// deciding returns house { x } → rounds { x } → last, and options with a hook; at is called
// wherever user code decides.
func deciding(t testing.TB, w *witness, at func(place string)) (*dag.Graph[Tale], dispatcher.Options) {
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "x", w.sees(nil))
	b := dag.New[Tale]("outer")
	house := dag.Embed(b, "house", frozen(t, inner), func(_, _ *Tale) { at("in") }, func(_, _ *Tale) { at("out") })
	rounds := dag.Loop(b, "rounds", frozen(t, inner), func(*Tale) bool { at("until"); return true }, 2, house)
	dag.Step(b, "last", w.sees(nil), rounds)
	return frozen(t, b), dispatcher.Options{InterruptIf: func(b dispatcher.Boundary) bool {
		if b.Path == "last" {
			at(map[bool]string{false: "hook before", true: "hook after"}[b.After])
		}
		return false
	}}
}

func (v verdict) hang(t *testing.T) {
	var w witness
	var store memory.Store
	hung := false
	g, o := deciding(t, &w, func(place string) {
		if place == v.place && !hung {
			hung = true
			lasts(time.Minute)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	d := process(t, g, &store, o)

	res, err := d.Run(ctx, run, nil)
	stuck(t, res, err, end, v.name)
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
	w.expect(t, append([]string{"house/x", "rounds/1/x", "last"}, v.again...)...)
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
			meanwhile(t, time.Second, func() {
				if err := inner.Post(context.Background(), run, checkpoint.Post{ID: "greeting", Kind: "greeting"}); err != nil {
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
	for name, methods := range map[string][]string{
		"State":  {"Stat", "Read", "Snapshot"},
		"Cancel": {"Stat", "Acquire", "Read", "Append", "Release"},
		"Answer": {"Stat", "Post", "Acquire", "Append", "Release"},
	} {
		for _, method := range methods {
			t.Run(name+"/"+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { hangUnder(t, name, method) })
			})
		}
	}
}

// hangUnder makes a call by name, in which a method of the store hangs that heeds its
// context. A lease that is not given back in time changes nothing of what the call did.
func hangUnder(t *testing.T, name, method string) {
	var w witness
	var inner memory.Store
	g := line(t, &w, func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "sure?")
		return err
	})
	res, err := process(t, g, &inner, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	id := res.Interrupts[0].ID
	d := process(t, g, &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if method == "Post" && k.method == "Acquire" { // else who answers need not post
			return &checkpoint.BusyError{Run: run, Owner: "somebody else"}
		}
		if k.method == method && k.n == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}, dispatcher.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	end := time.Now().Add(time.Second)
	switch name {
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
	if method != "Release" && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the call returned %v, want its context's error", err)
	}
	if method == "Release" && err != nil {
		t.Errorf("the call did its work and returned %v", err)
	}
}
