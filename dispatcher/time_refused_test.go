package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Ledger is a state that looks at itself, with a Fold.
type Ledger struct {
	Left  state.Value[int]
	Trail state.Fold[ledgerTrail]
}

// A ledgerTrail is merged by writing it behind the other.
type ledgerTrail string

func (a ledgerTrail) Merge(b ledgerTrail) ledgerTrail { return a + b }

func (l *Ledger) Check() error {
	if l.Left.Get() < 0 {
		return fmt.Errorf("%d are left", l.Left.Get())
	}
	return nil
}

// timeLedger is a loop of two turns beside a step, whose visits leave their paths in the trail.
func timeLedger(t *testing.T) *dag.Graph[Ledger] {
	leaves := func(ctx context.Context, l *Ledger) error {
		l.Trail.Merge(ledgerTrail(" " + visitPath(ctx)))
		return nil
	}
	body, b := dag.New[Ledger]("body"), dag.New[Ledger]("ledger")
	dag.Step(body, "turn", leaves)
	first := dag.Step(b, "first", leaves)
	loop := dag.Loop(b, "loop", frozen(t, body), func(*Ledger) bool { return false }, 2, first)
	beside := dag.Step(b, "beside", leaves, first)
	dag.Step(b, "last", leaves, loop, beside)
	return frozen(t, b)
}

// What user code merges at an edit is merged once, and is in the entry, also for the frames
// inside that share the state, and for what a loop has recorded.
func TestTimeEditMergesFolds(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, timeLedger(t), store, timeOptions(o, "loop/2/turn"))
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/turn")
		for frame, text := range map[string]ledgerTrail{"": " edited", "loop": " inside"} {
			err := d.Edit(t.Context(), run, func(l *Ledger) { l.Trail.Merge(text) }, dispatcher.EditOptions{Frame: frame})
			if err != nil {
				t.Fatal(err)
			}
		}
		now, err := d.State(t.Context(), run)
		if err != nil || now.State.Trail.Get() != " first edited" {
			t.Errorf("the trail is%s, %v", now.State.Trail.Get(), err)
		}
		inner, err := dispatcher.StateOf[Ledger](t.Context(), d, run, "loop")
		if err != nil || inner.State.Trail.Get() != " first edited loop/1/turn inside" {
			t.Errorf("inside the trail is%s, %v", inner.State.Trail.Get(), err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if got, want := res.State.Trail.Get(), ledgerTrail(" first edited loop/1/turn inside loop/2/turn beside last"); got != want {
			t.Errorf("in the end the trail is%s, want%s", got, want)
		}
		timeReplayed(t, d, store)
	})
}

// An edit that can't be leaves nothing behind, whatever is wrong with it.
func TestTimeEditRefused(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		o = timeOptions(o, "loop/2/turn")
		o.Limits = dispatcher.Limits{StateBytes: 1 << 10, ValueBytes: 2000}
		d := callsDispatcher(t, timeLedger(t), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "loop/2/turn")
		nothing := func(*Ledger) {}
		long := func(n int) func(*Ledger) {
			return func(l *Ledger) { l.Trail.Set(ledgerTrail(strings.Repeat("x", n))) }
		}
		var fault *dispatcher.FaultError
		var option *dispatcher.OptionError
		var limit *dispatcher.LimitError
		for name, c := range map[string]struct {
			edit func(*Ledger)
			o    dispatcher.EditOptions
			as   any
			is   error
		}{
			"nobody's function": {nil, dispatcher.EditOptions{}, &option, nil},
			"a panic":           {func(*Ledger) { panic("oh") }, dispatcher.EditOptions{}, &fault, nil},
			"a check":           {func(l *Ledger) { l.Left.Set(-1) }, dispatcher.EditOptions{}, &fault, nil},
			"a check inside":    {func(l *Ledger) { l.Left.Set(-1) }, dispatcher.EditOptions{Frame: "loop"}, &fault, nil},
			"a large value":     {long(3000), dispatcher.EditOptions{}, &limit, nil},
			"a large state":     {long(1500), dispatcher.EditOptions{}, &limit, nil},
			"no such frame":     {nothing, dispatcher.EditOptions{Frame: "other"}, nil, checkpoint.ErrCursor},
			"a past frame":      {nothing, dispatcher.EditOptions{Frame: "loop/1"}, nil, checkpoint.ErrCursor},
			"a visit":           {nothing, dispatcher.EditOptions{Frame: "first"}, nil, checkpoint.ErrCursor},
			"void: unknown":     {nothing, dispatcher.EditOptions{Void: []string{"other"}}, &option, nil},
			"void: past":        {nothing, dispatcher.EditOptions{Void: []string{"first"}}, &option, nil},
			"void: not begun":   {nothing, dispatcher.EditOptions{Void: []string{"last"}}, &option, nil},
			"void: waits":       {nothing, dispatcher.EditOptions{Void: []string{"loop/2/turn"}}, &option, nil},
			"void: outside":     {nothing, dispatcher.EditOptions{Frame: "loop", Void: []string{"beside"}}, &option, nil},
			"void: twice":       {nothing, dispatcher.EditOptions{Void: []string{"beside", "beside"}}, &option, nil},
			"void: within":      {nothing, dispatcher.EditOptions{Void: []string{"loop/2/turn", "loop"}}, &option, nil},
			"a long reason":     {nothing, dispatcher.EditOptions{Reason: strings.Repeat("x", 1025)}, &option, nil},
			"no text":           {nothing, dispatcher.EditOptions{Reason: "\xff"}, &option, nil},
		} {
			unchanged(t, store, run, func() {
				err := d.Edit(t.Context(), run, c.edit, c.o)
				if err == nil || c.as != nil && !errors.As(err, c.as) || !errors.Is(err, c.is) && c.is != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		advises(t, d.Edit(t.Context(), run, nothing, dispatcher.EditOptions{Void: []string{"other"}}), "these have: loop, beside")
		advises(t, d.Edit(t.Context(), run, nothing, dispatcher.EditOptions{Frame: "loop", Void: []string{"beside"}}), "nothing has")
		unchanged(t, store, run, func() {
			if err := d.Edit(t.Context(), run, nothing, dispatcher.EditOptions{Reason: "none"}); err != nil {
				t.Errorf("an edit of nothing: %v", err)
			}
			if err := d.Edit(t.Context(), run, nothing, dispatcher.EditOptions{}, dispatcher.Author("")); !errors.As(err, &option) {
				t.Errorf("an author without a name: %v", err)
			}
		})
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		unchanged(t, store, run, func() {
			if err := d.Edit(t.Context(), run, long(1), dispatcher.EditOptions{}); !errors.Is(err, dispatcher.ErrCompleted) {
				t.Errorf("a completed run: %v", err)
			}
		})
		unchanged(t, store, "nobody", func() {
			if err := d.Edit(t.Context(), "nobody", long(1), dispatcher.EditOptions{}); !errors.Is(err, dispatcher.ErrNotFound) {
				t.Errorf("no run: %v", err)
			}
		})
	})
}

// A live run is not edited, nor is one without a log.
func TestTimeEditOfALiveRun(t *testing.T) {
	quiet(t)
	var store memory.Store
	var d *dispatcher.Dispatcher[Tale]
	d = process(t, callsGraph(t, func(ctx context.Context, _ *Tale) error {
		unchanged(t, &store, run, func() {
			err := d.Edit(context.WithoutCancel(ctx), run, func(s *Tale) { s.Word.Set("x") }, dispatcher.EditOptions{})
			if !errors.Is(err, dispatcher.ErrBusy) {
				t.Errorf("a live run: %v", err)
			}
		})
		return nil
	}), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	none, err := dispatcher.New(callsGraph(t, nothing[Tale]), nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := none.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{}); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("no store: %v", err)
	}
}

// A process that dies in an edit has made all of it or nothing; then the run goes on as if it
// had been edited, or not.
func TestTimeEditSurvivesCrashes(t *testing.T) {
	for _, written := range []bool{false, true} {
		store := new(mortal)
		var w witness
		d := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptBefore: []string{"b"}})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		if err := store.revive(t.Context(), 1, written); err != nil {
			t.Fatal(err)
		}
		if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("x"); s.Count.Add(1) }, dispatcher.EditOptions{}); !errors.Is(err, errDead) {
			t.Fatalf("the process died: %v", err)
		}
		if err := store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		if got := fmt.Sprintf("%q %d", res.State.Word.Get(), res.State.Count.Get()); written && got != `"x" 1` || !written && got != `"" 0` {
			t.Errorf("written=%t: in the end the state is %s", written, got)
		}
		w.expect(t, "a", "b", "c")
	}
}

// A run that an older graph has made is edited by the one that will go on with it, if it can;
// the edit is told with who and why.
func TestTimeEditOfAChangedGraph(t *testing.T) {
	var w witness
	store := new(memory.Store)
	old := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptAfter: []string{"a"}})
	res, err := old.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	other := func(first string) *dispatcher.Dispatcher[Tale] {
		b := dag.New[Tale]("line")
		a := dag.Step(b, first, w.sees(nil))
		dag.Step(b, "other", w.sees(nil), a)
		return process(t, frozen(t, b), store, dispatcher.Options{})
	}
	unchanged(t, store, run, func() {
		err := other("z").Edit(t.Context(), run, func(s *Tale) { s.Word.Set("x") }, dispatcher.EditOptions{})
		var changed *dispatcher.GraphChangedError
		if !errors.As(err, &changed) {
			t.Errorf("another past: %v", err)
		}
	})
	d := other("a")
	timeEdit(t, d, dispatcher.EditOptions{}, func(s *Tale) { s.Word.Set("x") })
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, "a", "other")
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Deltas: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dispatcher.StateEdited && (e.By != "Ada" || e.Cause != "a typo" || string(e.Delta) != `{"Word":{"set":"x"}}`) {
			t.Errorf("the edit is told as %s: %s", e, e.Delta)
		}
	}
	if res.State.Word.Get() != "x" {
		t.Errorf("in the end the state is %s", asJSON(t, res.State))
	}
}

// Of many visits that could be voided the refusal of another one names the first, and says that
// there are more.
func TestTimeEditNamesSomeOfWhatCanBeVoided(t *testing.T) {
	b := dag.New[Tale]("wide")
	var all []dag.Edge[Tale]
	for i := range 12 {
		all = append(all, dag.Step(b, fmt.Sprintf("n%02d", i), nothing[Tale]))
	}
	dag.Step(b, "waits", askFor[int])
	dag.Step(b, "last", nothing[Tale], all...)
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "waits")
	err = d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"waits"}})
	if advises(t, err, "these have, and others: n00, n01, n02"); strings.Contains(fmt.Sprint(err), "n10") {
		t.Errorf("the refusal names all of them: %v", err)
	}
}
