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
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// timePast tells a checkpoint on one line.
func timePast(p dispatcher.Past) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %v %v %s %s", p.Seq, p.Cause, p.Checkpoint, p.Visits, p.Tags, p.Author, p.Reason))
}

// The past of a run is told with what led to each checkpoint, in pages and by what is asked for.
func TestTimeHistory(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		ctx := t.Context()
		var w witness
		d := callsDispatcher(t, timeNested(t, &w, nil, nil), store, timeOptions(o, "loop/2/rest"))
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		timeEdit(t, d, dispatcher.EditOptions{Void: []string{"beside"}}, func(s *Tale) { s.Word.Set("x") })
		timeEdit(t, d, dispatcher.EditOptions{Frame: "loop", Reason: "inside"}, func(s *Tale) { s.Word.Set("y") })
		if err := d.Tag(ctx, run, "1", "b"); err != nil {
			t.Fatal(err)
		}
		if err := d.Tag(ctx, run, "1", "a"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(ctx, run)
		completes(t, res, err)
		res, err = d.Turn(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/rest")
		all, err := d.HistoryOf(ctx, run, dispatcher.HistoryFilter{})
		if err != nil {
			t.Fatal(err)
		}
		none := dispatcher.HistoryFilter{Frames: []string{}, Tags: []string{}, Visits: []string{}, Causes: []dispatcher.Cause{}}
		if page, err := d.HistoryOf(ctx, run, none); err != nil || len(page) != len(all) {
			t.Errorf("a filter of empty lists selects %d checkpoints, and nil %d: %v", len(page), len(all), err)
		}
		var told []string
		for _, p := range all {
			line := timePast(p)
			told = append(told, line[strings.Index(line, " ")+1:])
		}
		want := []string{
			"opened @0 [] []", "superstep @1 [top] [a b]", "superstep loop/1@1 [loop/1/turn] []",
			"superstep loop/1@2 [loop/1/mark loop/1/rest] []", "superstep loop/2@1 [loop/2/turn] []",
			"edited @1 [] [] Ada a typo", "edited loop/2@1 [] [] Ada inside", "superstep loop/2@2 [loop/2/mark loop/2/rest] []",
			"superstep loop/3@1 [loop/3/turn] []", "superstep loop/3@2 [loop/3/mark loop/3/rest] []",
			"superstep @2 [beside loop] []", "superstep @3 [last] []",
			"turn @3 [] []", "superstep @4 [top] []", "superstep 2/loop/1@1 [loop/1/turn] []",
			"superstep 2/loop/1@2 [loop/1/mark loop/1/rest] []", "superstep 2/loop/2@1 [loop/2/turn] []",
		}
		if !slices.Equal(told, want) {
			t.Errorf("the past is\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
		for name, c := range map[string]struct {
			f    dispatcher.HistoryFilter
			want []int
		}{
			"tags":        {dispatcher.HistoryFilter{Tags: []string{"a", "b"}}, []int{1}},
			"causes":      {dispatcher.HistoryFilter{Causes: []dispatcher.Cause{dispatcher.CauseEdited, dispatcher.CauseTurn}}, []int{5, 6, 12}},
			"a visit":     {dispatcher.HistoryFilter{Visits: []string{"loop/2/rest"}}, []int{7}},
			"a node":      {dispatcher.HistoryFilter{Visits: []string{"loop/rest", "beside"}, Limit: 3}, []int{3, 7, 9}},
			"a frame":     {dispatcher.HistoryFilter{Frames: []string{"loop/2"}}, []int{4, 6, 7, 16}},
			"both":        {dispatcher.HistoryFilter{Frames: []string{""}, Causes: []dispatcher.Cause{dispatcher.CauseEdited}}, []int{5}},
			"nothing":     {dispatcher.HistoryFilter{Frames: []string{""}, Visits: []string{"loop/2/rest"}}, nil},
			"a page":      {dispatcher.HistoryFilter{After: all[2].Seq, Limit: 2}, []int{3, 4}},
			"the last":    {dispatcher.HistoryFilter{After: all[15].Seq}, []int{16}},
			"behind it":   {dispatcher.HistoryFilter{After: all[16].Seq}, nil},
			"of no graph": {dispatcher.HistoryFilter{Frames: []string{"beside"}, Limit: 1}, nil},
		} {
			page, err := d.HistoryOf(ctx, run, c.f)
			var got []int
			for _, p := range page {
				got = append(got, slices.IndexFunc(all, func(q dispatcher.Past) bool { return q.Seq == p.Seq }))
			}
			if !slices.Equal(got, c.want) || (err != nil) != (name == "of no graph") || err != nil && !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
			}
		}
		samePast(t, run, store, 1, func() *dispatcher.Dispatcher[Tale] {
			return callsDispatcher(t, timeNested(t, &w, nil, nil), store, timeOptions(o, "loop/2/rest"))
		})
		for _, p := range all { // each has an address
			if _, err := d.At(ctx, run, p.Address()); err != nil {
				t.Errorf("%s: %v", timePast(p), err)
			}
		}
	})
}

// What can't be listed is refused by name.
func TestTimeHistoryRefused(t *testing.T) {
	var store memory.Store
	d := timeLine(t, &store, dispatcher.Options{})
	for field, f := range map[string]dispatcher.HistoryFilter{
		"HistoryFilter.Limit":  {Limit: -1},
		"HistoryFilter.Causes": {Causes: []dispatcher.Cause{dispatcher.CauseEdited, "x"}},
	} {
		var option *dispatcher.OptionError
		if _, err := d.HistoryOf(t.Context(), run, f); !errors.As(err, &option) || option.Option != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, f := range map[string]dispatcher.HistoryFilter{
		`"none"`:   {Tags: []string{"none"}},
		`"nobody"`: {Visits: []string{"a", "nobody"}, After: 1},
		`"a"`:      {Frames: []string{"", "a"}},
		"99":       {After: 99},
	} {
		if _, err := d.HistoryOf(t.Context(), run, f); !errors.Is(err, checkpoint.ErrCursor) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.HistoryOf(t.Context(), "nobody", dispatcher.HistoryFilter{}); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("no such run: %v", err)
	}
}

// Scenario 5 of what runs live through, of a run: what lies between two checkpoints, and
// between the last one and an edit; the difference applied to the first is the second.
func TestLife05DifferenceOfCheckpoints(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		ctx := t.Context()
		var w witness
		d := callsDispatcher(t, line(t, &w, nil), store, timeOptions(o, "c"))
		res, err := d.Run(ctx, run, func(s *Tale) { s.Word.Set("teh") })
		rests(t, res, err, checkpoint.StatusInterrupted, "c")
		timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Word.Set("the"); s.Notes.Put("k", "v") })
		for _, c := range []struct{ from, to, want string }{
			{"0", "2", "+ Said: [\"a\",\"b\"]\n"},
			{"1", "2", "+ Said[1]: \"b\"\n"},
			{"2", "1", "- Said[1]: \"b\"\n"},
			{"2", "2", ""},
			{"2", "", "  Word: \"teh\" → \"the\"\n+ Notes: {\"k\":\"v\"}\n"},
		} {
			diff, err := d.Diff(ctx, run, c.from, c.to)
			if err != nil {
				t.Fatal(err)
			}
			if diff.String() != c.want {
				t.Errorf("from %q to %q:\n%s\nwant\n%s", c.from, c.to, diff, c.want)
			}
			from, err := d.At(ctx, run, diff.From.Address())
			if err != nil || asJSON(t, from.State) != asJSON(t, diff.Before) {
				t.Errorf("before is %s at %s: %v", asJSON(t, diff.Before), diff.From.Address(), err)
			}
			schema, err := state.Of[Tale]()
			if err != nil {
				t.Fatal(err)
			}
			if c.from == "0" {
				base, err := schema.Parse([]byte(`{"Word":"teh"}`))
				if err != nil {
					t.Fatal(err)
				}
				next, err := diff.Apply(base)
				if err != nil || string(next.AppendJSON(nil)) != `{"Said":["a","b"],"Word":"teh"}` {
					t.Errorf("applied it is %v", err)
				}
			}
		}
	})
}

// A difference says what it is between: checkpoints, or, of "", the run as it stands now.
func TestLife05DifferenceSaysOfWhat(t *testing.T) {
	t.Parallel()
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: []string{"c"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	res, err = d.Turn(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	diff, err := d.Diff(t.Context(), run, "4", "")
	if err != nil {
		t.Fatal(err)
	}
	if from := diff.From; from.Run != run || from.Turn != 2 || from.Superstep != 4 || from.Cause != dispatcher.CauseSuperstep {
		t.Errorf("it is from %+v, want superstep 4 in turn 2", from)
	}
	now := dispatcher.Checkpoint{Run: run, Seq: res.Cursor.Seq, Turn: 2, Superstep: 5}
	if diff.To != now {
		t.Errorf("it is to %+v, want %+v", diff.To, now)
	}
}

// Scenario 4: what a caller does with a state that it has read changes nothing that is stored,
// and nothing that another one has read.
func TestLife04ReadStatesAreTheCallers(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		ctx := t.Context()
		var w witness
		d := callsDispatcher(t, line(t, &w, func(_ context.Context, s *Tale) error { s.Notes.Put("k", "v"); return nil }), store, timeOptions(o, "c"))
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "c")
		sibling, err := d.State(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		before := asJSON(t, sibling.State)
		unchanged(t, store, run, func() {
			for _, read := range []func() (*dispatcher.Result[Tale], error){
				func() (*dispatcher.Result[Tale], error) { return d.State(ctx, run) },
				func() (*dispatcher.Result[Tale], error) { return d.At(ctx, run, "2") },
				func() (*dispatcher.Result[Tale], error) { return res, nil },
				func() (*dispatcher.Result[Tale], error) {
					diff, err := d.Diff(ctx, run, "1", "2")
					return &dispatcher.Result[Tale]{State: diff.After}, err
				},
			} {
				got, err := read()
				if err != nil {
					t.Fatal(err)
				}
				got.State.Notes.Clear()
				got.State.Said.Replace([]string{"gone"})
				got.State.Word.Set("changed")
			}
		})
		if asJSON(t, sibling.State) != before {
			t.Errorf("another reader's state is %s, was %s", asJSON(t, sibling.State), before)
		}
		if again, err := d.State(ctx, run); err != nil || asJSON(t, again.State) != before {
			t.Errorf("read again the state is %s, was %s: %v", asJSON(t, again.State), before, err)
		}
		res, err = d.Resume(ctx, run)
		completes(t, res, err)
		says(t, res.State, "a", "b", "c")
	})
}
