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
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A completed run is read by any graph whose cells fit; by others it is refused, cell by
// cell.
func TestChangedGraphReadsCompletedRuns(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	res, err := process(t, changeLine(t, &w, "a", "b"), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.took()
	d := process(t, changeLine(t, &w, "x"), &store, dispatcher.Options{})
	for name, read := range map[string]func() (*dispatcher.Result[Tale], error){
		"Run":   func() (*dispatcher.Result[Tale], error) { return d.Run(t.Context(), run, nil) },
		"State": func() (*dispatcher.Result[Tale], error) { return d.State(t.Context(), run) },
	} {
		res, err := read()
		if err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("%s is %s, %v", name, res.Status, err)
		}
		says(t, res.State, "a", "b")
	}
	if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("Resume returns %v, want that it is completed", err)
	}
	w.expect(t)

	store = memory.Store{}
	b := dag.New[Tale]("line")
	dag.Step(b, "a", func(_ context.Context, s *Tale) error {
		s.Word.Set("said")
		return nil
	})
	if _, err := process(t, frozen(t, b), &store, dispatcher.Options{}).Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	before, _ := store.Stat(t.Context(), run)
	numbers := process(t, migrateNumbers(t), &store, dispatcher.Options{})
	_, err = numbers.Run(t.Context(), run, nil)
	changeRefused(t, &store, before.Head, err, "cell Word was a value of string and is a value of int")
	if _, err := numbers.Start(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrExists) {
		t.Errorf("Start returns %v, want that the run exists", err)
	}
}

// A completed run is also read as a migration makes it, by whatever reads it, and is not changed by
// that.
func TestMigrationReadsCompletedRuns(t *testing.T) {
	quiet(t)
	var store memory.Store
	if _, err := process(t, wordsGraph(t), &store, dispatcher.Options{}).Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	before, _ := store.Stat(t.Context(), run)
	carried := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "numbers", State: migrateToNumbers}))
	for name, read := range map[string]func() (*dispatcher.Result[TaleInNumbers], error){
		"Run":   func() (*dispatcher.Result[TaleInNumbers], error) { return carried.Run(t.Context(), run, nil) },
		"State": func() (*dispatcher.Result[TaleInNumbers], error) { return carried.State(t.Context(), run) },
	} {
		res, err := read()
		if err != nil || res.Status != checkpoint.StatusCompleted || res.State.Word.Get() != len("seven") {
			t.Errorf("with a migration %s is %s of %v, %v", name, res.Status, res.State, err)
		}
	}
	if res, err := carried.Continue(t.Context(), run); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("with a migration Continue is %s, %v", res.Status, err)
	}
	unfit := process(t, migrateNumbers(t), &store, migrating(dispatcher.Migration{Name: "none"}))
	var changed *dispatcher.GraphChangedError
	if _, err := unfit.Run(t.Context(), run, nil); !errors.As(err, &changed) || changed.Migration != "none" {
		t.Errorf("with a migration that does not fit Run returns %v, want it to be named", err)
	}
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
		t.Error("a completed run was changed")
	}
}

// A run whose graph the store does not have, or has damaged, is refused as that.
func TestChangedGraphThatIsNotThere(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	old := changeLine(t, &w, "a", "b")
	changeHeld(t, old, &store, "b")
	log := readLog(t, &store)
	for graph, want := range map[string]error{"": nil, "{}": checkpoint.ErrCorrupt, string(changeLine(t, &w, "z").Plan().JSON): checkpoint.ErrCorrupt} {
		var bare memory.Store
		l, err := bare.Acquire(t.Context(), run, "before")
		if err != nil {
			t.Fatal(err)
		}
		head, err := bare.Append(t.Context(), l, checkpoint.Head{}, log)
		if err != nil {
			t.Fatal(err)
		}
		if err := bare.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if graph != "" {
			if err := bare.PutGraph(t.Context(), old.Digest(), []byte(graph)); err != nil {
				t.Fatal(err)
			}
		}
		_, err = process(t, changeLine(t, &w, "a", "b", "c"), &bare, dispatcher.Options{}).Resume(t.Context(), run)
		if want == nil {
			changeRefused(t, &bare, head, err, "the graph that it was made by is not in the store")
			if err == nil || strings.Contains(err.Error(), "Migration") { // which can't read it either
				t.Errorf("the call says %v", err)
			}
		} else if !errors.Is(err, want) || !strings.Contains(err.Error(), old.Digest()) {
			t.Errorf("with the graph %.20q the call returns %v, want %v and the digest", graph, err, want)
		}
		res, err := process(t, old, &bare, dispatcher.Options{}).Resume(t.Context(), run)
		completes(t, res, err)
	}
}

// What a run has gone through is there after the store was opened again.
func TestChangedGraphInBadger(t *testing.T) {
	var w witness
	dir := t.TempDir()
	names := []string{"a", "b"}
	for k, more := range []string{"", "c", "d", "e"} {
		store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if more != "" {
			names = append(names, more)
		}
		g := changeLine(t, &w, names...)
		last := names[len(names)-1]
		d := process(t, g, store, dispatcher.Options{InterruptBefore: []string{last}})
		res, err := d.Run(t.Context(), run, nil)
		if k > 0 {
			rests(t, res, err, checkpoint.StatusInterrupted, names[len(names)-2])
			res, err = d.Resume(t.Context(), run)
		}
		rests(t, res, err, checkpoint.StatusInterrupted, last)
		if info, err := store.Stat(t.Context(), run); err != nil || info.Digest != g.Digest() {
			t.Errorf("the store says %+v, %v, want graph %s", info, err, g.Digest())
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.expect(t, "a", "b", "c", "d")
}

// A cursor that was taken under one graph names the run under another: it says where the
// log stands.
func TestChangedGraphFromACursor(t *testing.T) {
	quiet(t)
	var w witness
	build := func(names ...string) *dag.Graph[Tale] {
		b := dag.New[Tale]("beside")
		for _, name := range names {
			dag.Step(b, name, w.sees(nil))
		}
		return frozen(t, b)
	}
	var store memory.Store
	o := dispatcher.Options{InterruptBefore: []string{"a", "b"}}
	res, err := process(t, build("a", "b"), &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "a", "b")
	d := process(t, build("b", "a"), &store, dispatcher.Options{})
	stale := res.Cursor
	stale.Seq--
	if _, err := d.Resume(t.Context(), run, dispatcher.From(stale)); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("from an old cursor the call returns %v", err)
	}
	res, err = d.Resume(t.Context(), run, dispatcher.From(res.Cursor))
	completes(t, res, err)
	says(t, res.State, "b", "a")
}

// Whether an Each collects failures is decided when it begins: a policy is no part of a
// graph, and no log means something else because of one.
func TestChangedPolicyOfItems(t *testing.T) {
	quiet(t)
	build := func(errs dag.Errors) *dag.Graph[Tale] {
		b := dag.New[Tale]("items")
		each := dag.Each(b, "each", func(*Tale) []int { return []int{1, 2, 3} }, func(_ context.Context, s *Tale, i int) error {
			if i == 1 {
				return errors.New("broken")
			}
			s.Tags.Add(fmt.Sprint(i))
			return nil
		}).With(dag.Policy{Errors: errs})
		dag.Step(b, "after", func(ctx context.Context, s *Tale) error {
			s.Word.Set("reached")
			return nil
		}, each)
		return frozen(t, b)
	}
	for _, c := range []struct {
		was, is dag.Errors
		ends    checkpoint.Status
	}{
		{dag.Collect, dag.Stop, checkpoint.StatusCompleted},
		{dag.Stop, dag.Collect, checkpoint.StatusFailed},
	} {
		var store memory.Store
		o := dispatcher.Options{InterruptBefore: []string{"each/3"}, Parallel: 1}
		if c.was == dag.Stop {
			o.InterruptBefore = []string{"after"} // it is not reached
		}
		process(t, build(c.was), &store, o).Run(t.Context(), run, nil)
		res, err := process(t, build(c.is), &store, dispatcher.Options{}).Resume(t.Context(), run)
		if res.Status != c.ends {
			t.Errorf("with %v, and then %v, the run is %s: %v", c.was, c.is, res.Status, err)
		}
	}
}

// A migration is asked for the state of every frame that is open, outermost first, and of no
// other.
func TestMigrationOfNestedStates(t *testing.T) {
	quiet(t)
	spec := changeNest()
	old := changeStates[""](t, spec)
	var store memory.Store
	_, err := old.open(t, &store, dispatcher.Options{InterruptBefore: []string{"hold/spin/2/mend"}}).run(t.Context())
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	var asked []string
	o := migrating(dispatcher.Migration{Name: "retyped", State: func(path string, old json.RawMessage) (json.RawMessage, error) {
		asked = append(asked, path)
		var cells map[string]json.RawMessage
		if err := json.Unmarshal(old, &cells); err != nil {
			return nil, err
		}
		if cells["Word"] != nil {
			cells["Word"] = json.RawMessage("1")
		}
		return json.Marshal(cells)
	}})
	d := changeStates["retyped"](t, spec).open(t, &store, o)
	res, err := changeDrive(t, d, d.resume)
	if err != nil || res.status != checkpoint.StatusCompleted || res.total != len(res.seen) || res.total != 12 {
		t.Errorf("the run is %s with %d visits counted of %v: %v", res.status, res.total, res.seen, err)
	}
	if want := []string{"", "hold", "hold/spin/2"}; !slices.Equal(asked, want) {
		t.Errorf("the migration was asked for %q, want %q", asked, want)
	}
}

// What At reads of a frame that a migration has renamed or forgotten, StateOf and Diff read,
// whether the program still has the migration or not, and whatever has the name now. A frame whose
// state is its own is found where the log has led it.
func TestMigratedFramesAreReadAlike(t *testing.T) {
	quiet(t)
	type Inner struct {
		Word state.Value[string]
	}
	says := dag.New[Inner]("inner")
	dag.Step(says, "say", func(_ context.Context, s *Inner) error {
		s.Word.Set("inner")
		return nil
	})
	inner := frozen(t, says)
	build := func(loop, embed, other string) *dag.Graph[Tale] {
		b := dag.New[Tale]("tale")
		body := dag.New[Tale]("body")
		dag.Step(body, "say", func(_ context.Context, s *Tale) error {
			s.Word.Set("outer")
			return nil
		})
		after := dag.Edge[Tale](dag.Step(b, "begin", nothing[Tale]))
		if loop != "" {
			after = dag.Loop(b, loop, frozen(t, body), func(*Tale) bool { return true }, 1, after)
		}
		for _, name := range []string{embed, "hold", other} {
			if name == "hold" {
				after = dag.Step(b, name, nothing[Tale], after)
			} else if name != "" {
				after = dag.Embed(b, name, inner, func(*Tale, *Inner) {}, func(*Inner, *Tale) {}, after)
			}
		}
		return frozen(t, b)
	}
	for name, c := range map[string]struct {
		nodes              map[string]string
		loop, embed, other string // of the graph that the migration leads to
	}{
		"renamed":         {map[string]string{"loop": "lap", "part": "piece"}, "lap", "piece", ""},
		"forgotten":       {map[string]string{"loop": "", "part": "piece"}, "", "piece", ""},
		"the name is new": {map[string]string{"loop": "lap", "part": "piece"}, "lap", "piece", "loop"},
	} {
		var store memory.Store
		res, err := process(t, build("loop", "part", ""), &store, dispatcher.Options{InterruptBefore: []string{"hold"}}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "hold")
		next := build(c.loop, c.embed, c.other)
		res, err = process(t, next, &store, migrating(dispatcher.Migration{Name: name, Nodes: c.nodes})).Resume(t.Context(), run)
		completes(t, res, err)
		for _, o := range []dispatcher.Options{{}, migrating(dispatcher.Migration{Name: name, Nodes: c.nodes})} {
			d := process(t, next, &store, o)
			at, err := d.At(t.Context(), run, "loop/1@1")
			if err != nil || at.State.Word.Get() != "outer" {
				t.Fatalf("%s: At is %v, %v", name, at.State, err)
			}
			of, err := dispatcher.StateOf[Tale](t.Context(), d, run, "loop/1@1")
			if err != nil || of.State.Word.Get() != "outer" {
				t.Errorf("%s: StateOf is %v, %v", name, of.State, err)
			}
			diff, err := d.Diff(t.Context(), run, "0", "loop/1@1")
			if err != nil || diff.After.Word.Get() != "outer" {
				t.Errorf("%s: Diff is %v, %v", name, diff, err)
			}
			own, err := dispatcher.StateOf[Inner](t.Context(), d, run, "part@1")
			if err != nil || own.State.Word.Get() != "inner" {
				t.Errorf("%s: of the frame with a state of its own StateOf is %v, %v", name, own.State, err)
			}
		}
	}
}

// A run of a graph of another name is another run, to whatever reads a state.
func TestGraphsOfAnotherNameReadNoState(t *testing.T) {
	quiet(t)
	var store memory.Store
	var w witness
	changeHeld(t, changeLine(t, &w, "a", "b"), &store, "b")
	b := dag.New[Tale]("another")
	dag.Step(b, "b", w.sees(counts), dag.Step(b, "a", w.sees(counts)))
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	for name, read := range map[string]func() error{
		"At":      func() error { _, err := d.At(t.Context(), run, "1"); return err },
		"StateOf": func() error { _, err := dispatcher.StateOf[Tale](t.Context(), d, run, "1"); return err },
		"Diff":    func() error { _, err := d.Diff(t.Context(), run, "0", "1"); return err },
	} {
		var changed *dispatcher.GraphChangedError
		if err := read(); !errors.As(err, &changed) {
			t.Errorf("%s is %v, want that the graph has changed", name, err)
		}
	}
}

// A frame that has ended is read as a migration has left it behind its last superstep, under the
// path that it had before.
func TestMigratedFrameIsReadAsItEnded(t *testing.T) {
	quiet(t)
	graph := func(embed, a string) *dag.Graph[Tale] {
		inner, b := dag.New[Tale]("inner"), dag.New[Tale]("outer")
		dag.Step(inner, a, func(_ context.Context, s *Tale) error { s.Word.Set("a"); return nil })
		talk := dag.Embed(b, embed, frozen(t, inner), func(_, _ *Tale) {}, func(from, to *Tale) { to.Word.Set(from.Word.Get()) })
		dag.Step(b, "end", nothing[Tale], talk)
		return frozen(t, b)
	}
	for embed, store := range map[string]checkpoint.Store{
		"talk": new(memory.Store), "speech": new(memory.Store), "debate": withoutNames{new(memory.Store)},
	} {
		o := dispatcher.Options{InterruptAfter: []string{"talk/a"}}
		res, err := process(t, graph("talk", "a"), store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "talk/a")
		d := process(t, graph(embed, "z"), store, migrating(dispatcher.Migration{
			Name: "words", Nodes: map[string]string{"talk": embed, "talk/a": embed + "/z"}, State: setsWord("talk"),
		}))
		res, err = d.Resume(t.Context(), run)
		if completes(t, res, err); res.State.Word.Get() != "migrated" {
			t.Fatalf("the run ends with %s", asJSON(t, res.State))
		}
		of, err := dispatcher.StateOf[Tale](t.Context(), d, run, "talk")
		frame, word := embed, "migrated"
		if embed == "debate" { // nobody knows which frame it became
			frame, word = "talk", "a"
		}
		if err != nil || of.State.Word.Get() != word || of.Frame != frame {
			t.Errorf("%s: the frame %q is read as %s, %v", embed, of.Frame, asJSON(t, of.State), err)
		}
	}
}
