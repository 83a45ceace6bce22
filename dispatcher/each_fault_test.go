package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// Two items that write to one cell in ways that conflict fail the run. The error names both,
// and a resume runs exactly those again.
func TestEachConflict(t *testing.T) {
	t.Parallel()
	for _, followed := range []bool{false, true} {
		var w witness
		mended := false
		b := dag.New[Tale]("tale")
		review := dag.Each(b, "review", eachOf(7), func(ctx context.Context, s *Tale, item string) error {
			w.note(ctx)
			s.Said.Append(item)
			if !mended && (item == "item2" || item == "item5") {
				s.Word.Set(item)
			}
			if followed && item == "item7" {
				return errors.New("torn page")
			}
			return nil
		})
		dag.Step(b, "well", w.sees(nil), review)
		if followed { // what a failed Each keeps has to merge too
			dag.Step(b, "rescue", w.sees(nil), review.Failed())
		}
		g, store := frozen(t, b), new(memory.Store)
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		var conflict *state.ConflictError
		if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
			t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
		}
		if want := [2]string{"review/2", "review/5"}; conflict.Cell != "Word" || conflict.Visits != want {
			t.Errorf("the conflict is %v", conflict)
		}
		w.took()
		mended = true
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if followed {
			w.expect(t, "review/2", "review/5", "rescue")
			says(t, res.State, "item1", "item2", "item3", "item4", "item5", "item6", "rescue")
			continue
		}
		w.expect(t, "review/2", "review/5", "well")
		says(t, res.State, "item1", "item2", "item3", "item4", "item5", "item6", "item7", "well")
	}
}

// An Each that failed in a Loop has what it finished kept, before the frame of the Loop is
// merged. If that can't be merged, the items are still those of the state before: the run is
// not refused, and ends as if nothing had happened.
func TestEachKeptBesideAConflict(t *testing.T) {
	t.Parallel()
	var w witness
	mended := false
	writes := func(ctx context.Context, s *Tale) error {
		if !mended {
			s.Word.Set("mine")
		}
		return w.sees(nil)(ctx, s)
	}
	turn := dag.New[Tale]("turn")
	dag.Step(turn, "one", writes)
	dag.Step(turn, "other", writes)
	dag.Each(turn, "review", func(s *Tale) []string {
		return []string{fmt.Sprint("page ", s.Count.Get()), "bad", "c"}
	}, func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Count.Add(1)
		s.Said.Append(item)
		if item == "bad" {
			return errors.New("torn page")
		}
		return nil
	}).With(dag.Policy{Parallel: 1})
	b := dag.New[Tale]("tale")
	l := dag.Loop(b, "turn", frozen(t, turn), func(*Tale) bool { return true }, 2)
	dag.Step(b, "rescue", w.sees(nil), l.Failed())
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
		t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
	}
	w.expect(t, "turn/1/one", "turn/1/other", "turn/1/review/1", "turn/1/review/2")
	mended = true
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "turn/1/one", "turn/1/other", "rescue")
	says(t, res.State, "turn/1/one", "turn/1/other", "page 0", "rescue")
	if res.State.Count.Get() != 1 {
		t.Errorf("%d items are counted, want 1", res.State.Count.Get())
	}
}

// So it is where what was finished around the Each has been kept before: its items are others by
// the state as it is then, and none of them runs again.
func TestEachKeptInALoopBesideAConflict(t *testing.T) {
	t.Parallel()
	var w witness
	mended := false
	inner := dag.New[Tale]("inner")
	dag.Step(inner, "counts", func(_ context.Context, s *Tale) error {
		s.Count.Add(1)
		return nil
	})
	dag.Each(inner, "review", func(s *Tale) []string {
		return []string{"bad", fmt.Sprint("page ", s.Count.Get())}
	}, func(ctx context.Context, _ *Tale, item string) error {
		w.note(ctx)
		return errors.New(item)
	}).With(dag.Policy{Parallel: 1})
	turn := dag.New[Tale]("turn")
	dag.Loop(turn, "pages", frozen(t, inner), func(*Tale) bool { return true }, 1)
	for _, name := range []string{"one", "other"} {
		dag.Step(turn, name, func(_ context.Context, s *Tale) error {
			if !mended {
				s.Word.Set(name)
			}
			return nil
		})
	}
	b := dag.New[Tale]("tale")
	l := dag.Loop(b, "turn", frozen(t, turn), func(*Tale) bool { return true }, 1)
	dag.Step(b, "rescue", w.sees(nil), l.Failed())
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
		t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
	}
	w.expect(t, "turn/1/pages/1/review/1")
	mended = true
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "rescue")
	if res.State.Count.Get() != 1 {
		t.Errorf("the count is %d, want 1", res.State.Count.Get())
	}
	sameMachine(t, process(t, g, store, dispatcher.Options{}), run)
}

// An item of an Each that has failed is voided with what it depends on, and runs again: its items
// are there for that.
func TestEachThatFailedRunsAStaleItem(t *testing.T) {
	t.Parallel()
	var w witness
	now, mended := time.Now(), false
	turn := dag.New[Tale]("turn")
	dag.Each(turn, "review", func(*Tale) []string { return []string{"good", "bad"} }, func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		if item == "bad" {
			return errWeather
		}
		s.Said.Append(item)
		return dag.Depends(ctx, dag.Dependency{Name: "rates", Captured: now, StaleAfter: time.Hour, OnStale: dag.Invalidate})
	}).With(dag.Policy{Parallel: 1})
	dag.Step(turn, "waits", func(ctx context.Context, _ *Tale) error {
		if mended {
			return nil
		}
		_, err := dag.Ask[string](ctx, "k", "go on?")
		return err
	})
	b := dag.New[Tale]("tale")
	l := dag.Loop(b, "turn", frozen(t, turn), func(*Tale) bool { return true }, 1)
	dag.Step(b, "rescue", w.sees(nil), l.Failed())
	g, store := frozen(t, b), new(memory.Store)
	o := dispatcher.Options{Now: func() time.Time { return now }}
	res, err := process(t, g, store, o).Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatalf("the run ends with %v, want an interrupt", err)
	}
	w.expect(t, "turn/1/review/1", "turn/1/review/2")
	now, mended = now.Add(2*time.Hour), true
	res, err = process(t, g, store, o).Run(t.Context(), run, nil, dispatcher.Answering(res.Interrupts[0].ID, "yes"))
	completes(t, res, err)
	w.expect(t, "turn/1/review/1", "rescue")
	says(t, res.State, "good", "rescue")
}

// Items that are others when the run is resumed are refused, by number or digest, and so are
// those that can't be computed. Nothing has changed then.
func TestEachItemsChanged(t *testing.T) {
	t.Parallel()
	for _, deep := range []bool{false, true} {
		items := []any{"a", "b", "c"}
		var w witness
		mended := false
		list := func(*Tale) []any {
			if items == nil {
				panic("no items today")
			}
			return items
		}
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", list, func(ctx context.Context, s *Tale, item any) error {
			w.note(ctx)
			if item == "b" && !mended {
				return errors.New("torn page")
			}
			s.Said.Append(item.(string))
			return nil
		}).With(dag.Policy{Parallel: 1})
		path := "review"
		if deep {
			outer := dag.New[Tale]("outer")
			dag.EachGraph(outer, "outer", eachOf(1), frozen(t, b), func(*Tale, string, *Tale) {}, func(from *Tale, _ string, to *Tale) {
				to.Said.Append(from.Said.Slice()...)
			})
			b, path = outer, "outer/1/review"
		}
		g, store := frozen(t, b), new(memory.Store)
		if _, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil); err == nil {
			t.Fatal("the run is completed, and item b has failed")
		}
		w.expect(t, path+"/1", path+"/2")
		before := readLog(t, store)
		for _, c := range []struct {
			items []any
			want  string
		}{
			{[]any{"a", "b"}, "the items of " + path + " have changed: there were 3, there are 2"},
			{[]any{"a", "b", "C"}, "the items of " + path + " have changed: their digest was sha256:"},
			{[]any{"b", "a", "c"}, "the items of " + path + " have changed: their digest was sha256:"},
			{[]any{"a", "b", func() {}}, "the items of " + path + ": item 3: json: unsupported type"},
			{nil, "the items of " + path + ": no items today"},
		} {
			items = c.items
			res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("items %v: %v, want %s", c.items, err, c.want)
			}
			var changed *dispatcher.ItemsChangedError
			if errors.As(err, &changed) != strings.Contains(c.want, "changed") || changed != nil && changed.Path != path {
				t.Errorf("items %v: the error is %#v", c.items, err)
			}
			if res.Status != checkpoint.StatusFailed || !slices.Equal(res.Cursor.Visits, []string{path + "/2", path + "/3"}) {
				t.Errorf("items %v: the run is %s at %q", c.items, res.Status, res.Cursor.Visits)
			}
			if log := readLog(t, store); len(log) != len(before) {
				t.Errorf("items %v: %d entries are new", c.items, len(log)-len(before))
			}
		}
		items, mended = []any{"a", "b", "c"}, true
		res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "a", "b", "c")
		w.expect(t, path+"/2#2", path+"/3")
	}
}

// Items that can't be had fail the visit of the Each, and a resume computes them again.
func TestEachItemsThatFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		bad  func() []any
		kind dag.FailureKind
		want string
	}{
		{"a panic", func() []any { panic("no items") }, dag.FailedPanic, "no items"},
		{"a Goexit", func() []any { runtime.Goexit(); return nil }, dag.FailedGoexit, "called runtime.Goexit"},
		{"no JSON", func() []any { return []any{1, make(chan int)} }, dag.FailedState, "item 2: json: unsupported type: chan int"},
		{"too many", func() []any { return make([]any, 6) }, dag.FailedState, "limit 5 of items reached by review"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var w witness
			mended := false
			b := dag.New[Tale]("tale")
			dag.Each(b, "review", func(*Tale) []any {
				if mended {
					return make([]any, 5)
				}
				return c.bad()
			}, func(ctx context.Context, s *Tale, _ any) error { return w.sees(nil)(ctx, s) })
			g, store := frozen(t, b), new(memory.Store)
			o := dispatcher.Options{Limits: dispatcher.Limits{Items: 5}}
			res, err := process(t, g, store, o).Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusFailed, "review")
			var failed *dispatcher.NodeError
			if !errors.As(err, &failed) || failed.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the run failed with %v", err)
			}
			var limit *dispatcher.LimitError
			if errors.As(err, &limit) != (c.rule == "too many") {
				t.Errorf("the run failed with %#v", err)
			}
			mended = true
			res, err = process(t, g, store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "review/1", "review/2", "review/3", "review/4", "review/5")
		})
	}
}

// User code of the graph of an item that panics fails that item.
func TestEachGraphInAndOutPanic(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"in", "out"} {
		var w witness
		var told []dag.Failure
		leaf := dag.New[Tale]("leaf")
		dag.Step(leaf, "read", w.sees(nil))
		at := func(p, item string) {
			if p == place && item == "item2" {
				panic("in the " + p)
			}
		}
		b := dag.New[Tale]("tale")
		review := dag.EachGraph(b, "review", eachOf(3), frozen(t, leaf),
			func(_ *Tale, item string, _ *Tale) { at("in", item) },
			func(_ *Tale, item string, to *Tale) {
				to.Said.Append(item)
				at("out", item)
			}).With(dag.Policy{Errors: dag.Collect})
		dag.Step(b, "tell", func(ctx context.Context, _ *Tale) error {
			told = dag.Failures(ctx)
			return nil
		}, review)
		res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "item1", "item3")
		if len(told) != 1 || told[0].Path != "review/2" || told[0].Kind != dag.FailedPanic || told[0].Message != "in the "+place {
			t.Errorf("%s: told %+v", place, told)
		}
	}
}

// The limits of a visit hold for each item, those of a state for what all items wrote.
func TestEachLimits(t *testing.T) {
	t.Parallel()
	var w witness
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachOf(4), func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Notes.Put(item, strings.Repeat("x", 300))
		return nil
	})
	g := frozen(t, b)
	for _, c := range []struct {
		limits dispatcher.Limits
		cursor []string
		want   string
	}{
		{dispatcher.Limits{VisitBytes: 200}, []string{"review/1", "review/2", "review/3", "review/4"}, "limit 200 of visit bytes reached"},
		{dispatcher.Limits{StateBytes: 1000}, []string{"review/1", "review/2", "review/3", "review/4"}, "limit 1000 of state bytes reached by superstep review@1"},
	} {
		store := new(memory.Store)
		res, err := process(t, g, store, dispatcher.Options{Limits: c.limits}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, c.cursor...)
		var limit *dispatcher.LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the run failed with %v, want %s", err, c.want)
		}
		w.took()
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if n := len(w.took()); n != 4 {
			t.Errorf("%d items ran again, want all 4", n)
		}
	}
}

// What an Each that failed keeps has limits too. Only what it keeps runs again, and not what
// finished behind the item that failed.
func TestEachLimitOfWhatIsKept(t *testing.T) {
	t.Parallel()
	var w witness
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachList("a", "b", "bad", "c"), func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Said.Append(item)
		s.Notes.Put(item, strings.Repeat("x", 300))
		if item == "bad" {
			return errors.New("torn page")
		}
		return nil
	})
	dag.Step(b, "rescue", w.sees(nil), review.Failed())
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{Limits: dispatcher.Limits{StateBytes: 400}}).Run(t.Context(), run, nil)
	var limit *dispatcher.LimitError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &limit) {
		t.Fatalf("the run is %s: %v, want a limit", res.Status, err)
	}
	w.took()
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "review/1", "review/2", "rescue")
	says(t, res.State, "a", "b", "rescue")
}

// Failures that were collected are forgotten if the Each is voided, and runs again.
func TestEachCollectedAndVoided(t *testing.T) {
	t.Parallel()
	mended := false
	var told []dag.Failure
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachOf(3), func(_ context.Context, s *Tale, item string) error {
		if mended {
			return nil
		}
		if item != "item2" {
			return errors.New("torn page")
		}
		s.Word.Set(item)
		return nil
	}).With(dag.Policy{Errors: dag.Collect})
	dag.Step(b, "beside", func(_ context.Context, s *Tale) error {
		s.Word.Set("beside")
		return nil
	})
	dag.Step(b, "tell", func(ctx context.Context, _ *Tale) error {
		told = dag.Failures(ctx)
		return nil
	}, review)
	g, store := frozen(t, b), new(memory.Store)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	var conflict *state.ConflictError
	if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) || conflict.Visits != [2]string{"review", "beside"} {
		t.Fatalf("the run is %s: %v, want a conflict", res.Status, err)
	}
	mended = true
	res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if told != nil {
		t.Errorf("told %+v, and nothing has failed", told)
	}
}

// A cancel stops items as it stops any visit: what has finished is kept, what ignores its
// context is abandoned by name, and its late result does not count.
func TestEachCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		b := dag.New[Tale]("tale")
		dag.Each(b, "review", eachOf(6), func(ctx context.Context, s *Tale, item string) error {
			w.note(ctx)
			s.Said.Append(item)
			switch item {
			case "item2":
				lasts(time.Hour)
			case "item3":
				return heeds(ctx, time.Hour)
			case "item4":
				lasts(12 * time.Second) // returns within the grace period
			}
			return nil
		}).With(dag.Policy{Parallel: 3})
		g, store := frozen(t, b), new(memory.Store)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		d := process(t, g, store, dispatcher.Options{})
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "review/2", "review/3", "review/5", "review/6")
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the call returned after %v", took)
		}
		if want := []string{"review/2"}; !slices.Equal(res.Abandoned, want) {
			t.Errorf("abandoned %q, want %q", res.Abandoned, want)
		}
		if want := []string{"review/1", "review/4"}; !slices.Equal(res.Finished, want) {
			t.Errorf("finished %q, want %q", res.Finished, want)
		}
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) {
			t.Errorf("a resume beside it returns %v", err)
		}
		w.took()
		lasts(time.Hour)
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "item1", "item2", "item3", "item4", "item5", "item6")
		w.expect(t, "review/2", "review/3", "review/5", "review/6")
	})
}

// Thousands of items to run are a short text.
func TestEachRestIsShort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachOf(3000), func(context.Context, *Tale, string) error {
		cancel()
		return nil
	}).With(dag.Policy{Parallel: 1})
	res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{}).Run(ctx, run, nil)
	if len(res.Cursor.Visits) != 2999 {
		t.Errorf("the cursor has %d visits, want 2999", len(res.Cursor.Visits))
	}
	want := `dispatcher: run "tale" was cancelled at review/2, review/3, review/4, review/5, review/6, review/7, review/8, review/9 and 2991 more`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v\nwant %s", err, want)
	}
}

// A run that failed says which of its items did: not which it did not come to.
func TestEachFailedNamesWhatFailed(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("tale")
	dag.Each(b, "review", eachOf(5), func(_ context.Context, _ *Tale, item string) error {
		if item == "item2" {
			return errWeather
		}
		return nil
	}).With(dag.Policy{Parallel: 1})
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	_, err := d.Run(t.Context(), run, nil)
	if want := `dispatcher: run "tale" failed at review/2, with 3 more still to run: visit review/2 failed: ` + errWeather.Error(); fmt.Sprint(err) != want {
		t.Errorf("the error is %v\nwant %s", err, want)
	}
	rest := new(dispatcher.Rest)
	if !errors.As(err, &rest) || len(rest.Failures) != 1 || rest.Failures[0].Path != "review/2" {
		t.Errorf("the failures are %v, want that of review/2", rest.Failures)
	}
}
