package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/agent/script"
	"github.com/pawlgo/pawl/pawltest"
)

// A what-if fork whose process dies at any write, that which makes the fork included, comes to what
// it would have come to. The model is asked again for nothing but the reply that was lost, and the
// run that was forked stays as it is.
func TestAWhatIfForkSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Mountaineer)
	store := &pawltest.Mortal{Store: w.store}
	w.store = store
	w.restart(t)
	w.goes(t, compare, "")
	for _, after := range []bool{false, true} {
		die := store.DieBefore
		if after {
			die = store.DieAfter
		}
		for n := 1; ; n++ {
			id, calls := fmt.Sprintf("what-if-%t-%d", after, n), w.Calls()
			die(n)
			_, err := w.process(t, id)
			died := store.Died()
			if died != errors.Is(err, pawltest.ErrDead) {
				t.Fatalf("write %d, after it %t: died %t, and the process says %v", n, after, died, err)
			}
			if err := store.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			m, err := w.process(t, id)
			if err != nil || m.Answer.Get() != "For a child: "+difference {
				t.Fatalf("write %d, after it %t: the fork comes to %v", n, after, err)
			}
			if again := w.Calls() - calls; again < 1 || again > 2 {
				t.Errorf("write %d, after it %t: the model was asked %d times", n, after, again)
			}
			if !died {
				break
			}
		}
	}
	if m := w.goes(t, compare, "").State; m.Answer.Get() != difference {
		t.Errorf("the run that was forked answers %q", m.Answer.Get())
	}
}

// process is one that forks the run, unless another has, and brings the fork to its end.
func (w *world) process(t *testing.T, id string) (*Mind, error) {
	t.Helper()
	w.restart(t)
	_, err := w.Fork(t.Context(), "r", "0", dispatcher.ForkOptions[Mind]{
		Into: []string{id}, Effects: dispatcher.ReuseOrLive, Edit: func(m *Mind) { m.Audience.Set("a child") },
	})
	if err != nil && !errors.Is(err, dispatcher.ErrExists) {
		return nil, err
	}
	res, err := w.Run(t.Context(), id, nil)
	if err != nil {
		return nil, err
	}
	return res.State, nil
}
