package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// strideWays are runs in which supersteps of one plain visit come to all that they may come to. A
// run with an observer makes facts and decisions of each of them, one without does not: both have
// one log.
var strideWays = map[string]func(t testing.TB) *dag.Graph[Tale]{
	"all are plain": func(t testing.TB) *dag.Graph[Tale] {
		return chainOf(t, 12, func(_ context.Context, i int, s *Tale) error {
			s.Said.Append(fmt.Sprint(i))
			s.Count.Add(i)
			return nil
		})
	},
	"one fails":       strideChain(func(context.Context, *Tale) error { return errors.New("no") }),
	"one panics":      strideChain(func(context.Context, *Tale) error { panic("no") }),
	"one asks":        strideChain(func(ctx context.Context, _ *Tale) error { _, err := dag.Ask[bool](ctx, "q", "?"); return err }),
	"one notes":       strideChain(func(ctx context.Context, _ *Tale) error { return dag.Note(ctx, "n", 1) }),
	"one overflows":   strideChain(func(_ context.Context, s *Tale) error { s.Count.Add(math.MaxInt); return nil }),
	"one is too big":  strideChain(func(_ context.Context, s *Tale) error { s.Word.Set(strings.Repeat("w", 3_000)); return nil }),
	"all are too big": strideChain(func(_ context.Context, s *Tale) error { s.Word.Set(strings.Repeat("w", 1_500)); return nil }),
	"they add up": func(t testing.TB) *dag.Graph[Tale] {
		return chainOf(t, 9, func(_ context.Context, _ int, s *Tale) error {
			s.Said.Append(strings.Repeat("w", 300))
			return nil
		})
	},
	"one has an effect": strideChain(func(ctx context.Context, s *Tale) error {
		n, err := dag.Effect(ctx, "e", "in", func(context.Context, string) (int, error) { return 3, nil })
		s.Count.Add(n)
		return err
	}),
	"routes, skips, a loop and an embed": func(t testing.TB) *dag.Graph[Tale] {
		b := dag.New[Tale]("ways")
		say := func(ctx context.Context, s *Tale) error { s.Said.Append(visitPath(ctx)); return nil }
		first := dag.Step(b, "first", say)
		fork := dag.Route(b, "fork", func(_ context.Context, s *Tale) (way, error) { return left, say(context.Background(), s) },
			[]way{left, right}, first)
		l := dag.Step(b, "l", say, fork.On(left))
		r := dag.Step(b, "r", say, fork.On(right))
		after := dag.Step(b, "after", say, dag.Any(l, r))
		loop := dag.Loop(b, "loop", strideInner(t, say), func(s *Tale) bool { return s.Said.Len() > 12 }, 4, after)
		in := dag.Embed(b, "in", strideInner(t, say), func(from, to *Tale) { to.Count.Set(from.Said.Len()) },
			func(from, to *Tale) { to.Count.Add(from.Said.Len()) }, loop)
		dag.Step(b, "last", say, in)
		return frozen(t, b)
	},
}

// strideChain is a chain of plain nodes with another one in the middle.
func strideChain(f part) func(t testing.TB) *dag.Graph[Tale] {
	return func(t testing.TB) *dag.Graph[Tale] {
		return chainOf(t, 7, func(ctx context.Context, i int, s *Tale) error {
			s.Count.Add(1)
			if i == 3 {
				return f(ctx, s)
			}
			return nil
		})
	}
}

func strideInner(t testing.TB, say part) *dag.Graph[Tale] {
	b := dag.New[Tale]("inner")
	dag.Step(b, "c", say, dag.Step(b, "b", say, dag.Step(b, "a", say)))
	return frozen(t, b)
}

func TestStrideLeavesTheLogAsItIs(t *testing.T) {
	t.Parallel()
	for name, build := range strideWays {
		t.Run(name, func(t *testing.T) {
			logOf := func(o dispatcher.Options) (all []string) {
				var store memory.Store
				o.Limits.StateBytes, o.Limits.VisitBytes = 2_000, 2_900
				if name != "all are too big" && name != "they add up" {
					o.Limits.StateBytes = 10_000
				}
				d, err := dispatcher.New(build(t), &store, o)
				if err != nil {
					t.Fatal(err)
				}
				res, err := d.Run(t.Context(), run, nil)
				if err != nil { // go on, as far as it goes
					_, _ = d.Run(t.Context(), run, nil)
				}
				for _, e := range readLog(t, &store) {
					if e.Kind != checkpoint.Noted { // stacks, ids, owners and times differ
						e.Data, e.ID = nil, ""
					}
					all = append(all, fmt.Sprint(e.Seq, e.Kind, e.Path, e.Step, e.Attempt, e.Outcome, string(e.Delta), string(e.Data)))
				}
				return append(all, fmt.Sprint(res.Status, res.Superstep, asJSON(t, res.State)))
			}
			want := logOf(dispatcher.Options{Observe: func(dispatcher.Event) {}})
			for _, o := range []dispatcher.Options{{}, {Paranoid: true}, {Lag: 3}, {Parallel: 1}} {
				if got := logOf(o); !slices.Equal(got, want) {
					t.Errorf("%+v: the log is\n%s\nwith an observer it is\n%s", o, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// What is durable at once is so in a stride as well, and its end waits for the disk no more often.
func TestStrideAppendsAsTheLoopDoes(t *testing.T) {
	t.Parallel()
	for name, build := range strideWays {
		appends := func(o dispatcher.Options) (sizes []int) {
			store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
				if c.method == "Append" {
					sizes = append(sizes, len(c.entries))
				}
				return nil
			}}
			d, err := dispatcher.New(build(t), checkpoint.Store(store), o)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = d.Run(t.Context(), run, nil)
			return sizes
		}
		if got, want := appends(dispatcher.Options{}), appends(dispatcher.Options{Observe: func(dispatcher.Event) {}}); !slices.Equal(got, want) {
			t.Errorf("%s: appends of %d entries, with an observer of %d", name, got, want)
		}
	}
}

// The machine of a run that has come to wait in strides is the one that its log says, also of a
// fork that goes another way.
func TestStrideLeavesTheMachineAsItIs(t *testing.T) {
	t.Parallel()
	g := chainOf(t, 6, func(ctx context.Context, i int, s *Tale) (err error) {
		switch {
		case i == 1 && s.Word.Get() == "":
			_, err = dag.Effect(ctx, "e", "in", func(context.Context, string) (int, error) { return 3, nil })
		case i == 4:
			_, err = dag.Ask[int](ctx, "q", "?")
		}
		return err
	})
	d, err := dispatcher.New(g, checkpoint.Store(new(memory.Store)), dispatcher.Options{Paranoid: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{run, "fork"} {
		res, err := d.Run(t.Context(), id, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "n4")
		if n := dispatcher.Kept(d); n != 1 {
			t.Fatalf("%d machines are kept of %s", n, id)
		}
		if err := d.Answer(t.Context(), id, res.Interrupts[0].ID, 1); err != nil { // compares them
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), id, nil)
		completes(t, res, err)
		if id == run {
			_, err = d.Fork(t.Context(), run, "2", dispatcher.ForkOptions[Tale]{
				Into: []string{"fork"}, Edit: func(s *Tale) { s.Word.Set("w") },
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A stride ends where a run may have no more supersteps.
func TestStrideEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, store := range []checkpoint.Store{nil, new(memory.Store)} {
		began := 0
		g := chainOf(t, 6, func(context.Context, int, *Tale) error { began++; return nil })
		d, err := dispatcher.New(g, store, dispatcher.Options{Limits: dispatcher.Limits{Supersteps: 3}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Start(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "n3")
		if began != 3 {
			t.Errorf("%d bodies began", began)
		}
	}
}

// A superstep of one plain visit is refused by the state's own Check as any other is.
func TestStrideChecksTheState(t *testing.T) {
	quiet(t)
	var w witness
	res, err := process(t, purse(t, &w, atMost+1), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "first")
}

// What is posted while a stride runs is drained behind the visit that runs then.
func TestStrideTakesPosts(t *testing.T) {
	t.Parallel()
	store := &watched{heard: make(chan struct{})}
	var d *dispatcher.Dispatcher[Tale]
	g := chainOf(t, 6, func(ctx context.Context, i int, _ *Tale) error {
		if i != 2 {
			return nil
		}
		store.armed.Store(true)
		if err := d.Note(ctx, run, "note", 1); err != nil {
			return err
		}
		select {
		case <-store.heard:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	var err error
	if d, err = dispatcher.New(g, checkpoint.Store(store), dispatcher.Options{}); err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	last, notes := "", 0
	for _, e := range readLog(t, &store.Store) {
		if e.Kind == checkpoint.Noted {
			if notes++; last != "n2" {
				t.Errorf("the note stands behind %s, want n2", last)
			}
		}
		if e.Kind == checkpoint.Done {
			last = e.Path
		}
	}
	if notes != 1 {
		t.Errorf("the log has %d notes, want 1", notes)
	}
}

// A watched store closes heard when its posts are read, once it is armed.
type watched struct {
	memory.Store
	heard chan struct{}
	once  sync.Once
	armed atomic.Bool
}

func (s *watched) Posts(ctx context.Context, id string) ([]checkpoint.Post, error) {
	posts, err := s.Store.Posts(ctx, id)
	if s.armed.Load() {
		s.once.Do(func() { close(s.heard) })
	}
	return posts, err
}

// Without a store a run comes to the same state, whether anybody listens or not.
func TestStrideWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, build := range strideWays {
		if name == "one asks" || name == "one has an effect" || name == "one notes" {
			continue // needs a store
		}
		end := func(o dispatcher.Options) string {
			d, err := dispatcher.New(build(t), nil, o)
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Start(t.Context(), run, nil)
			return fmt.Sprint(res.Status, res.Superstep, res.Cursor.Visits, asJSON(t, res.State), err)
		}
		if got, want := end(dispatcher.Options{}), end(dispatcher.Options{Observe: func(dispatcher.Event) {}}); got != want {
			t.Errorf("%s: %s, with an observer %s", name, got, want)
		}
	}
}

// Who begins to read along in the middle of a chain is told of the visits that begin from there on.
func TestStrideIsHeard(t *testing.T) {
	t.Parallel()
	var d *dispatcher.Dispatcher[Tale]
	heard := make(chan string, 10)
	listening := make(chan struct{})
	g := chainOf(t, 6, func(ctx context.Context, i int, _ *Tale) error {
		if i != 2 {
			return nil
		}
		go func() {
			defer close(heard)
			for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Tail: true}) {
				if err != nil {
					t.Error(err)
					return
				}
				switch {
				case e.Kind == dispatcher.Emitted:
					close(listening)
				case e.Kind == dispatcher.VisitStarted:
					heard <- e.Path
				case e.Kind == dispatcher.RunRested:
					return
				}
			}
		}()
		for dispatcher.Listeners(d, run) == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		if err := dag.Emit(ctx, "here", 1); err != nil {
			return err
		}
		select {
		case <-listening:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	d = process(t, g, new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	var all []string
	for path := range heard {
		all = append(all, path)
	}
	if want := []string{"n3", "n4", "n5"}; !slices.Equal(all, want) {
		t.Errorf("heard of the beginning of %q, want %q", all, want)
	}
}

// A run that is cancelled between two plain visits begins no further one, and goes on there.
func TestStrideEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		var store memory.Store
		ctx, cancel := context.WithCancel(t.Context())
		w := &witness{}
		g := chainOf(t, 6, func(ctx context.Context, i int, s *Tale) error {
			w.note(ctx)
			if i == n {
				cancel()
			}
			return nil
		})
		res, err := process(t, g, &store, dispatcher.Options{}).Run(ctx, run, nil)
		if n == 5 {
			completes(t, res, err)
		} else {
			rests(t, res, err, checkpoint.StatusCancelled, fmt.Sprint("n", n+1))
		}
		if began := len(w.took()); began != n+1 {
			t.Errorf("cancelled in n%d: %d bodies began", n, began)
		}
		if n < 5 {
			res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
			if began := len(w.took()); began != 5-n {
				t.Errorf("resumed behind n%d: %d bodies began", n, began)
			}
		}
		cancel()
	}
}
