package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// renewal is a graph of a Loop whose failure is followed, and in it what add adds. What add adds is
// to fail. It is salvaged, and conflicts then with two visits beside it, of which one has an effect
// in doubt at the resume: so the Loop's failure is nobody's.
func renewal[S any](t *testing.T, set func(*S, string), add func(*dag.Builder[S])) *dag.Graph[S] {
	t.Helper()
	outer, b := dag.New[S]("outer"), dag.New[S]("top")
	add(outer)
	tries := 0
	dag.Step(outer, "one", func(_ context.Context, s *S) error {
		if tries++; tries == 1 {
			set(s, "one")
		}
		return nil
	})
	others := 0
	dag.Step(outer, "other", func(ctx context.Context, s *S) error {
		if others++; others == 1 {
			set(s, "other")
			return nil
		}
		_, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 0, errWeather }, dag.InDoubt(dag.DoubtFails))
		return err
	})
	around := dag.Loop(b, "around", frozen(t, outer), func(*S) bool { return true }, 1)
	dag.Step(b, "handler", nothing[S], around.Failed())
	dag.End(b, dag.Edge[S](around))
	return frozen(t, b)
}

// renewed runs a renewal up to where the next resume runs again what has failed, of which a part is
// salvaged.
func renewed[S any](t *testing.T, g *dag.Graph[S], store checkpoint.Store, o dispatcher.Options) {
	t.Helper()
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
		t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
	}
	d := process(t, g, store, o)
	const other = "around/1/other"
	res, err = d.Resume(t.Context(), run)
	if n := len(res.Failures); res.Status != checkpoint.StatusFailed || n == 0 || res.Failures[n-1].Path != other {
		t.Fatalf("the run is %s: %v, want an effect in doubt", res.Status, err)
	}
	if err := d.Resolve(t.Context(), run, other, "k", dispatcher.Happened(1)); err != nil {
		t.Fatal(err)
	}
}

func setWord(s *Tale, word string) { s.Word.Set(word) }

// What items have written that are salvaged, and what others wrote that stand behind the one that
// failed, counts when that one runs again: also from a snapshot, and behind a change of the graph.
func TestSalvagedItemsRunAgain(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"a log", "a snapshot", "a changed graph", "a migration"} {
		third, tries := make(chan struct{}), 0
		build := func(name string, more bool) *dag.Graph[Tale] {
			return renewal(t, setWord, func(b *dag.Builder[Tale]) {
				items := dag.Each(b, name, eachOf(3), func(ctx context.Context, s *Tale, item string) error {
					switch item {
					case "item1":
						s.Count.Add(1)
					case "item2":
						if tries++; tries == 1 {
							<-third
							return errWeather
						}
						_, err := dag.Ask[string](ctx, "q", "on?")
						s.Count.Add(10)
						return err
					case "item3":
						s.Count.Add(100)
						close(third)
					}
					return nil
				})
				if more {
					dag.Step(b, "more", func(_ context.Context, s *Tale) error { s.Count.Add(1000); return nil }, items)
				}
			})
		}
		g, store, o, want := build("items", false), new(memory.Store), dispatcher.Options{}, 111
		if way == "a snapshot" {
			o = dispatcher.Eager(o)
		}
		renewed(t, g, store, o)
		res, err := process(t, g, store, o).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "around/1/items/2")
		d := process(t, g, store, o)
		switch way {
		case "a changed graph":
			d, want = process(t, build("items", true), store, o), 1111
		case "a migration":
			d = process(t, build("things", false), store, migrating(dispatcher.Migration{
				Name: "m", Nodes: map[string]string{"around/items": "around/things"},
				State: func(_ string, s json.RawMessage) (json.RawMessage, error) { return s, nil },
			}))
		}
		opened, err := d.Open(t.Context(), run)
		if err != nil || len(opened.Interrupts) != 1 {
			t.Fatalf("%s: %+v, %v", way, opened, err)
		}
		if err := d.Answer(t.Context(), run, opened.Interrupts[0].ID, "yes"); err != nil {
			t.Fatal(way, err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if got := res.State.Count.Get(); got != want {
			t.Errorf("%s: the count is %d, want %d", way, got, want)
		}
	}
}

// An item behind the one that failed, in a frame that is salvaged, is voided alone if it is stale
// when that one runs again.
func TestSalvagedBesideAStaleItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		third, mended := make(chan struct{}), false
		g := renewal(t, setWord, func(b *dag.Builder[Tale]) {
			dag.Each(b, "items", eachOf(3), func(ctx context.Context, s *Tale, item string) error {
				w.note(ctx)
				s.Count.Add(1)
				switch {
				case item == "item2" && !mended:
					<-third
					return errWeather
				case item == "item3" && !mended:
					defer close(third)
					return dag.Depends(ctx, dag.Dependency{Name: "prices", StaleAfter: time.Minute, OnStale: dag.Invalidate})
				}
				return nil
			})
		})
		store, o := new(memory.Store), dispatcher.Eager(dispatcher.Options{})
		renewed(t, g, store, o)
		w.took()
		mended = true
		<-time.After(time.Hour)
		d := process(t, g, store, o)
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "around/1/items/2#2", "around/1/items/3")
		if got := res.State.Count.Get(); got != 3 {
			t.Errorf("the count is %d, want 3", got)
		}
		sameMachine(t, d, run)
	})
}

// A Loop that failed, and of which all is salvaged into a frame around it that then can't be
// merged, goes on where it was: what it wrote counts once, if it fails again, if it does not,
// behind an edit, and from a snapshot.
func TestSalvagedTwiceRunsAgain(t *testing.T) {
	t.Parallel()
	for _, eager := range []bool{false, true} {
		for _, mends := range []bool{false, true} {
			for _, edits := range []bool{false, true} {
				var w witness
				mended, store, o := false, new(memory.Store), dispatcher.Options{}
				if eager {
					o = dispatcher.Eager(o)
				}
				name := fmt.Sprintf("eager=%t mends=%t edits=%t", eager, mends, edits)
				g := twice(t, &w, &mended)
				renewed(t, g, store, o)
				w.took()
				mended = mends
				d, want := process(t, g, store, o), 1
				if mends {
					want += 10
				}
				if edits {
					want += 100
					if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(100) }, dispatcher.EditOptions{}); err != nil {
						t.Fatal(name, err)
					}
				}
				sameMachine(t, d, run)
				res, err := d.Resume(t.Context(), run)
				w.expect(t, "around/1/middle/1/inside/1/bad#2")
				if mends {
					rests(t, res, err, checkpoint.StatusInterrupted, "around/1/middle/1/inside/1/bad")
					voidRefused(t, d, "around/1/middle/1/inside")
					sameMachine(t, d, run)
					if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "yes"); err != nil {
						t.Fatal(name, err)
					}
					res, err = process(t, g, store, o).Resume(t.Context(), run)
				}
				completes(t, res, err)
				if got := res.State.Count.Get(); got != want {
					t.Errorf("%s: the count is %d, want %d", name, got, want)
				}
			}
		}
	}
}

// voidRefused checks that an edit can't void a visit: it is salvaged, or a part of what it holds
// is.
func voidRefused[S any](t *testing.T, d *dispatcher.Dispatcher[S], path string) {
	t.Helper()
	var option *dispatcher.OptionError
	err := d.Edit(t.Context(), run, func(*S) {}, dispatcher.EditOptions{Void: []string{path}})
	if !errors.As(err, &option) {
		t.Errorf("%s was voided: %v", path, err)
	}
}

// twice is a renewal of a Loop inside a Loop. bad fails until it is mended, and asks then.
func twice(t *testing.T, w *witness, mended *bool) *dag.Graph[Tale] {
	return renewal(t, setWord, func(b *dag.Builder[Tale]) {
		inner, mid := dag.New[Tale]("inner"), dag.New[Tale]("mid")
		dag.Step(inner, "ok", w.sees(func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil }))
		dag.Step(inner, "bad", w.sees(func(ctx context.Context, s *Tale) error {
			if !*mended {
				return errWeather
			}
			s.Count.Add(10)
			_, err := dag.Ask[string](ctx, "q", "on?")
			return err
		}))
		dag.Loop(mid, "inside", frozen(t, inner), func(*Tale) bool { return true }, 1)
		dag.Loop(b, "middle", frozen(t, mid), func(*Tale) bool { return true }, 1)
	})
}

// A log in which an earlier version has begun such a Loop anew is read, and goes on.
func TestSalvagedTwiceWasBegunAnew(t *testing.T) {
	t.Parallel()
	const inside = "around/1/middle/1/inside/1"
	var w witness
	mended, store := false, new(memory.Store)
	g := twice(t, &w, &mended)
	renewed(t, g, store, dispatcher.Options{})
	w.took()
	mended = true
	appended(t, store,
		checkpoint.Entry{Kind: checkpoint.Resumed, Data: json.RawMessage(`{"owner":"before"}`)},
		checkpoint.Entry{Kind: checkpoint.Entered, Path: inside})
	d := process(t, g, store, dispatcher.Options{})
	sameMachine(t, d, run)
	res, err := d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, inside+"/bad")
	w.expect(t, inside+"/ok", inside+"/bad")
	sameMachine(t, d, run)
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "yes"); err != nil {
		t.Fatal(err)
	}
	res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, inside+"/bad")
	if got := res.State.Count.Get(); got != 12 {
		t.Errorf("the count is %d, want that of two visits of ok, and of one of bad", got)
	}
}

// appended adds entries to the log of the run, as another program did.
func appended(t *testing.T, store checkpoint.Store, entries ...checkpoint.Entry) {
	t.Helper()
	info, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.Acquire(t.Context(), run, "before")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = store.Append(t.Context(), l, info.Head, entries); err == nil {
		err = store.Release(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A Chest is a state that holds no more than nine.
type Chest struct {
	Count state.Sum[int]
	Word  state.Value[string]
}

func (c *Chest) Check() error {
	if n := c.Count.Get(); n > 9 {
		return fmt.Errorf("%d is too much", n)
	}
	return nil
}

// What runs again in a frame of which a part is salvaged is voided alone if the state that it makes
// is refused, and runs once more.
func TestSalvagedBesideWhatIsRefused(t *testing.T) {
	t.Parallel()
	var oks, bads, writes int
	g := renewal(t, func(s *Chest, word string) { s.Word.Set(word) }, func(b *dag.Builder[Chest]) {
		inner := dag.New[Chest]("inner")
		dag.Step(inner, "ok", func(_ context.Context, s *Chest) error { oks++; s.Count.Add(1); return nil })
		dag.Step(inner, "bad", func(_ context.Context, s *Chest) error {
			if bads++; bads == 1 {
				return errWeather
			}
			s.Count.Add(writes)
			return nil
		})
		dag.Loop(b, "inside", frozen(t, inner), func(*Chest) bool { return true }, 1)
	})
	store := new(memory.Store)
	renewed(t, g, store, dispatcher.Options{})
	writes = 10
	d := process(t, g, store, dispatcher.Options{})
	res, err := d.Resume(t.Context(), run)
	var fault *dispatcher.FaultError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &fault) || fault.Kind != "check" {
		t.Fatalf("the run is %s: %v, want a state that is refused", res.Status, err)
	}
	writes = 2
	sameMachine(t, d, run)
	voidRefused(t, d, "around/1/inside/1/ok")
	res, err = process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	if got := res.State.Count.Get(); got != 3 || oks != 1 || bads != 3 {
		t.Errorf("the count is %d, want 3: %d times what is salvaged ran, %d times what is not", got, oks, bads)
	}
}
