package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"sync"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

var errProbe = errors.New("probe")

type failAppend struct {
	*memory.Store
	mu sync.Mutex
	n int
	at int
}

func (f *failAppend) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, es []checkpoint.Entry) (checkpoint.Head, error) {
	f.mu.Lock(); f.n++; n := f.n; f.mu.Unlock()
	if n == f.at { return checkpoint.Head{}, fmt.Errorf("%w: probe", checkpoint.ErrFull) }
	return f.Store.Append(ctx, l, after, es)
}

// 1 grace nanosecond
func TestProbeGraceNano(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			b := dag.New[Tale]("g")
			dag.Step(b, "a", func(ctx context.Context, s *Tale) error { lasts(time.Minute); return nil })
			g := frozen(t, b)
			var store memory.Store
			d := process(t, g, &store, dispatcher.Options{Grace: 1})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := d.Run(ctx, run, nil)
			if !errors.Is(err, context.DeadlineExceeded) { t.Log(res.Abandoned, err) }
			lasts(time.Hour)
		})
	}
}

// 2 goexit in Retry / Observe
func TestProbeGoexitRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return errProbe }).With(dag.Policy{Attempts: 3, Retry: func(error) bool { runtime.Goexit(); return true }})
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		t.Log(res.Status, err)
	})
}
func TestProbeGoexitObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return nil })
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{Observe: func(dispatcher.Event) { runtime.Goexit() }})
		res, err := d.Run(t.Context(), run, nil)
		t.Log(res.Status, err)
	})
}

// 3 append fails with siblings in flight
func TestProbeAppendFailsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return nil })
		for _, n := range []string{"b", "c", "d"} {
			dag.Step(b, n, func(ctx context.Context, s *Tale) error { return heeds(ctx, time.Minute) })
		}
		g := frozen(t, b)
		store := &failAppend{Store: &memory.Store{}, at: 2}
		d := process(t, g, store, dispatcher.Options{})
		began := time.Now()
		res, err := d.Run(t.Context(), run, nil)
		t.Log(res.Status, err, time.Since(began))
	})
}

// 4 Append hangs with siblings in flight
type hangStore struct {
	*memory.Store
	mu sync.Mutex
	n, at int
	call string
	free chan struct{}
	heed bool
}

func (h *hangStore) hang(ctx context.Context, call string) {
	h.mu.Lock()
	if h.call != call { h.mu.Unlock(); return }
	h.n++; n := h.n; h.mu.Unlock()
	if n != h.at { return }
	if h.heed { select { case <-h.free: case <-ctx.Done(): }; return }
	<-h.free
}
func (h *hangStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, es []checkpoint.Entry) (checkpoint.Head, error) {
	h.hang(ctx, "append")
	return h.Store.Append(ctx, l, after, es)
}
func (h *hangStore) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	h.hang(ctx, "acquire")
	return h.Store.Acquire(ctx, id, owner)
}
func (h *hangStore) Posts(ctx context.Context, id string) ([]checkpoint.Post, error) {
	h.hang(ctx, "posts")
	return h.Store.Posts(ctx, id)
}
func (h *hangStore) Snapshot(ctx context.Context, id string, upTo uint64) (checkpoint.Snapshot, error) {
	h.hang(ctx, "snapshot")
	return h.Store.Snapshot(ctx, id, upTo)
}

func TestProbeAppendHangsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return nil })
		for _, n := range []string{"b", "c", "d"} {
			dag.Step(b, n, func(ctx context.Context, s *Tale) error { return heeds(ctx, time.Minute) })
		}
		g := frozen(t, b)
		store := &hangStore{Store: &memory.Store{}, at: 2, call: "append", free: make(chan struct{})}
		d := process(t, g, store, dispatcher.Options{})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := d.Run(ctx, run, nil)
		t.Log(res.Status, res.Abandoned, err, time.Since(began))
		close(store.free)
		lasts(time.Hour)
	})
}

// 5 acquire hangs, heeding its context
func TestProbeAcquireHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return nil })
		g := frozen(t, b)
		store := &hangStore{Store: &memory.Store{}, at: 1, call: "acquire", free: make(chan struct{}), heed: true}
		d := process(t, g, store, dispatcher.Options{})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Hour, func() { close(store.free) })
		res, err := d.Run(ctx, run, nil)
		t.Log(res.Status, res.Abandoned, err, time.Since(began))
		if time.Since(began) > 6*time.Second { t.Error("too long") }
	})
}

// 6 slots: timeout includes waiting; abandoned keeps its slot
func TestProbeSlotTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		for _, n := range []string{"a", "b"} {
			dag.Step(b, n, func(ctx context.Context, s *Tale) error { return heeds(ctx, time.Second) }).With(dag.Policy{Timeout: 1500 * time.Millisecond})
		}
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{Parallel: 1})
		res, err := d.Run(t.Context(), run, nil)
		if err != nil { t.Error(res.Status, err) }
	})
}
func TestProbeSlotLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		first := true
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { if first { first = false; lasts(time.Minute) }; return nil })
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{Parallel: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Run(ctx, run, nil)
		t.Log(err)
		lasts(time.Hour)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := d.Run(ctx, run, nil)
		if err != nil { t.Error(res.Status, err) }
	})
}

// 7 superstep limit beside a running node
func TestProbeLimitBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		body := dag.New[Tale]("body")
		dag.Step(body, "x", w.sees(nil))
		b := dag.New[Tale]("g")
		dag.Step(b, "slow", func(ctx context.Context, s *Tale) error { return heeds(ctx, time.Minute) })
		dag.Loop(b, "l", frozen(t, body), func(s *Tale) bool { return false }, 100)
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 6}})
		_, err := d.Run(t.Context(), run, nil)
		if n := len(w.took()); n > 6 { t.Errorf("%d ran: %v", n, err) }
	})
}

// 8 two cancels
func TestProbeTwoCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "a", func(ctx context.Context, s *Tale) error { return heeds(ctx, time.Minute) })
		g := frozen(t, b)
		var store memory.Store
		d := process(t, g, &store, dispatcher.Options{})
		other := process(t, g, &store, dispatcher.Options{})
		ended := make(chan error, 1)
		go func() { _, err := d.Run(t.Context(), run, nil); ended <- err }()
		synctest.Wait()
		if err := other.Cancel(t.Context(), run, errProbe); err != nil { t.Fatal(err) }
		if err := other.Cancel(t.Context(), run, errProbe); err != nil { t.Fatal(err) }
		t.Log(<-ended)
		posts, _ := store.Posts(t.Context(), run)
		t.Log(posts)
		res, err := d.Resume(t.Context(), run)
		if err != nil { t.Error(res.Status, err) }
	})
}

// 9 InterruptIf: one true, one panics
func TestProbeHookPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		b := dag.New[Tale]("g")
		x := dag.Step(b, "x", w.sees(nil))
		y := dag.Step(b, "y", w.sees(nil))
		dag.Step(b, "z", w.sees(nil), x, y)
		g := frozen(t, b)
		var store memory.Store
		bad := true
		o := dispatcher.Options{InterruptIf: func(b dispatcher.Boundary) bool {
			if !b.After { return false }
			if b.Path == "y" && bad { panic("hook") }
			return b.Path == "x"
		}}
		d := process(t, g, &store, o)
		res, err := d.Run(t.Context(), run, nil)
		t.Log(res.Status, res.Interrupts, res.Cursor, err)
		bad = false
		for i := range 4 {
			res, err = d.Resume(t.Context(), run)
			t.Log(i, res.Status, res.Interrupts, res.Cursor, res.State.Said.Slice(), err)
			if err == nil { break }
		}
		says(t, res.State, "x", "y", "z")
	})
}

// 10 no watcher, two answers
type blind struct{ checkpoint.Store }

func TestProbeTwoAnswersNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("g")
		dag.Step(b, "ask", func(ctx context.Context, s *Tale) error {
			w, err := dag.Ask[string](ctx, "k", "q")
			if err != nil { return err }
			s.Word.Set(w)
			return nil
		})
		free := make(chan struct{})
		dag.Step(b, "slow", func(ctx context.Context, s *Tale) error { <-free; return nil })
		g := frozen(t, b)
		store := blind{&memory.Store{}}
		d := process(t, g, store, dispatcher.Options{})
		ended := make(chan error, 1)
		go func() { _, err := d.Run(t.Context(), run, nil); ended <- err }()
		synctest.Wait()
		res, err := d.State(t.Context(), run)
		if err != nil { t.Fatal(err) }
		id := res.Interrupts[0].ID
		t.Log(d.Answer(t.Context(), run, id, "one"))
		close(free)
		t.Log(<-ended)
		err = d.Answer(t.Context(), run, id, "two")
		t.Log("second", err)
		res, err2 := d.Run(t.Context(), run, nil)
		t.Log(res.Status, res.State.Word.Get(), err2)
		if err == nil { t.Error("two answers accepted") }
	})
}
