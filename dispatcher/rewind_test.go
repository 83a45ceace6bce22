package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// rewindLine is a line of nodes that say their paths.
func rewindLine(t testing.TB, w *witness, names ...string) *dag.Graph[Tale] {
	b := dag.New[Tale]("line")
	var after []dag.Edge[Tale]
	for _, name := range names {
		after = []dag.Edge[Tale]{dag.Step(b, name, w.sees(nil), after...)}
	}
	return frozen(t, b)
}

// A rewound run goes on from the checkpoint, in the same log: numbers go on, what was abandoned
// stays readable, and readers see no entry twice.
func TestRewoundRunGoesOnFromTheCheckpoint(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		g := rewindLine(t, &w, "a", "b", "c")
		d := callsDispatcher(t, g, store, o)
		res, err := d.Run(t.Context(), run, nil, dispatcher.Labels(map[string]string{"team": "red"}))
		completes(t, res, err)
		w.took()
		before := res.Cursor.Seq
		why := dispatcher.RewindOptions{Reason: "a wrong turn"}
		if err := d.Rewind(t.Context(), run, "1", why, dispatcher.Author("ann")); err != nil {
			t.Fatal(err)
		}
		then, err := d.State(t.Context(), run)
		if err != nil || then.Status != checkpoint.StatusPending || then.Superstep != 1 || then.Labels["team"] != "red" {
			t.Errorf("the rewound run is %s behind superstep %d, of %v, %v", then.Status, then.Superstep, then.Labels, err)
		}
		says(t, then.State, "a")
		info, err := store.Stat(t.Context(), run)
		if err != nil || info.Status != checkpoint.StatusPending || info.Head.Seq != before+1 {
			t.Errorf("the store knows the run as %s at %d, %v", info.Status, info.Head.Seq, err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "b", "c")
		says(t, res.State, "a", "b", "c")
		old, err := d.At(t.Context(), run, dispatcher.Checkpoint{Run: run, Seq: before - 1}.Address())
		if err != nil || old.Superstep != 3 {
			t.Errorf("the abandoned checkpoint is of superstep %d, %v", old.Superstep, err)
		}
		var told []string
		last := uint64(0)
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
			if err != nil || e.Seq != last+1 {
				t.Fatalf("event %d follows %d: %v", e.Seq, last, err)
			}
			if last = e.Seq; e.Kind == dispatcher.RunRewound {
				told = append(told, e.String())
			}
		}
		if len(told) != 1 || !strings.HasSuffix(told[0], "run rewound to tale@4 by ann: a wrong turn") {
			t.Errorf("events tell %q", told)
		}
		line, err := d.Lineage(t.Context(), run)
		if want := []dispatcher.Ancestor{{Run: run, Seq: 4, Rewound: true}}; err != nil || !slices.Equal(line, want) {
			t.Errorf("the lineage is %v, %v, want %v", line, err, want)
		}
		sameMachine(t, d, run)
	})
}

// Promise P4, the other way round: what is done again behind a rewind is another thing to the
// other side, so it gets another key, which no run's id can give.
func TestRewoundVisitsHaveOtherKeys(t *testing.T) {
	var keys []string
	b := dag.New[Tale]("keys")
	dag.Step(b, "a", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
			keys = append(keys, dag.Key(ctx))
			return 1, nil
		})
		return err
	})
	g := frozen(t, b)
	for _, id := range []string{run, run + "~1", run + "%7E1"} {
		d := process(t, g, new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), id, nil)
		completes(t, res, err)
		for range 2 {
			if err := d.Rewind(t.Context(), id, "0", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), id, nil)
			completes(t, res, err)
		}
	}
	if n := len(keys); n != 9 || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != n || keys[1] != "tale~1/a#pay" {
		t.Errorf("the effects were done under %q", keys)
	}
}

// An effect that has ended in a visit which has not finished keeps what it returned; one that
// ended behind the checkpoint too, if it had begun before it.
func TestRewoundRunKnowsItsEffects(t *testing.T) {
	var bank int
	var w witness
	body := dag.New[Tale]("body")
	dag.Step(body, "in", w.sees(nil))
	inner := frozen(t, body)
	b := dag.New[Tale]("known")
	paid := make(chan struct{})
	looped := make(chan struct{})
	once := true
	dag.Loop(b, "loop", inner, func(s *Tale) bool { return s.Said.Len() >= 2 }, 3)
	dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { bank++; return 1, nil })
		if once {
			once = false
			close(paid)
			<-looped
		}
		return err
	})
	g := frozen(t, b)
	store := new(memory.Store)
	d := process(t, g, store, dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.VisitStarted && e.Path == "loop/1/in" {
			<-paid
		}
		if e.Kind == dispatcher.VisitDone && e.Path == "loop" {
			close(looped)
		}
	}})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.took()
	if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	d = process(t, g, store, dispatcher.Options{})
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "loop/2/in")
	if bank != 1 {
		t.Errorf("the effect was done %d times", bank)
	}
}

// A rewind that is refused changes nothing: no such checkpoint, a live run, an effect of which
// nobody knows whether it happened, and arguments that can't be.
func TestRewindRefused(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("doubt")
	a := dag.Step(b, "a", nothing[Tale])
	dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 0, errors.New("no reply") })
		return err
	}, a)
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	long := dispatcher.RewindOptions{Reason: strings.Repeat("x", 2000)}
	var o *dispatcher.OptionError
	for name, c := range map[string]struct {
		run, at string
		o       dispatcher.RewindOptions
		options []dispatcher.RunOption
		is      func(error) bool
	}{
		"doubt":      {run: run, at: "1", is: func(err error) bool { return errors.Is(err, dag.ErrInDoubt) }},
		"checkpoint": {run: run, at: "7", is: func(err error) bool { return errors.Is(err, checkpoint.ErrCursor) }},
		"no run":     {run: "nobody", at: "1", is: func(err error) bool { return errors.Is(err, dispatcher.ErrNotFound) }},
		"bad id":     {run: "", at: "1", is: func(err error) bool { return errors.Is(err, dispatcher.ErrRunID) }},
		"reason":     {run: run, at: "1", o: long, is: func(err error) bool { return errors.As(err, &o) && o.Option == "Reason" }},
		"option": {run: run, at: "1", options: []dispatcher.RunOption{dispatcher.Author("")},
			is: func(err error) bool { return errors.As(err, &o) && o.Option == "Author" }},
	} {
		unchanged(t, &store, run, func() {
			if err := d.Rewind(t.Context(), c.run, c.at, c.o, c.options...); !c.is(err) {
				t.Errorf("%s: the rewind returned %v", name, err)
			}
		})
	}
	if _, err := store.Acquire(t.Context(), run, "somebody"); err != nil {
		t.Fatal(err)
	}
	unchanged(t, &store, run, func() {
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("the rewind of a live run returned %v", err)
		}
	})
	alone := process(t, frozen(t, b), nil, dispatcher.Options{})
	if err := alone.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("without a store the rewind returned %v", err)
	}
}

// A run can go back to an earlier turn, and to the graph that it had then. What tells of turns
// tells the right ones.
func TestRewoundIntoAnEarlierTurn(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, rewindLine(t, &w, "a"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	first := res.Cursor.Seq
	d = process(t, rewindLine(t, &w, "a", "b"), &store, dispatcher.Options{})
	res, err = d.Turn(t.Context(), run, nil)
	completes(t, res, err)
	second := res.Cursor.Seq
	old := process(t, rewindLine(t, &w, "a"), &store, dispatcher.Options{})
	if err := old.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	info, err := store.Stat(t.Context(), run)
	if err != nil || info.Turn != 1 {
		t.Errorf("the store knows turn %d, %v", info.Turn, err)
	}
	w.took()
	res, err = old.Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t)
	if res.Turn != 1 {
		t.Errorf("the run is in turn %d", res.Turn)
	}
	res, err = old.Turn(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "a", "2/a")
	for since, want := range map[uint64]int{0: 1, first - 1: 1, first + 1: 2, second: 1, second + 2: 1} {
		for e, err := range old.Events(t.Context(), run, dispatcher.Listen{Since: since}) {
			if err != nil || e.Turn != want {
				t.Errorf("behind entry %d there is turn %d, %v, want %d: %s", since, e.Turn, err, want, e)
			}
			break
		}
	}
	sameMachine(t, old, run)
}
