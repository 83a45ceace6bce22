package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

var errAda = errors.New("by Ada")

func solitary(t *testing.T, f func(context.Context, *Tale) error) *dag.Graph[Tale] {
	b := dag.New[Tale]("alone")
	dag.Step(b, "q", f)
	return frozen(t, b)
}

// A cancel of a run at rest, while a stray keeps its lease, is no wish for the next call.
func TestCancelBesideStray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		d := process(t, solitary(t, func(context.Context, *Tale) error {
			if ran.Add(1) == 1 {
				lasts(time.Minute)
			}
			return nil
		}), new(memory.Store), dispatcher.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if res, _ := d.Run(ctx, run, nil); len(res.Abandoned) != 1 {
			t.Fatalf("abandoned %q, want q", res.Abandoned)
		}
		if err := d.Cancel(t.Context(), run, errAda); err != nil {
			t.Fatal(err)
		}
		lasts(2 * time.Minute)
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
	})
}

// gatedPosts is a store of which one Posts, having read, waits for a gate.
type gatedPosts struct {
	*memory.Store
	calls atomic.Int32
	gate  chan struct{}
}

func (g *gatedPosts) Posts(ctx context.Context, id string) ([]checkpoint.Post, error) {
	posts, err := g.Store.Posts(ctx, id)
	if g.calls.Add(1) == 1 {
		<-g.gate
	}
	return posts, err
}

// A cancel that is posted while earlier posts are being read is heard.
func TestCancelWhilePostsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gatedPosts{Store: new(memory.Store), gate: make(chan struct{})}
		d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }), store, dispatcher.Options{})
		time.AfterFunc(1*time.Second, func() {
			_ = store.Post(context.Background(), run, checkpoint.Post{ID: "x", Kind: "other"})
		})
		meanwhile(t, 2*time.Second, func() {
			if err := d.Cancel(context.Background(), run, errAda); err != nil {
				t.Error(err)
			}
		})
		time.AfterFunc(3*time.Second, func() { close(store.gate) })
		began := time.Now()
		res, _ := d.Run(t.Context(), run, nil)
		if took := time.Since(began); res.Status != checkpoint.StatusCancelled || took > time.Minute {
			t.Errorf("%s after %v, want cancelled at once", res.Status, took)
		}
	})
}

// Of a cancel and a deadline, the first says how the run rests.
func TestCancelBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
			lasts(4 * time.Second)
			return ctx.Err()
		}), new(memory.Store), dispatcher.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, func() { _ = d.Cancel(context.Background(), run, errAda) })
		if res, err := d.Run(ctx, run, nil); res.Status != checkpoint.StatusCancelled {
			t.Errorf("Run = %s, %v, want cancelled", res.Status, err)
		}
	})
}

// A store that is no Watcher tells a live run of a cancel when it comes to rest.
func TestCancelWithoutWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := struct{ checkpoint.Store }{new(memory.Store)}
		d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
			_ = heeds(ctx, time.Minute)
			return errors.New("failed")
		}), store, dispatcher.Options{})
		time.AfterFunc(time.Second, func() { _ = d.Cancel(context.Background(), run, errAda) })
		if res, err := d.Run(t.Context(), run, nil); res.Status != checkpoint.StatusCancelled {
			t.Errorf("Run = %s, %v, want cancelled", res.Status, err)
		}
	})
}

// No body begins once the context is done, also if an observer has just ended it.
func TestNoBodyBehindAnObserverThatCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := process(t, solitary(t, func(context.Context, *Tale) error {
		t.Error("the body began")
		return nil
	}), new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitStarted {
			cancel()
		}
	}})
	if res, err := d.Run(ctx, run, nil); res.Status != checkpoint.StatusCancelled {
		t.Errorf("Run = %s, %v, want cancelled", res.Status, err)
	}
}

// An observer that ends the goroutine ends the call, and nothing is lost by that: no
// place for bodies, and no body that would run on unnamed.
func TestObserverThatExitsLosesNothing(t *testing.T) {
	for _, kind := range []dispatcher.EventKind{dispatcher.VisitStarted, dispatcher.VisitDone, dispatcher.Appended} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { exitsAt(t, kind) })
		})
	}
}

func exitsAt(t *testing.T, kind dispatcher.EventKind) {
	var running atomic.Int32
	b := dag.New[Tale]("three")
	for _, name := range []string{"a", "b", "c"} {
		dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
			defer running.Add(-1)
			if running.Add(1); name == "c" {
				return heeds(ctx, time.Minute)
			}
			return nil
		})
	}
	var once atomic.Bool
	o := dispatcher.Options{Parallel: 3, Observe: func(e dispatcher.Event) {
		if e.Kind == kind && (kind != dispatcher.VisitStarted || e.Path == "c") && once.CompareAndSwap(false, true) {
			runtime.Goexit()
		}
	}}
	d := process(t, frozen(t, b), new(memory.Store), o)
	if _, err := d.Run(t.Context(), run, nil); err == nil {
		t.Error("the call of an observer that exits returned no error")
	}
	if n := running.Load(); n > 0 {
		t.Errorf("%d bodies run on behind the call", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, id := range []string{run, run + "2", run + "3"} {
		res, err := d.Run(ctx, id, nil)
		completes(t, res, err)
	}
}
