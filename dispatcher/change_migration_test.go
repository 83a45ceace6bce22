package dispatcher_test

import (
	"context"
	"encoding/json"
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

// migrating returns options with these migrations.
func migrating(all ...dispatcher.Migration) dispatcher.Options {
	return dispatcher.Options{Migrations: all}
}

// migrateSpin is a loop whose body has two nodes, between two others.
func migrateSpin(t testing.TB, w *witness, name, loop string, body ...string) *dag.Graph[Tale] {
	b := dag.New[Tale](name)
	begin := dag.Step(b, "begin", w.sees(nil))
	spin := dag.Loop(b, loop, changeLine(t, w, body...), func(*Tale) bool { return false }, 2, begin)
	dag.Step(b, "end", w.sees(nil), spin)
	return frozen(t, b)
}

// A migration says what nodes are called now, at any depth; what is done stays done.
func TestMigrationRenamesNodes(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := migrateSpin(t, &w, "spin", "loop", "draft", "check")
	changeHeld(t, old, &store, "loop/2/check")
	w.expect(t, "begin", "loop/1/draft", "loop/1/check", "loop/2/draft")
	next := migrateSpin(t, &w, "spin", "again", "draft", "validate")

	before, _ := store.Stat(t.Context(), run)
	_, err := process(t, next, &store, dispatcher.Options{}).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err, "visit loop is open, and its node is gone")
	_, err = process(t, next, &store, migrating(dispatcher.Migration{
		Name: "half", Nodes: map[string]string{"loop": "again"},
	})).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err, "visit loop/2/check is open, and its node is gone")
	if !strings.Contains(err.Error(), `migration "half" does not fit`) {
		t.Errorf("the error does not name the migration: %v", err)
	}

	d := process(t, next, &store, migrating(dispatcher.Migration{
		Name: "words", From: old.Digest(), Nodes: map[string]string{"loop": "again", "loop/check": "again/validate"},
	}))
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "again/2/validate", "end")
	says(t, res.State, "begin", "loop/1/draft", "loop/1/check", "loop/2/draft", "again/2/validate", "end")
	if res, err := process(t, next, &store, dispatcher.Options{}).State(t.Context(), run); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("without the migration the run is %s, %v", res.Status, err)
	}
}

// A visit that is forgotten leaves what it has merged, and takes with it what waits.
func TestMigrationForgetsNodes(t *testing.T) {
	quiet(t)
	forget := func(name string) dispatcher.Options {
		return migrating(dispatcher.Migration{Name: "without " + name, Nodes: map[string]string{name: ""}})
	}
	for _, c := range []struct {
		rule, held, gone string
		runs             []string
		says             string
	}{
		{"done, between two that are done", "d", "b", []string{"d"}, "abcd"},
		{"open, with its interrupt", "b", "b", []string{"c", "d"}, "acd"},
		{"done, and what follows it is open", "d", "c", []string{"d"}, "abcd"},
		{"done, and the first", "c", "a", []string{"c", "d"}, "abcd"},
	} {
		var w witness
		var store memory.Store
		names := []string{"a", "b", "c", "d"}
		changeHeld(t, changeLine(t, &w, names...), &store, c.held)
		w.took()
		next := changeLine(t, &w, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == c.gone })...)
		before, _ := store.Stat(t.Context(), run)
		_, err := process(t, next, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		var changed *dispatcher.GraphChangedError
		if after, _ := store.Stat(t.Context(), run); !errors.As(err, &changed) || after.Head != before.Head {
			t.Errorf("%s: without a migration the run goes on: %v", c.rule, err)
		}
		res, err := process(t, next, &store, forget(c.gone)).Resume(t.Context(), run)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		w.expect(t, c.runs...)
		says(t, res.State, strings.Split(c.says, "")...)
	}
}

// What was rejected behind an item is told under the name that its node has now, by the call and by
// the cursor.
func TestMigrationRenamesWhatIsRejected(t *testing.T) {
	quiet(t)
	var store memory.Store
	each := func(name string) *dag.Graph[Tale] {
		b := dag.New[Tale]("each")
		dag.Each(b, name, func(*Tale) []int { return []int{1, 2} }, func(context.Context, *Tale, int) error { return nil })
		return frozen(t, b)
	}
	d := process(t, each("old"), &store, dispatcher.Options{InterruptAfter: []string{"old/1", "old/2"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "old/1", "old/2")
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	o := migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"old": "new"}})
	res, err = process(t, each("new"), &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "new/2", "new/1")
	if len(res.Failures) != 1 || res.Failures[0].Path != "new/1" {
		t.Errorf("the failures are %+v", res.Failures)
	}
}

// forgetGraph is a line of visits that ask, in a loop or an Each of this name, or in neither.
func forgetGraph(t testing.TB, around string, names ...string) *dag.Graph[Tale] {
	line := dag.New[Tale]("line")
	var after []dag.Edge[Tale]
	for _, name := range names {
		after = []dag.Edge[Tale]{dag.Step(line, name, func(ctx context.Context, s *Tale) error {
			if _, err := dag.Ask[string](ctx, "q", "on?"); err != nil {
				return err
			}
			s.Said.Append(name)
			return nil
		}, after...)}
	}
	b := dag.New[Tale]("around")
	switch around {
	case "":
		return frozen(t, line)
	case "loop":
		dag.Loop(b, around, frozen(t, line), func(*Tale) bool { return true }, 2)
	case "each":
		dag.EachGraph(b, around, func(*Tale) []int { return []int{1, 2} }, frozen(t, line),
			func(*Tale, int, *Tale) {}, func(from *Tale, _ int, to *Tale) { to.Said.Append(from.Said.Slice()...) })
	}
	return frozen(t, b)
}

// When all that was open in a frame is forgotten, the next superstep begins; what the run then
// does, others read from the log as it was, and go on with.
func TestMigrationForgetsAllThatIsOpen(t *testing.T) {
	for _, c := range []struct {
		around string
		asks   int // at a time
		says   string
	}{{"", 1, "bc"}, {"loop", 1, "bc"}, {"each", 2, "bcbc"}} {
		var store memory.Store
		_, err := process(t, forgetGraph(t, c.around, "a", "b", "c"), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(c.around+"/a", "/")
		o := migrating(dispatcher.Migration{Name: "without a", Nodes: map[string]string{path: ""}})
		for _, next := range []string{"b", "c"} {
			d := process(t, forgetGraph(t, c.around, "b", "c"), &store, o)
			res, err := d.Resume(t.Context(), run)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatalf("%s: %v", c.around, err)
			}
			read, err := process(t, forgetGraph(t, c.around, "b", "c"), &store, dispatcher.Options{}).Open(t.Context(), run)
			if err != nil || !slices.Equal(read.Cursor.Visits, res.Cursor.Visits) || len(read.Interrupts) != c.asks ||
				!strings.HasSuffix(read.Interrupts[0].Path, next) {
				t.Fatalf("%s: the run stands at %q, and is read as %+v, %v", c.around, res.Cursor.Visits, read, err)
			}
			for _, i := range read.Interrupts {
				if err := d.Answer(t.Context(), run, i.ID, "yes"); err != nil {
					t.Fatal(err)
				}
			}
		}
		res, err := process(t, forgetGraph(t, c.around, "b", "c"), &store, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
		says(t, res.State, strings.Split(c.says, "")...)
	}
}

// A migration brings no run to a place where a run of the graph can't be.
func TestMigrationIsRefused(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b", "c", "d"), &store, "d")
	before, _ := store.Stat(t.Context(), run)
	for _, c := range []struct {
		names   []string
		nodes   map[string]string
		reasons []string
	}{
		{[]string{"a", "x", "c", "d"}, map[string]string{"b": ""}, []string{
			"visit c is done, and x before it has not settled",
		}},
		{[]string{"a", "c", "b", "d"}, nil, []string{
			"visit b is done, and it followed a and follows c",
			"visit c is done, and it followed b and follows a",
			"visit d is open, and it followed c and follows b",
		}},
		{[]string{"a", "b", "c", "d"}[:3], map[string]string{"a": "b"}, []string{
			"visit b is done, and is to be where another is: visit a is done",
			"visit a is done, and it followed nothing and follows a",
			"visit b is done, and it followed b and follows a",
			"visit d is open, and its node is gone",
		}},
	} {
		m := dispatcher.Migration{Name: "no", Nodes: c.nodes}
		_, err := process(t, changeLine(t, &w, c.names...), &store, migrating(m)).Resume(t.Context(), run)
		changeRefused(t, &store, before.Head, err, c.reasons...)
	}
}

// TaleInNumbers is Tale with a cell of another type, and one of another name.
type TaleInNumbers struct {
	Said  state.List[string]
	Count state.Sum[int]
	Word  state.Value[int]
	Lines state.Map[string, string]
	Tags  state.Set[string]
}

func migrateNumbers(t testing.TB) *dag.Graph[TaleInNumbers] {
	b := dag.New[TaleInNumbers]("line")
	var after []dag.Edge[TaleInNumbers]
	for _, name := range []string{"a", "b", "c"} {
		after = []dag.Edge[TaleInNumbers]{dag.Step(b, name, func(ctx context.Context, s *TaleInNumbers) error {
			s.Said.Append(name)
			s.Lines.Put(name, fmt.Sprint(s.Word.Get()))
			return nil
		}, after...)}
	}
	return frozen(t, b)
}

// migrateWords is a run of the graph before that, held before its last node.
func migrateWords(t testing.TB, store checkpoint.Store) {
	changeHeld(t, wordsGraph(t), store, "c")
}

func wordsGraph(t testing.TB) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	var after []dag.Edge[Tale]
	for _, name := range []string{"a", "b", "c"} {
		after = []dag.Edge[Tale]{dag.Step(b, name, func(ctx context.Context, s *Tale) error {
			s.Said.Append(name)
			s.Word.Set("seven")
			s.Notes.Put(name, "noted")
			return nil
		}, after...)}
	}
	return frozen(t, b)
}

// migrateToNumbers changes the state of that run.
func migrateToNumbers(path string, old json.RawMessage) (json.RawMessage, error) {
	var cells map[string]json.RawMessage
	if err := json.Unmarshal(old, &cells); err != nil {
		return nil, err
	}
	var word string
	if err := json.Unmarshal(cells["Word"], &word); err != nil {
		return nil, err
	}
	cells["Word"] = json.RawMessage(fmt.Sprint(len(word)))
	cells["Lines"] = cells["Notes"]
	delete(cells, "Notes")
	return json.Marshal(cells)
}

// A call that only reads a run of the old graph asks the migration each time, and one that goes on
// asks once. A checkpoint from before it is read as long as the migration is given.
func TestMigrationIsAskedByWhoReads(t *testing.T) {
	var store memory.Store
	migrateWords(t, &store)
	asked := 0
	d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{
		Name: "numbers", State: func(path string, old json.RawMessage) (json.RawMessage, error) {
			asked++
			return migrateToNumbers(path, old)
		},
	}))
	for want := 1; want <= 3; want++ {
		if res, err := d.State(t.Context(), run); err != nil || res.State.Word.Get() != 5 || asked != want {
			t.Errorf("State %d: %d, %v, and the migration was asked %d times", want, res.State.Word.Get(), err, asked)
		}
	}
	if _, err := d.Resume(t.Context(), run); err != nil || asked != 4 {
		t.Errorf("Resume: %v, and the migration was asked %d times", err, asked)
	}
	if _, err := d.State(t.Context(), run); err != nil || asked != 4 {
		t.Errorf("State of what goes on: %v, and the migration was asked %d times", err, asked)
	}
	if res, err := d.At(t.Context(), run, "1"); err != nil || res.State.Word.Get() != 5 || asked != 5 {
		t.Errorf("At before it: %d, %v, and the migration was asked %d times", res.State.Word.Get(), err, asked)
	}
	var changed *dispatcher.GraphChangedError
	if _, err := process(t, migrateNumbers(t), &store, dispatcher.Options{}).At(t.Context(), run, "1"); !errors.As(err, &changed) {
		t.Errorf("At before it, without it: %v", err)
	}
}

// Of a completed run it is in the log when a further turn begins, and not before.
func TestMigrationOfACompletedRun(t *testing.T) {
	var store memory.Store
	if _, err := process(t, wordsGraph(t), &store, dispatcher.Options{}).Start(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
	unchanged(t, &store, run, func() {
		if res, err := d.State(t.Context(), run); err != nil || res.State.Word.Get() != 5 {
			t.Errorf("State: %d, %v", res.State.Word.Get(), err)
		}
	})
	if _, err := d.Turn(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	if n := len(kinds(readLog(t, &store), checkpoint.Migrated)); n != 1 {
		t.Errorf("the log has %d migrations", n)
	}
}

// A migration changes the state of a run once: what it made of it is in the log.
func TestMigrationOfTheState(t *testing.T) {
	quiet(t)
	var store memory.Store
	migrateWords(t, &store)
	before, _ := store.Stat(t.Context(), run)
	next := migrateNumbers(t)
	_, err := process(t, next, &store, dispatcher.Options{}).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err,
		"cell Notes was a map of string to string and is gone", "cell Word was a value of string and is a value of int")
	_, err = process(t, next, &store, dispatcher.Options{}).State(t.Context(), run)
	changeRefused(t, &store, before.Head, err,
		"cell Notes was a map of string to string and is gone", "cell Word was a value of string and is a value of int")

	asked := 0
	o := migrating(
		dispatcher.Migration{Name: "of another", From: next.Digest()[:70] + "0"},
		dispatcher.Migration{Name: "numbers", State: func(path string, old json.RawMessage) (json.RawMessage, error) {
			asked++
			if path != "" {
				t.Errorf("the migration is asked for %q", path)
			}
			return migrateToNumbers(path, old)
		}},
		dispatcher.Migration{Name: "never", State: func(string, json.RawMessage) (json.RawMessage, error) {
			t.Error("a migration behind the one that fits is asked")
			return nil, nil
		}})
	o.InterruptBefore = []string{"c"}
	res, err := process(t, next, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c") // it still does: nothing is written
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head || asked != 1 {
		t.Errorf("a run that only waits was changed, and the migration asked %d times", asked)
	}
	res, err = process(t, next, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	if asked != 2 {
		t.Errorf("the migration was asked %d times, want once for each call that goes on", asked)
	}
	for range 2 {
		want := `{"Said":["a","b","c"],"Count":0,"Word":5,"Lines":{"a":"noted","b":"noted","c":"5"},"Tags":[]}`
		if got := asJSON(t, res.State); got != want {
			t.Errorf("the state is %s, want %s", got, want)
		}
		if res, err = process(t, next, &store, dispatcher.Options{}).State(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	_, err = process(t, next, &store, dispatcher.Options{}).At(t.Context(), run, "1")
	var changed *dispatcher.GraphChangedError
	if !errors.As(err, &changed) || len(changed.Changes) != 2 {
		t.Errorf("At before the migration returns %v, want the cells that don't fit", err)
	}
}

// The past before a migration is read by whoever has the migration, as it makes it: by an address,
// beside another checkpoint, and with the events.
func TestMigrationReadsThePast(t *testing.T) {
	quiet(t)
	var store memory.Store
	migrateWords(t, &store)
	next := migrateNumbers(t)
	d := process(t, next, &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
	past := func(when string) {
		t.Helper()
		at, err := d.At(t.Context(), run, "1")
		if err != nil || at.State.Word.Get() != 5 {
			t.Fatalf("%s: At is %v, %v", when, at.State, err)
		}
		of, err := dispatcher.StateOf[TaleInNumbers](t.Context(), d, run, "1")
		if err != nil || of.State.Word.Get() != 5 {
			t.Errorf("%s: StateOf is %v, %v", when, of.State, err)
		}
		diff, err := d.Diff(t.Context(), run, "1", "2")
		if err != nil || len(diff.Cells) != 2 {
			t.Errorf("%s: Diff is %v, %v, want Said and Lines", when, diff, err)
		}
		told := 0
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{States: true}) {
			if err != nil {
				t.Errorf("%s: Events: %v", when, err)
			} else if strings.Contains(string(e.State), `"Word":5`) {
				told++
			}
		}
		if told == 0 {
			t.Errorf("%s: no event tells of the state", when)
		}
	}
	past("before")
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	past("behind")

	o := migrating(dispatcher.Migration{Name: "none"})
	for address, read := range map[string]func(d *dispatcher.Dispatcher[TaleInNumbers]) error{
		"At": func(d *dispatcher.Dispatcher[TaleInNumbers]) error { _, err := d.At(t.Context(), run, "1"); return err },
		"StateOf": func(d *dispatcher.Dispatcher[TaleInNumbers]) error {
			_, err := dispatcher.StateOf[TaleInNumbers](t.Context(), d, run, "1")
			return err
		},
	} {
		var changed *dispatcher.GraphChangedError
		if err := read(process(t, next, &store, o)); !errors.As(err, &changed) || changed.Migration != "none" {
			t.Errorf("%s with a migration that does not fit returns %v, want it to be named", address, err)
		}
	}
}

// A migration that fails, or makes no state of what it is given, changes nothing.
func TestMigrationOfTheStateFails(t *testing.T) {
	quiet(t)
	var store memory.Store
	migrateWords(t, &store)
	before, _ := store.Stat(t.Context(), run)
	broken := errors.New("no such word")
	for _, c := range []struct {
		rule  string
		state func(string, json.RawMessage) (json.RawMessage, error)
		want  string
		fault bool
	}{
		{"an error", func(string, json.RawMessage) (json.RawMessage, error) { return nil, broken }, "no such word", true},
		{"a panic", func(string, json.RawMessage) (json.RawMessage, error) { panic(broken) }, "no such word", true},
		{"no JSON", func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage("{"), nil }, "is no object", false},
		{"nothing", func(string, json.RawMessage) (json.RawMessage, error) { return nil, nil }, "is no object", false},
		{"an unknown cell", func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"Wrod": 1}`), nil }, `"Wrod"`, false},
		{"a cell twice", func(string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"Word":1,"Word":2}`), nil
		}, "twice", false},
		{"a wrong type", func(_ string, old json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.ReplaceAll(string(old), "Notes", "Lines")), nil
		}, "cell Word", false},
	} {
		d := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: c.state}))
		for name, call := range map[string]func() error{
			"Resume": func() error { _, err := d.Resume(t.Context(), run); return err },
			"State":  func() error { _, err := d.State(t.Context(), run); return err },
			"At":     func() error { _, err := d.At(t.Context(), run, "1"); return err },
			"StateOf": func() error {
				_, err := dispatcher.StateOf[TaleInNumbers](t.Context(), d, run, "")
				return err
			},
			"Events": func() error {
				for _, err := range d.Events(t.Context(), run, dispatcher.Listen{States: true}) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		} {
			err := call()
			var fault *dispatcher.FaultError
			var changed *dispatcher.GraphChangedError
			if c.fault != errors.As(err, &fault) || c.fault == errors.As(err, &changed) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: %s returns %v, want %q", c.rule, name, err, c.want)
			}
			if c.fault && (!errors.Is(err, broken) || fault.Kind != "migration") {
				t.Errorf("%s: the error %v of %s is no failed migration, or does not hold its cause", c.rule, err, name)
			}
		}
		if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
			t.Errorf("%s: something was written", c.rule)
		}
	}
}

// A migration that makes a state larger than a frame may have changes nothing: the limit is an
// error of the call.
func TestMigrationOutgrowsTheState(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	changeHeld(t, migrateSpin(t, &w, "spin", "loop", "a", "b"), &store, "loop/1/b")
	before, _ := store.Stat(t.Context(), run)
	for _, frame := range []string{"", "loop/1"} {
		o := migrating(dispatcher.Migration{
			Name: "words", Nodes: map[string]string{"loop": "lap"}, State: func(of string, was json.RawMessage) (json.RawMessage, error) {
				if of != frame {
					return was, nil
				}
				return fmt.Appendf(nil, `{"Word":%q}`, strings.Repeat("x", 300)), nil
			},
		})
		o.Limits.StateBytes = 300
		next := migrateSpin(t, &w, "spin", "lap", "a", "b")
		_, err := process(t, next, &store, o).Resume(t.Context(), run)
		reached(t, err, "state bytes", 300, fmt.Sprintf("migration %q of the state of frame %q", "words", frame))
		if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
			t.Errorf("%q: something was written", frame)
		}
		o.Limits.StateBytes = 311
		if _, err := process(t, next, &store, o).State(t.Context(), run); err != nil {
			t.Errorf("%q: with room for it: %v", frame, err)
		}
	}
}

// What is not merged yet can't be migrated: nobody knows what it will be merged with.
func TestMigrationOfWhatIsNotMerged(t *testing.T) {
	quiet(t)
	var store memory.Store
	b := dag.New[Tale]("beside")
	dag.Step(b, "a", func(_ context.Context, s *Tale) error {
		s.Word.Set("said")
		return nil
	})
	dag.Step(b, "b", func(context.Context, *Tale) error { return nil })
	changeHeld(t, frozen(t, b), &store, "b")
	before, _ := store.Stat(t.Context(), run)
	n := dag.New[TaleInNumbers]("beside")
	dag.Step(n, "a", func(context.Context, *TaleInNumbers) error { return nil })
	dag.Step(n, "b", func(context.Context, *TaleInNumbers) error { return nil })
	_, err := process(t, frozen(t, n), &store, migrating(dispatcher.Migration{
		Name: "numbers", State: func(_ string, old json.RawMessage) (json.RawMessage, error) { return old, nil },
	})).Resume(t.Context(), run)
	changeRefused(t, &store, before.Head, err,
		"cell Word was a value of string and is a value of int, and what visit a has written to it is not merged yet")
	if strings.Contains(err.Error(), "State") {
		t.Errorf("the error is %v, as if a State could help", err)
	}
}

// A run of a graph of another name goes on only if a migration names its very graph.
func TestMigrationFromAnotherName(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := migrateSpin(t, &w, "old-name", "loop", "a", "b")
	changeHeld(t, old, &store, "loop/1/b")
	before, _ := store.Stat(t.Context(), run)
	next := migrateSpin(t, &w, "new-name", "loop", "a", "b")
	for _, o := range []dispatcher.Options{{}, migrating(dispatcher.Migration{Name: "any"})} {
		_, err := process(t, next, &store, o).Resume(t.Context(), run)
		changeRefused(t, &store, before.Head, err, `its graph is "old-name", and the dispatcher's is "new-name"`)
		if want := `is of another graph: its graph is "old-name", and the dispatcher's is "new-name": use a dispatcher of that one, ` +
			`or another run id, or, if it was renamed, a Migration whose From is ` + old.Digest(); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("the error is %v", err)
		}
	}
	for _, c := range []struct {
		from  string
		takes bool
		names []string
	}{{"", false, []string{"new-name"}}, {old.Digest(), true, []string{"new-name", "old-name"}}} {
		d := process(t, next, &store, migrating(dispatcher.Migration{Name: "none", From: "sha256:" + strings.Repeat("0", 64)}, dispatcher.Migration{Name: "m", From: c.from}))
		if names, err := d.Graphs(t.Context()); err != nil || !slices.Equal(names, c.names) {
			t.Errorf("from %q it has the graphs %q, %v; want %q", c.from, names, err, c.names)
		}
		if d.Takes("old-name", old.Digest()) != c.takes || !d.Takes("new-name", "any") || d.Takes("old-name", "any") {
			t.Errorf("from %q it takes %v", c.from, d.Takes("old-name", old.Digest()))
		}
	}
	w.took()
	res, err := process(t, next, &store, migrating(dispatcher.Migration{Name: "this", From: old.Digest()})).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "loop/1/b", "loop/2/a", "loop/2/b", "end")
	if page, err := store.List(t.Context(), checkpoint.Filter{Graph: "new-name"}); err != nil || len(page) != 1 {
		t.Errorf("under the new name there are %v, %v", page, err)
	}
}

// Migrations that could never be right are refused before anything runs.
func TestMigrationsThatCantBe(t *testing.T) {
	var w witness
	g := migrateSpin(t, &w, "spin", "loop", "draft", "check")
	for _, c := range []struct {
		all  []dispatcher.Migration
		want string
	}{
		{[]dispatcher.Migration{{}}, "Migrations[0] has no name"},
		{[]dispatcher.Migration{{Name: "a"}, {Name: "b"}, {Name: "a"}}, `Migrations[2] has the name "a"`},
		{[]dispatcher.Migration{{Name: "a\nb"}}, `Migrations[0] has the name "a\nb", which holds a control character`},
		{[]dispatcher.Migration{{Name: "a\xff"}}, "is not UTF-8"},
		{[]dispatcher.Migration{{Name: strings.Repeat("a", 100<<10)}}, `aaa", which has 102400 bytes, and may have 128`},
		{[]dispatcher.Migration{{Name: "a", From: g.Digest()}}, "comes from the graph that it goes to"},
		{[]dispatcher.Migration{{Name: "a", From: "abc"}}, "which is no digest of a graph"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"x": "nowhere"}}}, `graph spin has no node "nowhere": a Migration leads to this graph, and none to another`},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"x": "loop/nowhere"}}}, `has no node "nowhere"`},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"x": "loop/draft"}}}, "stays in the graph that it is in"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"loop/x": "begin"}}}, "stays in the graph that it is in"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"old/x": "loop/draft"}}}, "stays in the graph that it is in"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"x": "end", "y": "end"}}}, "can't both be end"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"end": ""}}}, "is in the graph"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"loop/2/x": "loop/draft"}}}, "is no path of a node"},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"loop/x": "loop/2/draft"}}}, `"loop/2/draft" is no path of a node`},
		{[]dispatcher.Migration{{Name: "a", Nodes: map[string]string{"": "end"}}}, "is no path of a node"},
	} {
		var store memory.Store
		_, err := dispatcher.New(g, &store, migrating(c.all...))
		var option *dispatcher.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New returns %v, want %q", err, c.want)
		}
	}
	var store memory.Store
	if _, err := dispatcher.New(g, &store, migrating(
		dispatcher.Migration{Name: strings.Repeat("a", 128)},
		dispatcher.Migration{Name: "a", Nodes: map[string]string{"old": "loop", "old/x": "loop/draft", "gone": "", "gone/x": ""}},
		dispatcher.Migration{Name: "b", Nodes: map[string]string{"end": "begin", "begin": "end"}},
	)); err != nil {
		t.Error(err)
	}
}
