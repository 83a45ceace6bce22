package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// A narrowStore takes no append and no message that badgerstore would not take.
type narrowStore struct {
	memory.Store
}

func (s *narrowStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	size := 0
	for _, e := range entries {
		size += len(e.Delta) + len(e.Outer) + len(e.Data)
	}
	if size > 60<<20 {
		return after, fmt.Errorf("%w: %d bytes", checkpoint.ErrTooLarge, size)
	}
	return s.Store.Append(ctx, l, after, entries)
}

func (s *narrowStore) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if len(p.Data) > 32<<20 {
		return fmt.Errorf("%w: %d bytes", checkpoint.ErrTooLarge, len(p.Data))
	}
	return s.Store.Post(ctx, run, p)
}

// What is decided side by side, and what is asked, shares an append only as far as a store can make
// it atomic: else a run of which nothing is too large would never go on.
func TestManyLargeDecisionsAtOnce(t *testing.T) {
	const width = 34
	large := strings.Repeat("x", 2<<20)
	items := func(*Tale) []int { return make([]int, width) }
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "reads", func(context.Context, *Tale) error { return nil })
	body := frozen(t, inner)
	each := func(f part) func(*dag.Builder[Tale]) {
		return func(b *dag.Builder[Tale]) {
			dag.Each(b, "each", items, func(ctx context.Context, s *Tale, _ int) error { return f(ctx, s) })
		}
	}
	asks := dispatcher.Interceptor{Name: "asks", Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
		if strings.Contains(c.Path, "/") {
			return dispatcher.Ask(large)
		}
		return dispatcher.Continue()
	}}
	effect := func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "pay", large, func(context.Context, string) (int, error) { return 1, nil })
		return err
	}
	for _, c := range []struct {
		name  string
		graph func(*dag.Builder[Tale])
		o     dispatcher.Options
		waits bool
	}{
		{name: "inputs of frames", graph: func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "each", items, body, func(_ *Tale, _ int, to *Tale) { to.Word.Set(large) }, func(*Tale, int, *Tale) {})
		}},
		{name: "what frames give out", graph: func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "each", items, body, func(*Tale, int, *Tale) {}, func(_ *Tale, _ int, s *Tale) { s.Said.Append(large) })
		}},
		{name: "dependencies", graph: each(func(ctx context.Context, _ *Tale) error {
			return dag.Depends(ctx, dag.Dependency{Name: large, StaleAfter: time.Hour})
		})},
		{name: "questions", waits: true, graph: each(func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[string](ctx, "k", large)
			return err
		})},
		{name: "gates", waits: true, graph: each(effect), o: dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"each/*#pay"}}}},
		{name: "interceptors", waits: true, graph: each(effect), o: dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{asks}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New[Tale]("wide")
			c.graph(b)
			res, err := process(t, frozen(t, b), new(narrowStore), c.o).Run(t.Context(), run, nil)
			if !c.waits {
				completes(t, res, err)
				return
			}
			if res.Status != checkpoint.StatusInterrupted || len(res.Interrupts) != width {
				t.Errorf("%s with %d interrupts: %v", res.Status, len(res.Interrupts), err)
			}
		})
	}
}

// What one visit asks, depends on or calls its effects, and what the Folds of a superstep come to,
// is one append or one entry: a run in which that is more than a store takes fails by a limit, or
// waits for what was asked before it was reached, and is not left where it can't go on.
func TestOneLargeDecision(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	forty := func(ctx context.Context, one func(ctx context.Context, key string) error) (err error) {
		for i := range 40 {
			e := one(ctx, fmt.Sprint(i))
			var limit *dispatcher.LimitError
			if err = e; errors.As(e, &limit) {
				return e
			}
		}
		return err
	}
	gated := dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"visit#*"}}}
	for _, c := range []struct {
		name  string
		body  part
		o     dispatcher.Options
		waits bool
	}{
		{name: "the key of a question", body: func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[string](ctx, strings.Repeat(large, 33), "what?")
			return err
		}},
		{name: "questions", waits: true, body: func(ctx context.Context, _ *Tale) error {
			return forty(ctx, func(ctx context.Context, key string) error {
				_, err := dag.Ask[string](ctx, key, large)
				return err
			})
		}},
		{name: "approvals", waits: true, o: gated, body: func(ctx context.Context, _ *Tale) error {
			return forty(ctx, func(ctx context.Context, key string) error {
				_, err := dag.Effect(ctx, key, large, func(context.Context, string) (int, error) { return 1, nil })
				return err
			})
		}},
		{name: "dependencies", body: func(ctx context.Context, _ *Tale) error {
			return forty(ctx, func(ctx context.Context, key string) error {
				return dag.Depends(ctx, dag.Dependency{Name: key + large, StaleAfter: time.Hour})
			})
		}},
		{name: "the key of an effect", body: func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, strings.Repeat("\x01", 6<<20), 1, func(context.Context, int) (int, error) { return 1, nil })
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New[Tale]("large")
			dag.Step(b, "visit", c.body)
			if c.waits {
				waitsForSome(t, frozen(t, b), c.o, 40)
				return
			}
			failsByLimit(t, frozen(t, b), c.o, "visit bytes")
		})
	}
	t.Run("folds", func(t *testing.T) {
		b := dag.New[folded]("large")
		for _, name := range []string{"left", "right"} {
			dag.Step(b, name, func(_ context.Context, s *folded) error {
				for _, cell := range []*state.Fold[joined]{&s.A, &s.B, &s.C, &s.D} {
					cell.Merge(joined{strings.Repeat(large, 7)})
				}
				return nil
			})
		}
		failsByLimit(t, frozen(t, b), dispatcher.Options{}, "merged bytes")
	})
}

// Of effects in doubt, side by side in a visit, whose questions are more than it may ask at once
// some are asked about, and the others when it runs again: none of them fails it.
func TestManyLargeDoubts(t *testing.T) {
	input := strings.Repeat("x", 15<<20)
	var begun sync.WaitGroup
	begun.Add(3)
	b := dag.New[Tale]("large")
	dag.Step(b, "visit", func(ctx context.Context, _ *Tale) error {
		errs := make([]error, 3)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				_, errs[i] = dag.Effect(ctx, fmt.Sprint(i), input, func(context.Context, string) (int, error) {
					begun.Done()
					begun.Wait()
					return 0, errWeather
				}, dag.InDoubt(dag.DoubtAsks))
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	d := process(t, frozen(t, b), new(narrowStore), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	for _, asked := range []int{2, 1} {
		if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != asked {
			t.Fatalf("the run is %s with %d interrupts: %.300v, want %d", res.Status, len(res.Interrupts), err, asked)
		}
		for _, i := range res.Interrupts {
			if err := d.Resolve(t.Context(), run, "visit", i.Key, dispatcher.Happened(1)); err != nil {
				t.Fatal(err)
			}
		}
		res, err = d.Run(t.Context(), run, nil)
	}
	completes(t, res, err)
}

// waitsForSome runs a graph of a visit that asks too much at once.
func waitsForSome(t *testing.T, g *dag.Graph[Tale], o dispatcher.Options, all int) {
	t.Helper()
	store := new(narrowStore)
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	if n := len(res.Interrupts); !errors.Is(err, dispatcher.ErrInterrupted) || n < all/2 || n >= all {
		t.Fatalf("the run is %s with %d interrupts: %.300v, want some of %d", res.Status, n, err, all)
	}
	if read, err := process(t, g, store, o).State(t.Context(), run); err != nil || len(read.Interrupts) != len(res.Interrupts) {
		t.Errorf("another process reads %v, %v", read, err)
	}
}

type folded struct{ A, B, C, D state.Fold[joined] }

// failsByLimit runs a graph, and reads the run in another process.
func failsByLimit[S any](t *testing.T, g *dag.Graph[S], o dispatcher.Options, name string) {
	t.Helper()
	store := new(narrowStore)
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	var limit *dispatcher.LimitError
	if !errors.As(err, &limit) || limit.Limit != name || res.Status != checkpoint.StatusFailed {
		t.Fatalf("the run is %s: %.300v, want it failed by the limit of %s", res.Status, err, name)
	}
	if read, err := process(t, g, store, o).State(t.Context(), run); err != nil || read.Status != checkpoint.StatusFailed {
		t.Errorf("another process reads %v, %v", read, err)
	}
}

// A process that dies between two appends of what was decided side by side: what is durable is not
// decided again.
func TestCrashBetweenLargeDecisions(t *testing.T) {
	const width = 20
	large := strings.Repeat("x", 3<<20)
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "reads", func(_ context.Context, s *Tale) error {
		s.Said.Append(fmt.Sprint(len(s.Word.Get())))
		return nil
	})
	body := frozen(t, inner)
	for n := 1; ; n++ {
		var mu sync.Mutex
		ins := map[int]int{}
		b := dag.New[Tale]("wide")
		dag.EachGraph(b, "each", func(*Tale) []int {
			all := make([]int, width)
			for i := range all {
				all[i] = i
			}
			return all
		}, body, func(_ *Tale, i int, to *Tale) {
			mu.Lock()
			ins[i]++
			mu.Unlock()
			to.Word.Set(large)
		}, func(from *Tale, i int, s *Tale) { s.Said.Append(fmt.Sprint(i, from.Said.Slice())) })
		mortal := &pawltest.Mortal{Store: new(narrowStore)}
		mortal.DieAfter(n)
		g := frozen(t, b)
		res, err := process(t, g, mortal, dispatcher.Options{}).Run(t.Context(), run, nil)
		died := mortal.Died()
		if died {
			if err := mortal.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			res, err = process(t, g, mortal, dispatcher.Options{}).Run(t.Context(), run, nil)
		}
		completes(t, res, err)
		if got := res.State.Said.Len(); got != width || res.State.Said.At(width-1) != fmt.Sprint(width-1, []int{len(large)}) {
			t.Errorf("death after write %d: the state is %d long, %q last", n, got, res.State.Said.At(got-1))
		}
		for i, times := range ins {
			if times != 1 {
				t.Errorf("death after write %d: the input of item %d was computed %d times", n, i, times)
			}
		}
		if !died {
			if n < 4 {
				t.Errorf("the run made %d writes: nothing was split", n)
			}
			return
		}
	}
}

// Questions that expire together end with messages that a store takes, however large their defaults
// are: each of them was taken by itself.
func TestManyLargeDefaultsAtOnce(t *testing.T) {
	for _, c := range []struct{ visits, each, bytes int }{{4, 1, 9 << 20}, {40, 1, 1 << 20}, {2, 3, 9 << 20}} {
		b := dag.New[Tale]("defaults")
		for i := range c.visits {
			dag.Step(b, fmt.Sprint("asks-", i), func(ctx context.Context, s *Tale) (err error) {
				for k := range c.each {
					word, asked := dag.Ask[string](ctx, fmt.Sprint("q", k), "which?", dag.Within(time.Hour), dag.OrDefault(strings.Repeat("d", c.bytes)))
					s.Count.Add(len(word))
					err = errors.Join(err, asked)
				}
				return err
			})
		}
		o := dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 30 << 20}}
		d := process(t, frozen(t, b), new(narrowStore), o)
		res, err := d.Run(t.Context(), run, nil)
		if res.Status != checkpoint.StatusInterrupted || len(res.Interrupts) != c.visits*c.each {
			t.Fatalf("%+v: the run is %s with %d interrupts: %.300v", c, res.Status, len(res.Interrupts), err)
		}
		var ids []string
		for _, i := range res.Interrupts {
			ids = append(ids, i.ID)
		}
		res, err = d.Resume(t.Context(), run, dispatcher.Expire(ids...))
		if completes(t, res, err); res.State.Count.Get() != c.visits*c.each*c.bytes {
			t.Errorf("%+v: the visits got %d bytes", c, res.State.Count.Get())
		}
	}
}

// What Folds of a Loop come to, and what their visit wrote before it was durable, share an append
// only if that is no larger than a store takes.
func TestLargeFoldsOfALoop(t *testing.T) {
	part := joined{strings.Repeat("x", 11<<20)}
	body := dag.New[folded]("body")
	dag.Step(body, "writes", func(_ context.Context, s *folded) error {
		s.A.Merge(part)
		s.B.Merge(part)
		return nil
	}).With(dag.Policy{})
	b := dag.New[folded]("folds")
	dag.Loop(b, "loop", frozen(t, body), func(*folded) bool { return true }, 1)
	d := process(t, frozen(t, b), new(narrowStore), dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 32 << 20}})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// So it is with what nested Loops keep of one that failed.
func TestLargeFoldsOfLoopsThatFail(t *testing.T) {
	part := joined{strings.Repeat("x", 11<<20)}
	once := func(*folded) bool { return true }
	inner := dag.New[folded]("inner")
	dag.Step(inner, "ok", func(_ context.Context, s *folded) error {
		s.A.Merge(part)
		s.B.Merge(part)
		return nil
	})
	dag.Step(inner, "bad", func(context.Context, *folded) error { return errWeather })
	body := dag.New[folded]("body")
	dag.Loop(body, "inside", frozen(t, inner), once, 1)
	b := dag.New[folded]("folds")
	around := dag.Loop(b, "around", frozen(t, body), once, 1)
	dag.Step(b, "after", func(context.Context, *folded) error { return nil }, around.Failed())
	d := process(t, frozen(t, b), new(narrowStore), dispatcher.Options{Limits: dispatcher.Limits{VisitBytes: 32 << 20}})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	sameMachine(t, d, run)
}

// Input whose Folds come to more than an entry may have is refused, as a Turn of its own and as
// what was queued, and is in nobody's way.
func TestLargeFoldsOfATurn(t *testing.T) {
	large := func(s *folded) {
		for _, cell := range []*state.Fold[joined]{&s.A, &s.B, &s.C, &s.D} {
			cell.Merge(joined{strings.Repeat("x", 7<<20)})
		}
	}
	b := dag.New[folded]("folds")
	dag.Step(b, "reads", func(context.Context, *folded) error { return nil })
	d := process(t, frozen(t, b), new(narrowStore), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, large)
	completes(t, res, err)

	var limit *dispatcher.LimitError
	if _, err = d.Turn(t.Context(), run, large); !errors.As(err, &limit) || limit.Limit != "merged bytes" {
		t.Errorf("the turn ends with %.300v, want the limit of merged bytes", err)
	}
	for _, input := range []func(*folded){large, func(s *folded) { s.A.Merge(joined{"last"}) }} {
		if err := d.Enqueue(t.Context(), run, input); err != nil {
			t.Fatal(err)
		}
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if !strings.HasSuffix(res.State.A.Get().Text, "last") || len(res.Warnings) != 1 {
		t.Errorf("behind the queue A ends with %.20q, with the warnings %.300q", res.State.A.Get().Text[14<<20:], res.Warnings)
	}
}

// An input of a frame whose Folds come to more fails the visit.
func TestLargeFoldsOfAFrame(t *testing.T) {
	body := dag.New[folded]("body")
	dag.Step(body, "reads", func(context.Context, *folded) error { return nil })
	b := dag.New[folded]("folds")
	dag.Embed(b, "embed", frozen(t, body), func(_, to *folded) {
		for range 2 {
			for _, cell := range []*state.Fold[joined]{&to.A, &to.B, &to.C, &to.D} {
				cell.Merge(joined{strings.Repeat("x", 7<<19)})
			}
		}
	}, func(*folded, *folded) {})
	failsByLimit(t, frozen(t, b), dispatcher.Options{}, "merged bytes")
}
