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
)

// openPhases is a graph whose visits leave effects in every phase: each node has one effect,
// called as the node, and fails behind it.
func openPhases(t *testing.T) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("phases")
	add := func(name string, f func(context.Context, int) (string, error), options ...dag.EffectOption) {
		dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, name, 7, f, options...)
			return errors.Join(errors.New("the node fails"), err)
		})
	}
	fails := func(context.Context, int) (string, error) { return "", errDoubtReset }
	works := func(context.Context, int) (string, error) { return "done", nil }
	add("awaits", works, dag.Operation("bank.pay"), dag.Writes)
	add("approved", works)
	add("rejected", works)
	add("doubted", fails, dag.Operation("bank.pay"), dag.Touches("account 7", "ledger"), dag.Reversible, dag.Writes)
	add("asked", fails, dag.InDoubt(dag.DoubtAsks))
	add("failed", fails, dag.InDoubt(dag.DoubtFails))
	add("again", fails, dag.Replayable, dag.Reads)
	add("ended", works)
	add("undone", func(context.Context, int) (string, error) { return "", fmt.Errorf("%w: refused", dag.NotDone) })
	add("lost", func(context.Context, int) (string, error) { return strings.Repeat("x", 3000), nil })
	return frozen(t, b)
}

// Open tells how far each effect is, what is known of it, and what to do. It runs nothing,
// changes nothing, and needs no lease.
func TestOpenTellsPhases(t *testing.T) {
	store, g := new(memory.Store), openPhases(t)
	o := dispatcher.Options{
		Gates:  dispatcher.Gates{Names: []string{"awaits#awaits", "approved#approved", "rejected#rejected"}},
		Limits: dispatcher.Limits{ValueBytes: 2000}, Parallel: 1,
	}
	d := process(t, g, store, o)
	res, err := d.Run(t.Context(), run, nil)
	if err == nil {
		t.Fatal("the run is completed")
	}
	for _, i := range res.Interrupts {
		verdict := map[string]dispatcher.Verdict{"approved": dispatcher.Approve, "rejected": dispatcher.Reject}[i.Key]
		if verdict != "" {
			if err := d.Answer(t.Context(), run, i.ID, verdict, dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range []*dispatcher.Dispatcher[Tale]{d, process(t, effectNode(t, nothing[Tale], dag.Policy{}), store, dispatcher.Options{})} {
		var opened *dispatcher.Opened
		unchanged(t, store, run, func() {
			if opened, err = d.Open(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		})
		if opened.Run != run || opened.Status != checkpoint.StatusFailed || opened.Turn != 1 || opened.Owner != "" || len(opened.Interrupts) != 2 || len(opened.Effects) != 10 {
			t.Errorf("opened %+v", opened)
		}
		var lines []string
		for _, e := range opened.Effects {
			if e.Key != e.Path || e.ID != "tale/"+e.Path+"#"+e.Key || string(e.Input) != "7" || (e.Interrupt != "") != (e.Key == "asked" || e.Key == "awaits") {
				t.Errorf("%+v", e)
			}
			if begun := !e.Begun.IsZero(); begun != (e.Want.Kind == "string") || begun != (e.Attempt == 1) {
				t.Errorf("%s began at %s in attempt %d, and returns %v", e, e.Begun, e.Attempt, e.Want)
			}
			advice := strings.ReplaceAll(e.Advice, e.Interrupt, "ID")
			if e.Interrupt == "" {
				advice = e.Advice
			}
			lines = append(lines, e.String()+"\n\t"+strings.TrimSpace(fmt.Sprintf("%s %s\n\t%s", e.Output, brief(e.Why), advice)))
		}
		golden(t, "open.golden", lines)
		if n := len(opened.InDoubt()); n != 3 {
			t.Errorf("%d effects are in doubt", n)
		}
	}
}

// brief keeps a line of a golden file short.
func brief(text string) string { return text[:min(len(text), 60)] }

// What an effect declares and how long it took can be read while its superstep is open, also
// behind a snapshot; and what was given to it, once the log has to be asked.
func TestOpenTellsWhatWasDeclared(t *testing.T) {
	for _, eager := range []bool{false, true} {
		store := new(memory.Store)
		var o dispatcher.Options
		if eager {
			o = dispatcher.Eager(o)
		}
		g := effectNode(t, func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", map[string]int{"cents": 5}, func(context.Context, map[string]int) (string, error) {
				return "receipt", nil
			}, dag.Operation("bank.pay"), dag.Touches("account 7"), dag.Touches("ledger"), dag.Reversible, dag.Writes, dag.InDoubt(dag.DoubtAsks))
			return errors.Join(err, errors.New("the node fails"))
		}, dag.Policy{})
		d := process(t, g, store, o)
		if _, err := d.Run(t.Context(), run, nil); err == nil {
			t.Fatal("the run is completed")
		}
		opened, err := d.Open(t.Context(), run)
		if err != nil || len(opened.Effects) != 1 {
			t.Fatalf("opened %+v: %v", opened, err)
		}
		e := opened.Effects[0]
		want := `{"operation":"bank.pay","touches":["account 7","ledger"],"access":"writes","reversible":true,"doubt":"asks"}`
		if got := asJSON(t, e.Declared); got != want {
			t.Errorf("eager=%t: declared is %s, want %s", eager, got, want)
		}
		if string(e.Input) != `{"cents":5}` || string(e.Output) != `"receipt"` || e.Took <= 0 || len(e.Digest) != 64 || e.Phase != dispatcher.PhaseEnded {
			t.Errorf("eager=%t: %+v", eager, e)
		}
		e.Declared.Touches[0], e.Input[0], e.Output[0] = "x", 'x', 'x'
		if again, err := d.Open(t.Context(), run); err != nil || asJSON(t, again.Effects[0].Declared) != want || again.Effects[0].Output[0] != '"' {
			t.Errorf("eager=%t: what a caller changes is there: %+v, %v", eager, again, err)
		}
	}
}

// A completed run has no effects that are open, and nothing in doubt.
func TestOpenOfACompletedRun(t *testing.T) {
	side, store := doubtSide{mute: true}, new(memory.Store)
	g := effectNode(t, side.pay(), dag.Policy{})
	d := process(t, g, store, dispatcher.Options{})
	side.fails = 1
	res, err := d.Run(t.Context(), run, nil, dispatcher.Manual())
	completes(t, res, err)
	o, err := d.Open(t.Context(), run)
	if err != nil || o.Status != checkpoint.StatusCompleted || len(o.Effects) != 0 || len(o.Cursor.Visits) != 0 {
		t.Errorf("opened %+v: %v", o, err)
	}
	if res, err = d.Run(t.Context(), run, nil, dispatcher.Manual()); err != nil {
		t.Errorf("a manual Run of a completed run is %s: %v", res.Status, err)
	}
}

// What Open returns beside an error may be asked as any other.
func TestOpenOfNoRunHasNothingInDoubt(t *testing.T) {
	var w witness
	opened, err := process(t, line(t, &w, nil), new(memory.Store), dispatcher.Options{}).Open(t.Context(), run)
	if !errors.Is(err, checkpoint.ErrNotFound) || len(opened.InDoubt()) > 0 {
		t.Errorf("Open = %+v, %v", opened, err)
	}
}

// Manual belongs to calls that go on with a run.
func TestManualIsForCallsThatGoOn(t *testing.T) {
	store := new(memory.Store)
	var side doubtSide
	d := doubtful(t, &side, store)
	manual := dispatcher.Manual()
	for name, call := range map[string]func() error{
		"Start":   func() error { _, err := d.Start(t.Context(), "other", nil, manual); return err },
		"Turn":    func() error { _, err := d.Turn(t.Context(), run, nil, manual); return err },
		"Enqueue": func() error { return d.Enqueue(t.Context(), run, nil, manual) },
	} {
		unchanged(t, store, run, func() {
			var refused *dispatcher.OptionError
			if err := call(); !errors.As(err, &refused) || refused.Option != "Manual" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for name, call := range map[string]func() error{
		"Run":      func() error { _, err := d.Run(t.Context(), run, nil, manual); return err },
		"Resume":   func() error { _, err := d.Resume(t.Context(), run, manual); return err },
		"Continue": func() error { _, err := d.Continue(t.Context(), run, manual); return err },
	} {
		unchanged(t, store, run, func() {
			var refused *dispatcher.DoubtError
			err := call()
			if !errors.As(err, &refused) || refused.Run != run || len(refused.Effects) != 1 || refused.Effects[0].Key != "charge" {
				t.Errorf("%s: %v", name, err)
			}
			want := `dispatcher: run "tale": in doubt: tale/pay#charge: say with Resolve what happened, or go on without Manual`
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// What was done before the run was rewound has the key of then, and what is done after it
// another one.
func TestOpenAfterARewind(t *testing.T) {
	store := new(memory.Store)
	round := dag.New[Tale]("round")
	dag.Step(round, "hop", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	b := dag.New[Tale]("rewound")
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		err := errors.New("not yet")
		for _, key := range []string{"before", "after"}[:dag.Attempt(ctx)] {
			_, got := dag.Effect(ctx, key, 1, func(context.Context, int) (string, error) { return "receipt", nil })
			err = errors.Join(err, got)
		}
		return err
	})
	dag.Loop(b, "loop", frozen(t, round), func(*Tale) bool { return false }, 3)
	d := process(t, frozen(t, b), store, dispatcher.Options{Parallel: 1})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if err := d.Rewind(t.Context(), run, "loop/3@1", dispatcher.RewindOptions{}, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if res, err = d.Resume(t.Context(), run); err == nil {
			t.Fatalf("the run is %s", res.Status)
		}
	}
	var ids []string
	o, err := d.Open(t.Context(), run)
	for _, e := range o.Effects {
		ids = append(ids, e.ID)
	}
	if err != nil || asJSON(t, ids) != `["tale/pay#before","tale~1/pay#after"]` {
		t.Errorf("opened with %q: %v", ids, err)
	}
}

// A run that was rewound into a superstep knows what the effects in it were given, though that
// superstep had ended meanwhile.
func TestOpenOfARewoundSuperstepHasInputs(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		body := dag.New[Tale]("body")
		dag.Step(body, "pay", func(ctx context.Context, s *Tale) error {
			s.Count.Add(1)
			_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { return 1, nil })
			return err
		})
		b := dag.New[Tale]("open")
		dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 2 }, 3)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if err := d.Rewind(t.Context(), run, "loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		opened, err := d.Open(t.Context(), run)
		if err != nil || len(opened.Effects) != 1 || string(opened.Effects[0].Input) != "5" {
			t.Errorf("opened %+v, %v", opened, err)
		}
	})
}
