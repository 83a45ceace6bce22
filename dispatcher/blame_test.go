package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// blameText is one line for each cell.
func blameText(t *testing.T, d *dispatcher.Dispatcher[Tale], id, at string, cells ...string) []string {
	t.Helper()
	blames, err := d.Blame(t.Context(), id, at, cells...)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, b := range blames {
		lines = append(lines, b.String())
	}
	return lines
}

// blameGraph writes a word in a loop, in the second attempt of a visit.
func blameGraph(t testing.TB) *dag.Graph[Tale] {
	body := dag.New[Tale]("body")
	dag.Step(body, "draft", func(ctx context.Context, s *Tale) error {
		if dag.Attempt(ctx) == 1 {
			return errors.New("not yet")
		}
		s.Word.Set(visitPath(ctx))
		s.Count.Add(1)
		return nil
	}).With(dag.Policy{Attempts: 2})
	b := dag.New[Tale]("blame")
	loop := dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 2 }, 3)
	dag.Step(b, "notes", func(_ context.Context, s *Tale) error {
		s.Notes.Put("k", "v")
		return nil
	}, loop)
	return frozen(t, b)
}

// A cell is blamed on whoever wrote all of it last, and on those who have added to it since: on
// the iteration and the attempt, and on no visit that holds them.
func TestBlameNamesVisitIterationAndAttempt(t *testing.T) {
	var store memory.Store
	d := process(t, blameGraph(t), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("in"); s.Tags.Add("t") })
	completes(t, res, err)
	want := []string{
		"Count: visit loop/1/draft attempt 2 at tale@5, visit loop/2/draft attempt 2 at tale@9",
		"Word: visit loop/2/draft attempt 2 at tale@9",
		"Notes: visit notes at tale@13",
		"Tags: input at tale@1",
	}
	if got := blameText(t, d, run, ""); !slices.Equal(got, want) {
		t.Errorf("to blame are\n%q, want\n%q", got, want)
	}
	if got := blameText(t, d, run, "loop/1@1", "Word", "Said"); !slices.Equal(got, []string{
		"Word: visit loop/1/draft attempt 2 at tale@5", "Said: nobody",
	}) {
		t.Errorf("inside the loop to blame are %q", got)
	}
	unchanged(t, &store, run, func() {
		var o *dispatcher.OptionError
		if _, err := d.Blame(t.Context(), run, "", "Wrd"); !errors.As(err, &o) {
			t.Errorf("of no cell the blame is %v", err)
		}
		if _, err := d.Blame(t.Context(), run, "17"); !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("of no checkpoint the blame is %v", err)
		}
	})
}

// Blame of a fork goes on in the run that it comes from. When that is gone, or another has its
// name, nobody is blamed by name.
func TestBlameGoesOnInTheOrigin(t *testing.T) {
	var store memory.Store
	d := process(t, blameGraph(t), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	forkOne(t, d, "1", "fork", dispatcher.ReuseOrRefuse)
	res, err = d.Run(t.Context(), "fork", nil)
	completes(t, res, err)
	rest := []string{"Notes: visit notes at fork@3"}
	there := []string{
		"Count: visit loop/1/draft attempt 2 at tale@5, visit loop/2/draft attempt 2 at tale@9",
		"Word: visit loop/2/draft attempt 2 at tale@9",
	}
	if got, want := blameText(t, d, "fork", ""), append(there, rest...); !slices.Equal(got, want) {
		t.Errorf("to blame are %q, want %q", got, want)
	}
	if err := store.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	gone := append([]string{"Count: before at tale@12", "Word: before at tale@12"}, rest...)
	if got := blameText(t, d, "fork", ""); !slices.Equal(got, gone) {
		t.Errorf("without the origin to blame are %q, want %q", got, gone)
	}
	res, err = d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("another"); s.Count.Set(1) })
	completes(t, res, err)
	if got := blameText(t, d, "fork", ""); !slices.Equal(got, gone) {
		t.Errorf("beside another origin to blame are %q, want %q", got, gone)
	}
}

// Whoever wrote what was trimmed is one writer: of the run's state, and of what a loop that was at
// work had added to it.
func TestBlameNamesTheTrimmedPastOnce(t *testing.T) {
	var store memory.Store
	g := blameGraph(t)
	d := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"loop/3/draft"}})
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Count.Add(5) })
	rests(t, res, err, checkpoint.StatusInterrupted, "loop/3/draft")
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	info, err := store.Stat(t.Context(), run)
	if err != nil || info.First <= 1 {
		t.Fatalf("the log begins at %d, %v", info.First, err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	want := fmt.Sprintf("Count: before at tale@%d, visit loop/3/draft attempt 2 at tale@", info.First-1)
	if got := blameText(t, d, run, "", "Count"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("to blame are %q, want %q and a number", got, want)
	}
}

// A run that was rewound, and trimmed so that what it went back to is gone, has one to blame for
// it.
func TestBlameOfWhatARewoundRunWentBackTo(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("line")
	var after []dag.Edge[Tale]
	for _, name := range []string{"a", "b", "c"} {
		after = []dag.Edge[Tale]{dag.Step(b, name, func(_ context.Context, s *Tale) error { s.Word.Set(name); s.Count.Add(1); return nil }, after...)}
	}
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	first, err := d.At(t.Context(), run, "1")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 3}); err != nil {
		t.Fatal(err)
	}
	blames, err := d.Blame(t.Context(), run, "", "Count")
	want := fmt.Sprintf("Count: before at tale@%d, visit b at tale@", first.Cursor.Seq)
	if err != nil || len(blames) != 1 || len(blames[0].Writers) != 3 || !strings.HasPrefix(blames[0].String(), want) {
		t.Errorf("to blame are %v, %v, want %q", blames, err, want)
	}
}

// renamedGraph has visits that are done beside one that asks, in the run's own superstep and in one
// of a loop.
func renamedGraph(t testing.TB, one, loop, beside string) *dag.Graph[Tale] {
	body := dag.New[Tale]("body")
	first := dag.Step(body, "first", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	dag.Step(body, "wait", func(ctx context.Context, s *Tale) error {
		_, err := dag.Ask[string](ctx, "q", "on?")
		if err == nil {
			s.Count.Add(10)
		}
		return err
	}, first)
	dag.Step(body, beside, func(_ context.Context, s *Tale) error { s.Notes.Put("k", "v"); return nil }, first)
	b := dag.New[Tale]("renamed")
	dag.Loop(b, loop, frozen(t, body), func(*Tale) bool { return true }, 3)
	if one != "" {
		dag.Step(b, one, func(_ context.Context, s *Tale) error { s.Word.Set("w"); return nil })
	}
	return frozen(t, b)
}

// Writers of what is not merged yet, and of the state of a frame that is open, are those who they
// were when a migration renames their nodes; what a forgotten node wrote nobody has written.
func TestBlameBehindAMigration(t *testing.T) {
	for name, c := range map[string]struct {
		one, loop, beside string
		nodes             map[string]string
	}{
		"without one":         {"one", "loop", "beside", nil},
		"a visit":             {"other", "loop", "beside", map[string]string{"one": "other"}},
		"a loop":              {"one", "lap", "beside", map[string]string{"loop": "lap"}},
		"a visit of a loop":   {"one", "loop", "near", map[string]string{"loop/beside": "loop/near"}},
		"names that change":   {"loop", "one", "beside", map[string]string{"one": "loop", "loop": "one"}},
		"all of them":         {"other", "lap", "near", map[string]string{"one": "other", "loop": "lap", "loop/beside": "lap/near"}},
		"one that is no more": {"", "lap", "beside", map[string]string{"one": "", "loop": "lap"}},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			d := process(t, renamedGraph(t, "one", "loop", "beside"), &store, dispatcher.Options{})
			if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			var o dispatcher.Options
			if c.nodes != nil {
				o = migrating(dispatcher.Migration{Name: "names", Nodes: c.nodes})
			}
			d = process(t, renamedGraph(t, c.one, c.loop, c.beside), &store, o)
			if err := d.Answer(t.Context(), run, "", "yes"); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			inside := []string{
				"Count: visit loop/1/first, visit " + c.loop + "/1/wait",
				"Notes: visit loop/1/beside",
			}
			want := inside
			if c.one != "" {
				want = slices.Insert(slices.Clone(inside), 1, "Word: visit one")
			}
			places := regexp.MustCompile(` at tale@\d+`)
			for at, want := range map[string][]string{"": want, c.loop + "/1@2": inside} {
				got := blameText(t, d, run, at)
				for i := range got {
					got[i] = places.ReplaceAllString(got[i], "")
				}
				if !slices.Equal(got, want) {
					t.Errorf("at %q to blame are\n%q, want\n%q", at, got, want)
				}
			}
			for p, err := range d.History(t.Context(), run) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Blame(t.Context(), run, p.String()); err != nil {
					t.Errorf("of %s, which History lists, the blame is %v", p, err)
				}
			}
		})
	}
}

// withoutNames is a store whose logs don't say what a migration called nodes, as those of older
// programs.
type withoutNames struct{ *memory.Store }

func (s withoutNames) Append(ctx context.Context, l checkpoint.Lease, at checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	entries = slices.Clone(entries)
	for i := range entries {
		if e := &entries[i]; e.Kind == checkpoint.Migrated {
			var d checkpoint.Migration
			err := json.Unmarshal(e.Data, &d)
			d.Nodes = nil
			if e.Data, _ = json.Marshal(d); err != nil {
				return at, err
			}
		}
	}
	return s.Store.Append(ctx, l, at, entries)
}

// Behind a migration that doesn't say what it renamed, nobody is known to have written in frames
// that it renamed; that is no error.
func TestBlameBehindAnOldMigration(t *testing.T) {
	body := dag.New[Tale]("body")
	count := part(func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	dag.Step(body, "y", count, dag.Step(body, "x", count))
	loop := frozen(t, body)
	graph := func(embed string) *dag.Graph[Tale] {
		inner := dag.New[Tale]("inner")
		dag.Loop(inner, "loop", loop, func(s *Tale) bool { return s.Count.Get() > 4 }, 9, dag.Step(inner, "a", count))
		b := dag.New[Tale]("outer")
		dag.Embed(b, embed, frozen(t, inner), func(_, _ *Tale) {}, func(from, to *Tale) { to.Count.Add(from.Count.Get()) })
		return frozen(t, b)
	}
	for _, at := range [][2]string{
		{"hunt/a", "search/loop/1/y"}, {"hunt/loop", "search/loop/2/y"}, {"hunt/loop/2/x", "search/loop/2/y"},
	} {
		store := withoutNames{new(memory.Store)}
		d := process(t, graph("hunt"), store, dispatcher.Options{InterruptBefore: []string{at[0]}})
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		o := migrating(dispatcher.Migration{Name: "names", Nodes: map[string]string{"hunt": "search"}})
		o.InterruptBefore = []string{at[1]}
		d = process(t, graph("search"), store, o)
		if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if _, err := d.Blame(t.Context(), run, ""); err != nil {
			t.Errorf("from %s to %s: Blame: %v", at[0], at[1], err)
		}
	}
}

// setsWord is a migration's State that sets Word in one frame, and leaves the others as they are.
func setsWord(frame string) func(string, json.RawMessage) (json.RawMessage, error) {
	return func(path string, was json.RawMessage) (json.RawMessage, error) {
		if path != frame {
			return was, nil
		}
		var cells map[string]json.RawMessage
		err := json.Unmarshal(was, &cells)
		cells["Word"] = json.RawMessage(`"migrated"`)
		is, failed := json.Marshal(cells)
		return is, errors.Join(err, failed)
	}
}

// Whoever migrates the state of a frame has written there what it made another, whatever the nodes
// around it are called now.
func TestBlameOfAMigratedFrame(t *testing.T) {
	for name, c := range map[string]struct {
		frame, is string
		hold      func(b *dag.Builder[Tale], name string, inner *dag.Graph[Tale])
	}{
		"the run's own": {"", "", func(b *dag.Builder[Tale], name string, inner *dag.Graph[Tale]) {
			dag.Step(b, "b", nothing[Tale], dag.Step(b, "a", func(_ context.Context, s *Tale) error { s.Word.Set("a"); return nil }))
			dag.Step(b, name, nothing[Tale])
		}},
		"an embedded graph": {"hunt", "chase", func(b *dag.Builder[Tale], name string, inner *dag.Graph[Tale]) {
			dag.Embed(b, name, inner, func(_, _ *Tale) {}, func(_, _ *Tale) {})
		}},
		"an iteration": {"hunt/1", "chase/1", func(b *dag.Builder[Tale], name string, inner *dag.Graph[Tale]) {
			dag.Loop(b, name, inner, func(*Tale) bool { return true }, 3)
		}},
		"an item": {"hunt/1", "chase/1", func(b *dag.Builder[Tale], name string, inner *dag.Graph[Tale]) {
			dag.EachGraph(b, name, func(*Tale) []int { return []int{1} }, inner, func(*Tale, int, *Tale) {}, func(*Tale, int, *Tale) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			graph := func(name string) *dag.Graph[Tale] {
				inner, b := dag.New[Tale]("inner"), dag.New[Tale]("outer")
				a := dag.Step(inner, "a", func(_ context.Context, s *Tale) error { s.Word.Set("a"); s.Count.Add(1); return nil })
				dag.Step(inner, "b", func(_ context.Context, s *Tale) error { s.Notes.Put("k", "v"); return nil }, a)
				c.hold(b, name, frozen(t, inner))
				return frozen(t, b)
			}
			in := func(frame string) string { return strings.TrimPrefix(frame+"/b", "/") }
			changeHeld(t, graph("hunt"), &store, in(c.frame))
			d := process(t, graph("chase"), &store, migrating(dispatcher.Migration{
				Name: "words", Nodes: map[string]string{"hunt": "chase"}, State: setsWord(c.frame),
			}))
			res, err := d.Resume(t.Context(), run)
			completes(t, res, err)
			got := blameText(t, d, run, strings.TrimPrefix(c.is+"@2", "@"), "Word")
			if len(got) != 1 || !strings.HasPrefix(got[0], "Word: migration at tale@") {
				t.Errorf("to blame are %q, want the migration alone", got)
			}
		})
	}
}

// A migration that writes what a cell holds with other escapes, or other spaces, has changed
// nothing in it.
func TestBlameOfAMigrationThatChangesNoValue(t *testing.T) {
	var store memory.Store
	graph := func(last string) *dag.Graph[Tale] {
		b := dag.New[Tale]("line")
		a := dag.Step(b, "a", func(_ context.Context, s *Tale) error {
			s.Word.Set("a<b")
			s.Notes.Put("k&", "v")
			s.Said.Append(">")
			return nil
		})
		dag.Step(b, last, nothing[Tale], a)
		return frozen(t, b)
	}
	changeHeld(t, graph("b"), &store, "b")
	d := process(t, graph("c"), &store, migrating(dispatcher.Migration{
		Name: "escapes", Nodes: map[string]string{"b": "c"}, State: func(_ string, was json.RawMessage) (json.RawMessage, error) {
			var cells map[string]any
			if err := json.Unmarshal(was, &cells); err != nil {
				return nil, err
			}
			cells["Count"] = 3
			return json.MarshalIndent(cells, "", " ")
		},
	}))
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	for _, line := range blameText(t, d, run, "") {
		cell, by, _ := strings.Cut(line, ": ")
		if migrated := strings.HasPrefix(by, "migration "); migrated != (cell == "Count") || !migrated && !strings.HasPrefix(by, "visit a ") {
			t.Errorf("to blame is %s", line)
		}
	}
}

// What a Loop did that failed is done by the visits inside it, also if nobody followed its failure
// until a changed graph did.
func TestBlameOfALoopWhoseFailureIsFollowedNow(t *testing.T) {
	quiet(t)
	var store memory.Store
	graph := func(followed bool) *dag.Graph[Tale] {
		body, b := dag.New[Tale]("body"), dag.New[Tale]("outer")
		dag.Step(body, "draft", func(_ context.Context, s *Tale) error { s.Word.Set("drafted"); return nil })
		loop := dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { panic("nobody knows") }, 3)
		if followed {
			dag.Step(b, "after", nothing[Tale], loop.Failed())
		}
		return frozen(t, b)
	}
	res, err := process(t, graph(false), &store, dispatcher.Options{}).Run(t.Context(), run, func(s *Tale) { s.Word.Set("given") })
	rests(t, res, err, checkpoint.StatusFailed, "loop")
	d := process(t, graph(true), &store, dispatcher.Options{})
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	got := blameText(t, d, run, "", "Word")
	if res.State.Word.Get() != "drafted" || len(got) != 1 || !strings.HasPrefix(got[0], "Word: visit loop/1/draft at tale@") {
		t.Errorf("of %q to blame are %q, want visit loop/1/draft", res.State.Word.Get(), got)
	}
}
