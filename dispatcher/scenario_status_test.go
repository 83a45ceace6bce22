package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// line returns the graph a → b → c, whose bodies w sees; body is the one of b.
func line(t testing.TB, w *witness, body part) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	first := dag.Step(b, "a", w.sees(nil))
	second := dag.Step(b, "b", w.sees(body), first)
	dag.Step(b, "c", w.sees(nil), second)
	return frozen(t, b)
}

// A statusLog is the sequence of statuses that a store has for a run.
type statusLog struct {
	t     *testing.T
	store checkpoint.Store
	seen  []checkpoint.Status
}

func (l *statusLog) note() {
	info, err := l.store.Stat(context.Background(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	l.seen = append(l.seen, info.Status)
}

// Scenario 8: a run goes from pending over running to completed, or comes to rest, and
// leaves rest only by a resume, an answer or a cancel. Completed is sticky.
func TestScenario08LegalTransitions(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	fails := true
	log := statusLog{t: t, store: &store}
	g := line(t, &w, func(context.Context, *Tale) error {
		if fails {
			return errWeather
		}
		return nil
	})
	d := process(t, g, &store, dispatcher.Options{
		InterruptBefore: []string{"c"},
		Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitStarted || e.Kind == dispatcher.RunRested {
				log.note()
			}
		},
	})
	if _, err := d.Run(t.Context(), run, nil); err == nil {
		t.Fatal("the run did not fail")
	}
	if err := d.Cancel(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	log.note()
	fails = false
	// Out of Cancelled, where the run had failed before, and of Interrupted.
	for _, want := range []checkpoint.Status{checkpoint.StatusInterrupted, checkpoint.StatusCompleted} {
		if res, err := d.Resume(t.Context(), run); res.Status != want {
			t.Fatalf("the run became %s, %v, want %s", res.Status, err, want)
		}
	}
	if err := d.Cancel(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("Cancel of a completed run returned %v", err)
	}
	log.note()
	want := []checkpoint.Status{
		checkpoint.StatusRunning, checkpoint.StatusRunning, checkpoint.StatusFailed,
		checkpoint.StatusCancelled,
		checkpoint.StatusRunning, checkpoint.StatusInterrupted,
		checkpoint.StatusRunning, checkpoint.StatusCompleted, checkpoint.StatusCompleted,
	}
	if !slices.Equal(log.seen, want) {
		t.Errorf("the run was %q in turn, want %q", log.seen, want)
	}
}

func TestScenario09CompletedIsNotTouched(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	first, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, first, err)
	w.expect(t, "a", "b", "c")
	before, _ := store.Stat(t.Context(), run)

	d := process(t, g, &store, dispatcher.Options{})
	again, err := d.Run(t.Context(), run, func(*Tale) { t.Error("the input of a completed run was asked for") })
	completes(t, again, err)
	if asJSON(t, again.State) != asJSON(t, first.State) {
		t.Errorf("the second result is %s, the first was %s", asJSON(t, again.State), asJSON(t, first.State))
	}
	if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("Resume returned %v, want ErrCompleted", err)
	}
	if _, err := d.Start(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrExists) {
		t.Errorf("Start returned %v, want ErrExists", err)
	}
	w.expect(t)
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head || after.Status != before.Status {
		t.Errorf("the run went from %v to %v", before, after)
	}
}

func TestScenario10FailingEnd(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	b := dag.New[Tale]("dead-end")
	choose := dag.Route(b, "choose", w.routes(func(*Tale) way { return left }), []way{left, right})
	dag.Fail(b, "refused", choose.On(left))
	dag.End(b, choose.On(right))
	g := frozen(t, b)
	ends := 0
	o := dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.RunRested {
			ends++
		}
	}}

	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "refused")
	w.expect(t, "choose")
	if ends != 1 {
		t.Errorf("the end of the run was told %d times", ends)
	}
	for _, again := range []func(*dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error){
		func(d *dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error) {
			return d.Run(t.Context(), run, nil)
		},
		func(d *dispatcher.Dispatcher[Tale]) (*dispatcher.Result[Tale], error) {
			return d.Resume(t.Context(), run)
		},
	} {
		res, err := again(process(t, g, &store, o))
		rests(t, res, err, checkpoint.StatusFailed, "refused")
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Path != "refused" || failed.Kind != dag.FailedEnd {
			t.Errorf("the error is %v, want that of the end refused", err)
		}
	}
	w.expect(t)
}

// Scenario 20: of a completed run no cursor can be captured that something could go on from.
func TestScenario20CompletedHasNoCursor(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	d := process(t, line(t, &w, nil), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.took()
	if _, err := d.Resume(t.Context(), run, dispatcher.From(res.Cursor)); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Errorf("Resume from %s returned %v, want ErrCompleted", res.Cursor, err)
	}
	w.expect(t)
}

// Scenario 25: reading a run changes nothing, and what is read is one's own.
func TestScenario25ReadingTwiceIsIdempotent(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, func(_ context.Context, s *Tale) error {
		s.Notes.Put("warning", "rain")
		s.Tags.Add("wet")
		s.Word.Set("umbrella")
		return nil
	})
	o := dispatcher.Options{InterruptAfter: []string{"b"}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	before, want := asJSON(t, readLog(t, &store)), asJSON(t, res)

	for range 2 {
		got, err := process(t, g, &store, o).State(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if asJSON(t, got) != want {
			t.Errorf("the run reads as %s, want %s", asJSON(t, got), want)
		}
		got.State.Said.Replace(nil) // the caller's own, who may change it
		got.State.Notes.Clear()
	}
	if after := asJSON(t, readLog(t, &store)); after != before {
		t.Errorf("the log was\n%s\nand is\n%s", before, after)
	}
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "a", "b", "c")
}
