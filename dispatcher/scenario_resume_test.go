package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

func TestScenario19ResumeInANewProcess(t *testing.T) {
	quiet(t)
	var w witness
	var undisturbed, store memory.Store
	ctx, cancel := context.WithCancel(t.Context())
	chain := func(stop func()) *dag.Graph[Tale] {
		b := dag.New[Tale]("line")
		first := dag.Step(b, "a", w.sees(func(_ context.Context, s *Tale) error {
			s.Word.Set("from a")
			stop()
			return nil
		}))
		second := dag.Step(b, "b", w.sees(func(_ context.Context, s *Tale) error {
			s.Notes.Put("b", s.Word.Get()+" to b")
			return nil
		}), first)
		dag.Step(b, "c", w.sees(counts), second)
		return frozen(t, b)
	}

	straight, err := process(t, chain(func() {}), &undisturbed, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, straight, err)
	w.expect(t, "a", "b", "c")
	res, err := process(t, chain(cancel), &store, dispatcher.Options{}).Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusCancelled, "b")
	w.expect(t, "a")

	cursor, err := checkpoint.ParseCursor(res.Cursor.String()) // it travels as text
	if err != nil {
		t.Fatal(err)
	}
	res, err = process(t, chain(func() {}), &store, dispatcher.Options{}).Resume(t.Context(), run, dispatcher.From(cursor))
	completes(t, res, err)
	w.expect(t, "b", "c")
	if got, want := asJSON(t, res.State), asJSON(t, straight.State); got != want {
		t.Errorf("the state is %s, an undisturbed run's %s", got, want)
	}
}

// A forger hands out the log of another store with one entry changed.
type forger struct {
	checkpoint.Store
	forge func(e *checkpoint.Entry) error
}

func (f forger) Read(ctx context.Context, id string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range f.Store.Read(ctx, id, from, to) {
			if err == nil {
				err = f.forge(&e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// at returns a forgery of the entry of this number.
func at(seq uint64, change func(*checkpoint.Entry)) func(*checkpoint.Entry) error {
	return func(e *checkpoint.Entry) error {
		if e.Seq == seq {
			change(e)
		}
		return nil
	}
}

var forgeries = map[string]struct {
	forge func(*checkpoint.Entry) error
	seq   uint64 // where it has to be found
}{
	"damage that the store sees": {func(e *checkpoint.Entry) error {
		if e.Seq == 4 {
			return &checkpoint.CorruptError{Run: run, Seq: 4, Reason: "checksum"}
		}
		return nil
	}, 4},
	"an entry of another graph":  {at(3, func(e *checkpoint.Entry) { e.Path = "elsewhere" }), 3},
	"an entry twice":             {at(4, func(e *checkpoint.Entry) { e.Kind, e.Path = checkpoint.Done, "a" }), 4},
	"a delta of another state":   {at(3, func(e *checkpoint.Entry) { e.Delta = []byte(`{"Weather":{"set":1}}`) }), 3},
	"a kind that nothing writes": {at(3, func(e *checkpoint.Entry) { e.Kind = checkpoint.Kind(99) }), 3},
	"a superstep that can't be":  {at(4, func(e *checkpoint.Entry) { e.Kind, e.Path, e.Step = checkpoint.Superstep, "", 7 }), 4},
}

func TestScenario21CorruptOrForeign(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	res, err := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"c"}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	before, _ := store.Stat(t.Context(), run)
	w.took()
	for name, c := range forgeries {
		d := process(t, g, forger{&store, c.forge}, dispatcher.Options{})
		_, runErr := d.Run(t.Context(), run, nil)
		_, resumeErr := d.Resume(t.Context(), run)
		_, stateErr := d.State(t.Context(), run)
		for call, err := range map[string]error{
			"Run": runErr, "Resume": resumeErr, "State": stateErr, "Cancel": d.Cancel(t.Context(), run, nil),
		} {
			var damage *checkpoint.CorruptError
			if !errors.As(err, &damage) || !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("%s: %s returned %v, want a CorruptError", name, call, err)
			} else if damage.Run != run || damage.Seq != c.seq {
				t.Errorf("%s: %s found damage at entry %d of %q, want entry %d", name, call, damage.Seq, damage.Run, c.seq)
			}
		}
	}
	w.expect(t)
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
		t.Errorf("the log went from %v to %v", before.Head, after.Head)
	}
}

// What is missing is not damaged: it is not found, and to Run it is a new run.
func TestScenario21Missing(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{})
	if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrNotFound) || errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Resume returned %v, want ErrNotFound", err)
	}
	w.expect(t)
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

func TestScenario26CursorOfNothing(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	o := dispatcher.Options{InterruptBefore: []string{"b", "c"}}
	first, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, first, err, checkpoint.StatusInterrupted, "b")
	second, err := process(t, g, &store, o).Resume(t.Context(), run)
	rests(t, second, err, checkpoint.StatusInterrupted, "c")
	w.took()
	before, _ := store.Stat(t.Context(), run)

	foreign, missing, elsewhere := second.Cursor, second.Cursor, second.Cursor
	foreign.Run = "another"
	missing.Seq += 10
	elsewhere.Visits = []string{"nowhere"}
	for _, c := range []struct {
		cursor checkpoint.Cursor
		want   error
	}{
		{first.Cursor, dispatcher.ErrStaleCursor},
		{foreign, checkpoint.ErrCursor},
		{missing, checkpoint.ErrCursor},
		{elsewhere, checkpoint.ErrCursor},
		{checkpoint.Cursor{}, checkpoint.ErrCursor},
	} {
		_, err := process(t, g, &store, o).Resume(t.Context(), run, dispatcher.From(c.cursor))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.cursor.String()) {
			t.Errorf("Resume from %q returned %v, want %v and both positions", c.cursor, err, c.want)
		}
	}
	w.expect(t)
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
		t.Errorf("the log went from %v to %v", before.Head, after.Head)
	}
}

// Scenario 26, too: a run that another graph has made.
func TestScenario26ChangedGraph(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	res, err := process(t, g, &store, dispatcher.Options{InterruptBefore: []string{"b"}}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.took()
	b := dag.New[Tale]("line")
	dag.Step(b, "a", w.sees(nil))
	changed := frozen(t, b)
	_, err = process(t, changed, &store, dispatcher.Options{}).Resume(t.Context(), run)
	var refused *dispatcher.GraphChangedError
	if !errors.As(err, &refused) || refused.Stored != g.Digest() || refused.Current != changed.Digest() {
		t.Fatalf("Resume with another graph returned %v, want both digests", err)
	}
	for _, digest := range []string{g.Digest()[:19], changed.Digest()[:19]} {
		if !strings.Contains(err.Error(), digest) {
			t.Errorf("the message %q does not name %s", err, digest)
		}
	}
	w.expect(t)
}

// steps returns a chain of n nodes that count.
func steps(t testing.TB, w *witness, n int) *dag.Graph[Tale] {
	b := dag.New[Tale]("steps")
	var after []dag.Edge[Tale]
	for i := range n {
		after = []dag.Edge[Tale]{dag.Step(b, fmt.Sprintf("s%d", i+1), w.sees(counts), after...)}
	}
	return frozen(t, b)
}

func TestScenario28SevenCheckpoints(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, steps(t, &w, 7), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)

	var all []dispatcher.Checkpoint
	for c, err := range d.History(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if len(all) != 7 {
		t.Fatalf("there are %d checkpoints, want 7", len(all))
	}
	for i, c := range all {
		if c.Superstep != i+1 || i > 0 && c.Seq <= all[i-1].Seq {
			t.Errorf("checkpoint %d is superstep %d at entry %d", i+1, c.Superstep, c.Seq)
		}
		for _, address := range []string{c.Address(), c.String(), strconv.Itoa(i + 1)} {
			at, err := d.At(t.Context(), run, address)
			if err != nil {
				t.Fatal(err)
			}
			if at.State.Count.Get() != i+1 || at.Superstep != i+1 {
				t.Errorf("at %s %d steps are counted in superstep %d, want %d", address, at.State.Count.Get(), at.Superstep, i+1)
			}
		}
	}
	for _, address := range []string{"7", ""} {
		last, err := d.At(t.Context(), run, address)
		if err != nil || asJSON(t, last.State) != asJSON(t, res.State) {
			t.Errorf("the last checkpoint, %q, is %s, %v, the result %s", address, asJSON(t, last.State), err, asJSON(t, res.State))
		}
	}
	for _, address := range []string{"8", "@", "house@1", run + "@2", "-1", "1x"} {
		if _, err := d.At(t.Context(), run, address); !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("At(%q) returned %v, want ErrCursor", address, err)
		}
	}
}

func TestScenario29FailingSave(t *testing.T) {
	quiet(t)
	var w witness
	var inner memory.Store
	g := steps(t, &w, 5)
	store := &tampered{Store: &inner, before: fails("Append", 3, fmt.Errorf("%w: no room", checkpoint.ErrFull))}
	told := 0
	o := dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitDone {
			told++
		}
	}}

	_, err := process(t, g, store, o).Run(t.Context(), run, nil)
	var rest *dispatcher.Rest
	if !errors.Is(err, checkpoint.ErrFull) || errors.As(err, &rest) {
		t.Fatalf("the run returned %v, want the store's error as itself", err)
	}
	ran := w.took()
	done := kinds(readLog(t, &inner), checkpoint.Done)
	if len(done) != len(ran)-1 || told != len(done) {
		t.Errorf("%d bodies ran, %d are durable, %d were told; want all but the last in both", len(ran), len(done), told)
	}
	res, err := process(t, g, store, o).Resume(t.Context(), run)
	completes(t, res, err)
	if res.State.Count.Get() != 5 || len(w.took()) != 6-len(ran) {
		t.Errorf("the count is %d, want 5, each step counted once", res.State.Count.Get())
	}
}
