package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

func nothing[S any](context.Context, *S) error { return nil }

// What a Loop inside a failed Loop has finished counts once, also if the superstep around
// it can't be merged at the first attempt.
func TestSalvagedOnce(t *testing.T) {
	var mended atomic.Bool
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "ok", func(_ context.Context, s *Tale) error {
		s.Count.Add(1)
		s.Said.Append("ok")
		return nil
	})
	dag.Step(inner, "bad", func(context.Context, *Tale) error { return errors.New("bad") })
	outer := dag.New[Tale]("outer")
	dag.Loop(outer, "inside", frozen(t, inner), func(*Tale) bool { return true }, 1)
	dag.Step(outer, "one", func(_ context.Context, s *Tale) error { s.Word.Set("one"); return nil })
	dag.Step(outer, "other", func(_ context.Context, s *Tale) error {
		if !mended.Load() {
			s.Word.Set("other")
		}
		return nil
	})
	b := dag.New[Tale]("top")
	around := dag.Loop(b, "around", frozen(t, outer), func(*Tale) bool { return true }, 1)
	dag.Step(b, "handler", nothing[Tale], around.Failed())
	dag.End(b, dag.Edge[Tale](around))
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Paranoid: true})

	res, err := d.Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
		t.Fatalf("Run = %s, %v, want a conflict", res.Status, err)
	}
	mended.Store(true)
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if got := res.State.Count.Get(); got != 1 || res.State.Said.Len() != 1 {
		t.Errorf("what the inner loop finished counts %d times, and was said %q", got, res.State.Said.Slice())
	}
}

// salvages is a graph of a Loop whose failure is followed, around a Loop that fails, of which ok is
// to be kept, and what can't be merged with each other until it is mended.
func salvages(t *testing.T, w *witness, mended *bool) *dag.Graph[Tale] {
	return salvagesAround(t, mended, func(outer *dag.Builder[Tale]) { salvaged(t, outer, w) })
}

// salvaged adds a Loop that fails to b.
func salvaged(t *testing.T, b *dag.Builder[Tale], w *witness) {
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "ok", w.sees(func(ctx context.Context, s *Tale) error {
		s.Count.Add(1)
		return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
	}))
	dag.Step(inner, "bad", w.sees(func(context.Context, *Tale) error { return errWeather }))
	dag.Loop(b, "inside", frozen(t, inner), func(*Tale) bool { return true }, 1)
}

// salvagesAround is the Loop around what fails, and what follows it.
func salvagesAround(t *testing.T, mended *bool, inside func(outer *dag.Builder[Tale])) *dag.Graph[Tale] {
	outer, b := dag.New[Tale]("outer"), dag.New[Tale]("top")
	inside(outer)
	for _, word := range []string{"one", "other"} {
		dag.Step(outer, word, func(_ context.Context, s *Tale) error {
			if !*mended {
				s.Word.Set(word)
			}
			return nil
		})
	}
	around := dag.Loop(b, "around", frozen(t, outer), func(*Tale) bool { return true }, 1)
	dag.Step(b, "handler", nothing[Tale], around.Failed())
	dag.End(b, dag.Edge[Tale](around))
	return frozen(t, b)
}

// Of a salvaged Loop that a migration forgets stays what was merged, with what that depends on.
func TestSalvagedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet(t)
		var w witness
		mended, store := false, new(memory.Store)
		around := func(inside func(b *dag.Builder[Tale])) *dag.Graph[Tale] {
			middle := dag.New[Tale]("middle")
			inside(middle)
			dag.Step(middle, "beside", nothing[Tale])
			m := frozen(t, middle)
			return salvagesAround(t, &mended, func(outer *dag.Builder[Tale]) {
				dag.Loop(outer, "middle", m, func(*Tale) bool { return true }, 1)
			})
		}
		g := around(func(b *dag.Builder[Tale]) { salvaged(t, b, &w) })
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		var conflict *state.ConflictError
		if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
			t.Fatalf("the run is %s: %v", res.Status, err)
		}
		mended = true
		<-time.After(time.Hour)
		forgets := migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"around/middle/inside": ""}})
		var stale *dispatcher.StaleError
		_, err = process(t, around(func(*dag.Builder[Tale]) {}), store, forgets).Resume(t.Context(), run)
		if !errors.As(err, &stale) || stale.Dependency.Name != "prices" {
			t.Errorf("what was merged is stale, but the run was resumed: %v", err)
		}
	})
}

// What is salvaged counts once and is taken back as a whole: a visit that wrote a part of it can't
// be voided alone, by an edit or since it is stale; the Loop that keeps it can.
func TestSalvagedIsVoidedAsAWhole(t *testing.T) {
	const ok, inside = "around/1/inside/1/ok", "around/1/inside"
	for _, o := range []dispatcher.Options{{}, dispatcher.Eager(dispatcher.Options{})} {
		for _, way := range []string{"a visit", "the Loop", "a limit", "stale"} {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var mended bool
				g, store := salvages(t, &w, &mended), new(memory.Store)
				res, err := process(t, g, store, o).Run(t.Context(), run, nil)
				var conflict *state.ConflictError
				if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
					t.Fatalf("%s: the run is %s: %v", way, res.Status, err)
				}
				w.took()
				mended = true
				d, want := process(t, g, store, o), []string(nil)
				voids := func(path string) error {
					return d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{path}})
				}
				switch way {
				case "a visit":
					var option *dispatcher.OptionError
					if err := voids(ok); !errors.As(err, &option) || !strings.Contains(err.Error(), "these have: around, "+inside) {
						t.Errorf("a part of what is salvaged was voided: %v", err)
					}
				case "the Loop":
					if err := voids(inside); err != nil {
						t.Error(err)
					}
					want = []string{ok, "around/1/inside/1/bad"}
				case "a limit": // at which it fails again: what is salvaged is not run again for that
					little := o
					little.Limits.StateBytes = 8
					var limit *dispatcher.LimitError
					if _, err := process(t, g, store, little).Resume(t.Context(), run); !errors.As(err, &limit) {
						t.Errorf("resumed with little room: %v", err)
					}
				case "stale":
					<-time.After(time.Hour)
					var stale *dispatcher.StaleError
					if _, err := d.Resume(t.Context(), run); !errors.As(err, &stale) || stale.Path != ok {
						t.Fatalf("resumed late: %v", err)
					}
					if err := d.Rewind(t.Context(), run, stale.Rewind, dispatcher.RewindOptions{}); err != nil {
						t.Fatal(err)
					}
					want = []string{ok, "around/1/inside/1/bad"}
				}
				sameMachine(t, d, run)
				res, err = process(t, g, store, o).Resume(t.Context(), run)
				completes(t, res, err)
				w.expect(t, want...)
				if says(t, res.State, ok); res.State.Count.Get() != 1 {
					t.Errorf("%s: what is salvaged counts %d times", way, res.State.Count.Get())
				}
			})
		}
	}
}

// A log in which an earlier version has voided a part of what is salvaged is read, and goes on.
func TestSalvagedWasVoidedInPart(t *testing.T) {
	t.Parallel()
	const ok = "around/1/inside/1/ok"
	for _, e := range []checkpoint.Entry{
		{Kind: checkpoint.Edited, Step: 1, Data: json.RawMessage(`{"voids":["` + ok + `"]}`)},
		{Kind: checkpoint.Voided, Data: json.RawMessage(`["` + ok + `"]`)},
	} {
		var w witness
		var mended bool
		g, store := salvages(t, &w, &mended), new(memory.Store)
		if res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); res.Status != checkpoint.StatusFailed {
			t.Fatal(res.Status, err)
		}
		w.took()
		mended = true
		info, err := store.Stat(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		l, err := store.Acquire(t.Context(), run, "before")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = store.Append(t.Context(), l, info.Head, []checkpoint.Entry{e}); err == nil {
			err = store.Release(t.Context(), l)
		}
		if err != nil {
			t.Fatal(err)
		}
		res, err := process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, ok)
	}
}

type bulky struct {
	Big  state.Value[string]
	Raw  state.Value[json.RawMessage]
	Back state.Value[string]
	N    state.Sum[int]
}

// swells is a graph of which forty visits make a log that is worth a snapshot.
func swells(t *testing.T) *dag.Graph[bulky] {
	b := dag.New[bulky]("swells")
	dag.Step(b, "swell", func(_ context.Context, s *bulky) error {
		if s.N.Get() == 0 {
			s.Raw.Set(json.RawMessage(`"<a&b>"`))
		}
		s.Big.Set(strings.Repeat("x", 4000+s.N.Get()))
		s.N.Add(1)
		return nil
	})
	return frozen(t, b)
}

func forty(s *bulky) bool { return s.N.Get() >= 40 }

// An interrupt ends with the frame that it waits in: it can't be answered any more, and
// the run goes on, from a snapshot as well.
func TestInterruptEndsWithItsFrame(t *testing.T) {
	in := dag.New[bulky]("in")
	dag.Step(in, "a", nothing[bulky])
	dag.Step(in, "b", nothing[bulky])
	b := dag.New[bulky]("top")
	e := dag.Embed(b, "embed", frozen(t, in), func(_, _ *bulky) {}, func(_, _ *bulky) {})
	l := dag.Loop(b, "loop", swells(t), forty, 100, e.Failed())
	dag.Step(b, "last", nothing[bulky], l)
	dag.End(b, dag.Edge[bulky](e))
	o := dispatcher.Options{InterruptAfter: []string{"embed/a", "embed/b"}, InterruptBefore: []string{"last"}}
	d := process(t, frozen(t, b), new(memory.Store), o)

	res, _ := d.Run(t.Context(), run, nil)
	waits := res.Interrupts
	if len(waits) != 2 {
		t.Fatalf("%v wait, want two", waits)
	}
	if err := d.Answer(t.Context(), run, waits[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	if res, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 {
		t.Fatalf("Run = %v, %v, want an interrupt before last alone", res.Interrupts, err)
	}
	if err := d.Answer(t.Context(), run, waits[1].ID, dispatcher.Approve); !errors.Is(err, dispatcher.ErrNotAwaited) {
		t.Errorf("Answer = %v, want ErrNotAwaited", err)
	}
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
}

// What a node reads after a resume from a snapshot is, to the byte, what was written.
func TestSnapshotKeepsBytes(t *testing.T) {
	for _, stops := range []bool{false, true} {
		b := dag.New[bulky]("bytes")
		l := dag.Loop(b, "loop", swells(t), forty, 100)
		dag.Step(b, "reads", func(_ context.Context, s *bulky) error {
			s.Back.Set(string(s.Raw.Get()))
			return nil
		}, l)
		var store memory.Store
		o := dispatcher.Options{}
		if stops {
			o.InterruptBefore = []string{"reads"}
		}
		g := frozen(t, b)
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		if stops {
			if _, err := store.Snapshot(t.Context(), run, 0); err != nil {
				t.Fatalf("no snapshot was taken: %v", err)
			}
			res, err = process(t, g, &store, o).Resume(t.Context(), run)
		}
		completes(t, res, err)
		if got := res.State.Back.Get(); got != `"<a&b>"` {
			t.Errorf("stops=%v: the node read %s", stops, got)
		}
	}
}

// Two state types that print alike are two types.
func TestNestedStateOfAnotherType(t *testing.T) {
	type local struct{ X state.Value[string] }
	b := dag.New[local]("top")
	embedAnother(t, b)
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if _, err := d.At(t.Context(), run, "embed@1"); !errors.Is(err, dispatcher.ErrNested) {
		t.Errorf("At = %v, want ErrNested", err)
	}
}

func embedAnother[S any](t *testing.T, b *dag.Builder[S]) {
	type local struct{ Y state.Value[string] }
	in := dag.New[local]("in")
	one := dag.Step(in, "one", nothing[local])
	dag.Step(in, "two", nothing[local], one)
	dag.Embed(b, "embed", frozen(t, in), func(*S, *local) {}, func(*local, *S) {})
}
