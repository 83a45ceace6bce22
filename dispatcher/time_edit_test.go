package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// timeEdit edits a run as somebody with a reason would.
func timeEdit(t *testing.T, d *dispatcher.Dispatcher[Tale], o dispatcher.EditOptions, edit func(*Tale)) {
	t.Helper()
	if o.Reason == "" {
		o.Reason = "a typo"
	}
	if err := d.Edit(t.Context(), run, edit, o, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
}

// timeOptions pause before the visits that are named, and keep a snapshot at every append.
func timeOptions(o dispatcher.Options, before ...string) dispatcher.Options {
	o.InterruptBefore = before
	return dispatcher.Eager(o)
}

// Scenario 35: a run is paused, its state is edited, and who resumes it gives no state. The
// next visit sees what was edited, in any process.
func TestScenario35EditedWhilePaused(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		seen := ""
		g := line(t, &w, func(_ context.Context, s *Tale) error { seen = s.Word.Get(); return nil })
		d := callsDispatcher(t, g, store, timeOptions(o, "b"))
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("teh") })
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) {
			if s.Word.Get() != "teh" || s.Said.Len() != 1 {
				t.Errorf("the edit is given %s", asJSON(t, s))
			}
			s.Word.Set("the")
			s.Count.Add(7)
		})
		now, err := d.State(t.Context(), run)
		if err != nil || now.State.Word.Get() != "the" || now.Status != checkpoint.StatusInterrupted {
			t.Errorf("after the edit the run is %s: %s, %v", now.Status, asJSON(t, now.State), err)
		}
		res, err = callsDispatcher(t, g, store, timeOptions(o, "b")).Resume(t.Context(), run)
		completes(t, res, err)
		if seen != "the" || res.State.Count.Get() != 7 {
			t.Errorf("b saw %q, and the state is %s", seen, asJSON(t, res.State))
		}
		w.expect(t, "a", "b", "c")
		timeReplayed(t, d, store)
		before, err := d.At(t.Context(), run, "1")
		if err != nil || before.State.Word.Get() != "teh" {
			t.Errorf("the checkpoint before the edit has changed: %s, %v", asJSON(t, before.State), err)
		}
	})
}

// timeNested is a loop of three turns, each of a step and two behind it, and a step beside the
// loop.
func timeNested(t *testing.T, w *witness, turn, beside part) *dag.Graph[Tale] {
	body, b := dag.New[Tale]("body"), dag.New[Tale]("nested")
	first := dag.Step(body, "turn", w.sees(turn))
	dag.Step(body, "rest", w.sees(func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil }), first)
	dag.Step(body, "mark", func(_ context.Context, s *Tale) error { s.Notes.Put("mark", "made"); return nil }, first)
	top := dag.Step(b, "top", w.sees(nil))
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 3, top)
	side := dag.Step(b, "beside", w.sees(beside), top)
	dag.Step(b, "last", w.sees(nil), loop, side)
	return frozen(t, b)
}

// What is edited in the run's own frame is seen by the next visit inside an open loop, and
// stays when the loop has ended. What the loop had done stays too, and happens on it.
func TestScenario35EditReachesOpenLoops(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		seen := map[string]string{}
		g := timeNested(t, &w, func(ctx context.Context, s *Tale) error {
			seen[visitPath(ctx)] = fmt.Sprint(s.Word.Get(), s.Count.Get(), s.Said.Slice())
			return nil
		}, nil)
		d := callsDispatcher(t, g, store, timeOptions(o, "loop/2/rest"))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) {
			if got := s.Said.Slice(); !slices.Equal(got, []string{"top"}) {
				t.Errorf("the open superstep began with %q", got)
			}
			s.Word.Set("edited")
			s.Count.Set(100)
			s.Said.Replace([]string{"other"})
			s.Tags.Add("e")
		})
		inner, err := dispatcher.StateOf[Tale](t.Context(), d, run, "loop")
		if err != nil || inner.State.Word.Get() != "edited" || inner.State.Count.Get() != 101 || !inner.State.Tags.Has("e") {
			t.Errorf("inside the loop the state is %s, %v", asJSON(t, inner.State), err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "top", "beside", "loop/1/turn", "loop/1/rest", "loop/2/turn", "loop/2/rest", "loop/3/turn", "loop/3/rest", "last")
		if want := "edited102 [other loop/1/turn loop/1/rest loop/2/turn loop/2/rest loop/3/turn]"; seen["loop/3/turn"] != want {
			t.Errorf("the third turn saw %s, want %s", seen["loop/3/turn"], want)
		}
		says(t, res.State, "other", "loop/1/turn", "loop/1/rest", "loop/2/turn", "loop/2/rest",
			"loop/3/turn", "loop/3/rest", "beside", "last")
		if res.State.Word.Get() != "edited" || res.State.Count.Get() != 103 {
			t.Errorf("in the end the state is %s", asJSON(t, res.State))
		}
		timeReplayed(t, d, store)
	})
}

// What is edited in a loop's own frame is part of what the loop did: it is seen outside when
// the loop has ended, and not before.
func TestTimeEditOfALoop(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		g := timeNested(t, &w, nil, nil)
		d := callsDispatcher(t, g, store, timeOptions(o, "loop/2/turn"))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/turn")
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Count.Set(50); s.Word.Set("inner") })
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop/2"}, func(s *Tale) { s.Count.Add(5) })
		now, err := d.State(t.Context(), run)
		if err != nil || now.State.Word.IsSet() || now.State.Count.Get() != 0 {
			t.Errorf("outside the state is %s, %v", asJSON(t, now.State), err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if res.State.Count.Get() != 57 || res.State.Word.Get() != "inner" {
			t.Errorf("in the end the state is %s", asJSON(t, res.State))
		}
		timeReplayed(t, d, store)
	})
}

// A finished sibling, or the loop so far, that wrote exclusively what is edited would hide it:
// the edit is refused and names it. What only merges hides nothing. A visit that is voided by
// name runs again and sees the edit; nothing else runs again.
func TestTimeEditThatWouldBeHidden(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		g := timeNested(t, &w, func(ctx context.Context, s *Tale) error {
			s.Notes.Put("turn", visitPath(ctx)+" after "+s.Word.Get())
			return nil
		}, func(_ context.Context, s *Tale) error {
			s.Word.Set("beside after " + s.Word.Get())
			s.Tags.Add("t")
			return nil
		})
		d := callsDispatcher(t, g, store, timeOptions(o, "loop/2/rest"))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		w.took()
		for name, c := range map[string]struct {
			edit    func(*Tale)
			by, key string
			frame   string
		}{
			"a sibling":              {func(s *Tale) { s.Word.Set("x") }, "beside", "", ""},
			"a key of the loop":      {func(s *Tale) { s.Notes.Put("turn", "x") }, "loop", "turn", ""},
			"a key, all replaced":    {func(s *Tale) { s.Notes.Replace(map[string]string{"turn": "x"}) }, "loop", "turn", ""},
			"a key of a visit in it": {func(s *Tale) { s.Notes.Put("mark", "x") }, "loop/2/mark", "mark", "loop"},
			"an element":             {func(s *Tale) { s.Tags.Remove("t") }, "beside", "", ""},
		} {
			unchanged(t, store, run, func() {
				err := d.Edit(t.Context(), run, c.edit, dispatcher.EditOptions{Frame: c.frame})
				var conflict *state.ConflictError
				if !errors.As(err, &conflict) || conflict.Visits[1] != c.by || conflict.Key != c.key && c.key != "" {
					t.Errorf("%s: %v", name, err)
				}
				advises(t, err, fmt.Sprintf("name %q in EditOptions.Void", c.by))
			})
		}
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { // none of it is hidden
			s.Said.Truncate(0)
			s.Notes.Put("other", "x")
			s.Count.Set(10)
			s.Tags.Add("t")
		})
		timeEdit(t, d, dispatcher.EditOptions{Void: []string{"beside", "loop"}}, func(s *Tale) {
			s.Word.Set("x")
			s.Notes.Put("turn", "x")
		})
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "beside", "loop/1/turn", "loop/1/rest", "loop/2/turn", "loop/2/rest", "loop/3/turn", "loop/3/rest", "last")
		if got := fmt.Sprint(res.State.Word.Get(), "; ", notes(res.State), res.State.Count.Get()); got !=
			"beside after x; map[mark:made other:x turn:loop/3/turn after x] 13" {
			t.Errorf("in the end the state is %s", got)
		}
		timeReplayed(t, d, store)
	})
}

// A visit inside a loop is voided by its name, and the rest of the loop stays.
func TestTimeEditVoidsInsideALoop(t *testing.T) {
	var w witness
	store := new(memory.Store)
	g := timeNested(t, &w, func(_ context.Context, s *Tale) error {
		s.Word.Update(func(was string) string { return was + "." })
		return nil
	}, nil)
	d := callsDispatcher(t, g, store, timeOptions(dispatcher.Options{}, "loop/1/rest"))
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/rest")
	w.took()
	unchanged(t, store, run, func() { // it is merged: its superstep is not open
		err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("x") }, dispatcher.EditOptions{Frame: "loop", Void: []string{"loop/1/turn"}})
		var refused *dispatcher.OptionError
		if !errors.As(err, &refused) || refused.Option != "Void" {
			t.Errorf("a visit that is merged was voided: %v", err)
		}
	})
	timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Word.Set("x") })
	timeEdit(t, d, dispatcher.EditOptions{Void: []string{"loop"}}, func(s *Tale) { s.Word.Set("y") })
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/rest")
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if got := res.State.Word.Get(); got != "y..." {
		t.Errorf("the loop that began again says %q", got)
	}
	timeReplayed(t, d, store)
}

// timeItems is an Each of three items, the second of which asks, with a step beside it.
func timeItems(t *testing.T, w *witness) *dag.Graph[Tale] {
	b := dag.New[Tale]("items")
	each := dag.Each(b, "review", func(s *Tale) []string { return slices.Sorted(s.Tags.All()) }, func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		if item == "b" {
			if _, err := dag.Ask[string](ctx, "word", "which?"); err != nil {
				return err
			}
		}
		s.Notes.Put(item, s.Word.Get())
		s.Count.Add(1)
		return nil
	})
	dag.Step(b, "last", w.sees(nil), each)
	return frozen(t, b)
}

// An edit is seen by the items that have still to run. One after which there are other items
// is refused, unless the Each is to begin again.
func TestTimeEditBesideItems(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		d := callsDispatcher(t, timeItems(t, &w), store, dispatcher.Eager(o))
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Tags.Add("a", "b", "c") })
		rests(t, res, err, checkpoint.StatusInterrupted, "review/2")
		w.took()
		unchanged(t, store, run, func() {
			err := d.Edit(t.Context(), run, func(s *Tale) { s.Tags.Add("d") }, dispatcher.EditOptions{})
			var changed *dispatcher.ItemsChangedError
			if !errors.As(err, &changed) || changed.Path != "review" || changed.Is.Count != 4 {
				t.Errorf("an edit that changes the items: %v", err)
			}
			advises(t, err, "an Edit that names it in EditOptions.Void has it begin anew")
			err = d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("x") }, dispatcher.EditOptions{Frame: "review"})
			var refused *dispatcher.OptionError
			if !errors.As(err, &refused) {
				t.Errorf("an edit of the frame of items: %v", err)
			}
			err = d.Edit(t.Context(), run, func(s *Tale) { s.Notes.Put("a", "x") }, dispatcher.EditOptions{})
			var conflict *state.ConflictError
			if !errors.As(err, &conflict) || conflict.Visits[1] != "review/1" {
				t.Errorf("an edit that an item hides: %v", err)
			}
		})
		timeEdit(t, d, dispatcher.EditOptions{Void: []string{"review/3"}}, func(s *Tale) { s.Word.Set("edited"); s.Count.Set(40) })
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "this"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		w.expect(t, "review/2", "review/3", "last")
		if got := fmt.Sprint(notes(res.State), res.State.Count.Get()); got != "map[a: b:edited c:edited] 43" {
			t.Errorf("in the end the state is %s", got)
		}
		timeReplayed(t, d, store)
	})
}

// An Each that is voided computes its items anew.
func TestTimeEditOfItems(t *testing.T) {
	var w witness
	store := new(memory.Store)
	d := callsDispatcher(t, timeItems(t, &w), store, dispatcher.Eager(dispatcher.Options{}))
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Tags.Add("a", "b") })
	rests(t, res, err, checkpoint.StatusInterrupted, "review/2")
	timeEdit(t, d, dispatcher.EditOptions{Void: []string{"review"}}, func(s *Tale) { s.Tags.Remove("b"); s.Tags.Add("d") })
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "review/1", "review/2", "review/1", "review/2", "last")
	if got := notes(res.State); len(got) != 2 || got["d"] != "" || len(res.Interrupts) > 0 {
		t.Errorf("in the end the notes are %v", got)
	}
	timeReplayed(t, d, store)
}

// The state of an embedded graph is edited in its own type, and is nobody else's.
func TestTimeEditOfAnEmbeddedGraph(t *testing.T) {
	store := new(memory.Store)
	inner, b := dag.New[Talk]("inner"), dag.New[Tale]("outer")
	dag.Step(inner, "hears", func(_ context.Context, s *Talk) error { s.Lines.Append(s.Heard.Get()); return nil })
	dag.Embed(b, "talk", frozen(t, inner), func(s *Tale, k *Talk) { k.Heard.Set(s.Word.Get()) },
		func(k *Talk, s *Tale) { s.Word.Set(strings.Join(k.Lines.Slice(), " ")) })
	d := callsDispatcher(t, frozen(t, b), store, timeOptions(dispatcher.Options{}, "talk/hears"))
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("teh") })
	rests(t, res, err, checkpoint.StatusInterrupted, "talk/hears")
	unchanged(t, store, run, func() {
		if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Frame: "talk"}); !errors.Is(err, dispatcher.ErrNested) {
			t.Errorf("an edit in another type: %v", err)
		}
	})
	timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Notes.Put("outer", "edited") }) // not seen inside
	err = dispatcher.EditOf(t.Context(), d, run, func(k *Talk) { k.Heard.Set("the") }, dispatcher.EditOptions{Frame: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	if got := fmt.Sprint(res.State.Word.Get(), notes(res.State)); got != "themap[outer:edited]" {
		t.Errorf("in the end the state is %s", got)
	}
	timeReplayed(t, d, store)
}

// A frame that has ended is read with what was edited behind its last superstep, in it or around
// it, and with nothing that was edited when it had ended, or in what was abandoned since.
func TestTimeEditBehindTheLastSuperstep(t *testing.T) {
	quiet(t)
	for _, o := range []dispatcher.Options{{}, dispatcher.Eager(dispatcher.Options{})} {
		store := new(memory.Store)
		count := func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil }
		inner, body, b := dag.New[Tale]("inner"), dag.New[Tale]("body"), dag.New[Tale]("outer")
		dag.Step(inner, "a", count)
		dag.Step(body, "a", count)
		talk := dag.Embed(b, "talk", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) { panic("no way out") })
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, 2, talk.Failed())
		dag.Step(b, "end", nothing[Tale], loop)
		o.InterruptAfter, o.InterruptBefore = []string{"talk/a", "loop/1/a", "loop/2/a"}, []string{"end"}
		d := callsDispatcher(t, frozen(t, b), store, o)
		words := func(want map[string]string) {
			t.Helper()
			for address, want := range want {
				res, err := dispatcher.StateOf[Tale](t.Context(), d, run, address)
				if err != nil {
					t.Fatal(address, err)
				}
				got := fmt.Sprintf("%s %d %s %s", res.Frame, res.Superstep, res.State.Word.Get(), slices.Sorted(res.State.Tags.All()))
				if got != want {
					t.Errorf("%s is read as %s, want %s", address, got, want)
				}
			}
		}
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "talk/a")
		timeEdit(t, d, dispatcher.EditOptions{Frame: "talk"}, func(s *Tale) { s.Word.Set("said") })
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/1/a")
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Tags.Add("around") })
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Word.Set("one") })
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/a")
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Word.Set("two") })
		res, err = d.Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusInterrupted, "end")
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Word.Set("late"); s.Tags.Add("late") })
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		words(map[string]string{
			"talk": "talk 1 said []", "talk@1": "talk 1  []", "loop/1": "loop/1 1 one [around]", "loop/1@1": "loop/1 1  []",
			"loop": "loop/2 1 two [around]", "loop/2@1": "loop/2 1 one [around]",
		})
		past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Frames: []string{"loop/1"}, Causes: []dispatcher.Cause{dispatcher.CauseEdited}})
		if err != nil || len(past) != 1 {
			t.Fatalf("edited in loop/1 are %v, %v", past, err)
		}
		if err := d.Rewind(t.Context(), run, fmt.Sprintf("%s@%d", run, past[0].Seq), dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Tags.Add("again") })
		for err = dispatcher.ErrInterrupted; errors.Is(err, dispatcher.ErrInterrupted); {
			res, err = d.Resume(t.Context(), run)
		}
		completes(t, res, err)
		words(map[string]string{
			"talk": "talk 1 said []", "loop/1": "loop/1 1 one [again around]", "loop": "loop/2 1 one [again around]", "loop/2@1": "loop/2 1 one [again around]",
		})
		if _, err := d.Turn(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
		}
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop"}, func(s *Tale) { s.Word.Set("next") })
		words(map[string]string{"1/loop": "loop/2 1 one [again around]", "loop": "loop/2 1 next [again around]"})
	}
}
