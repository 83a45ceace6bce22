package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// fanWays are what visits side by side may come to. A run with an observer makes facts of all they
// do; one that nobody hears of does not, and comes to the same.
var fanWays = map[string]part{
	"all are plain":  func(context.Context, *Tale) error { return nil },
	"one fails":      func(context.Context, *Tale) error { return errors.New("no") },
	"one panics":     func(context.Context, *Tale) error { panic("no") },
	"one goes":       func(context.Context, *Tale) error { runtime.Goexit(); return nil },
	"one overflows":  func(_ context.Context, s *Tale) error { s.Count.Add(math.MaxInt); return nil },
	"one sets alone": func(_ context.Context, s *Tale) error { s.Word.Set("w"); return nil },
	"two conflict":   func(_ context.Context, s *Tale) error { s.Count.Set(3); return nil },
	"one is too big": func(_ context.Context, s *Tale) error { s.Word.Set(strings.Repeat("w", 3_000)); return nil },
	"it is too big":  func(_ context.Context, s *Tale) error { s.Word.Set(strings.Repeat("w", 1_990)); return nil },
}

// fanOf is a fan of n nodes that count, between a first and a last one. The one in the middle does
// f too.
func fanOf(t testing.TB, n int, f part) *dag.Graph[Tale] {
	say := func(ctx context.Context, s *Tale) error {
		s.Said.Append(visitPath(ctx))
		s.Count.Add(1)
		return nil
	}
	b := dag.New[Tale]("fan")
	first := dag.Step(b, "first", say)
	sides := make([]dag.Edge[Tale], n)
	for i := range sides {
		sides[i] = dag.Step(b, fmt.Sprint("side", i), func(ctx context.Context, s *Tale) error {
			if i == n/2 {
				return errors.Join(f(ctx, s), say(ctx, s))
			}
			return say(ctx, s)
		}, first)
	}
	inner := dag.Embed(b, "in", strideInner(t, say), func(from, to *Tale) { to.Count.Set(from.Said.Len()) },
		func(from, to *Tale) { to.Count.Add(from.Said.Len()) }, first)
	dag.Step(b, "last", say, append(sides, inner)...)
	return frozen(t, b)
}

// Visits side by side come to the same state, whether anybody listens or not.
func TestFanWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, f := range fanWays {
		t.Run(name, func(t *testing.T) {
			end := func(o dispatcher.Options) string {
				o.Limits.StateBytes, o.Limits.VisitBytes = 2_000, 2_900
				d, err := dispatcher.New(fanOf(t, 20, f), nil, o)
				if err != nil {
					t.Fatal(err)
				}
				res, err := d.Start(t.Context(), run, nil)
				return fmt.Sprint(res.Status, res.Superstep, res.Cursor.Visits, res.Finished, asJSON(t, res.State), err)
			}
			want := end(dispatcher.Options{Observe: func(dispatcher.Event) {}})
			for _, o := range []dispatcher.Options{{}, {Paranoid: true}, {Parallel: 3}} {
				if got := end(o); got != want {
					t.Errorf("%+v: %s\nwith an observer %s", o, got, want)
				}
			}
		})
	}
}

// What a node leaves behind that writes to its draft changes no result, though it has returned long
// ago.
func TestResultIsTheCallersAlone(t *testing.T) {
	t.Parallel()
	drafts := make(chan *Tale, 12)
	d, err := dispatcher.New(chainOf(t, 12, func(_ context.Context, i int, s *Tale) error {
		s.Count.Add(i)
		drafts <- s
		return nil
	}), nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Start(t.Context(), run, nil)
	completes(t, res, err)
	want := asJSON(t, res.State)
	for range 12 {
		s := <-drafts
		if s == res.State {
			t.Error("the state of the result is a draft")
		}
		s.Count.Add(100)
		s.Said.Append("late")
	}
	if got := asJSON(t, res.State); got != want {
		t.Errorf("the result has become %s, it was %s", got, want)
	}
}

// Of a visit beside others whose failure is followed nothing is merged: neither what it wrote, if
// that was why it failed, nor what stood in its place in the superstep before.
func TestNothingIsMergedOfAFailedVisitWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]part{
		"with what it wrote": func(_ context.Context, s *Tale) error { s.Word.Set(strings.Repeat("w", 3_000)); return nil },
		"with an error":      func(context.Context, *Tale) error { return errors.New("no") },
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New[Tale]("fan")
			say := func(ctx context.Context, s *Tale) error { s.Said.Append(visitPath(ctx)); return nil }
			one, two := dag.Step(b, "one", say), dag.Step(b, "two", say)
			both := []dag.Edge[Tale]{one, two}
			failing, beside := dag.Step(b, "failing", fails, both...), dag.Step(b, "beside", say, both...)
			dag.Step(b, "last", say, dag.All(failing.Failed(), beside))
			d, err := dispatcher.New(frozen(t, b), nil, dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 2_900}})
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Start(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, "one", "two", "beside", "last")
			if word := res.State.Word.Get(); word != "" {
				t.Errorf("a word of %d bytes was kept", len(word))
			}
		})
	}
}

// What runs without a store share is not written to by any of them, also not what stands there
// already: the race detector sees that of many at once.
func TestRunsWithoutAStoreShareNothing(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]dispatcher.Options{
		"alone":            {},
		"with an observer": {Observe: func(dispatcher.Event) {}},
		"with hooks": {Hooks: dispatcher.Hooks{
			OnStart: func(context.Context, dispatcher.Start) error { return nil },
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dispatcher.New(fanOf(t, 4, fanWays["one fails"]), nil, o)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for k := range 100 {
				all.Go(func() { _, _ = d.Start(t.Context(), fmt.Sprint("run-", k), nil) })
			}
			all.Wait()
		})
	}
}
