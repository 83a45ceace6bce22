package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// rejectWays are the ways in which two people are asked before the visit held.
func rejectWays() map[string]dispatcher.Options {
	gate := hookBefore([]string{"held"}, always(dispatcher.Ask("one?")))
	gate.Gates = dispatcher.Gates{Names: []string{"held"}}
	return map[string]dispatcher.Options{
		"two interceptors": hookBefore([]string{"held"}, always(dispatcher.Ask("one?")), always(dispatcher.Ask("two?"))),
		"a gate as well":   gate,
	}
}

// rejectPair returns a graph of held, of works, which holds the run live until free is closed,
// and of last, which follows both.
func rejectPair(t testing.TB, w *witness, free <-chan struct{}) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("pair")
	held := dag.Step(b, "held", w.sees(nil))
	works := dag.Step(b, "works", w.sees(func(ctx context.Context, _ *Tale) error {
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	dag.Step(b, "last", w.sees(nil), held, works)
	return frozen(t, b)
}

// rejectWaits returns the two interrupts that wait, in the order of their ids if sorted, else
// in the other one.
func rejectWaits(t testing.TB, d *dispatcher.Dispatcher[Tale], sorted bool) (a, b string) {
	t.Helper()
	res, err := d.State(t.Context(), run)
	if err != nil || len(res.Interrupts) != 2 {
		t.Fatalf("the run waits for %v, %v, want two", res.Interrupts, err)
	}
	a, b = res.Interrupts[0].ID, res.Interrupts[1].ID
	if (a < b) != sorted {
		a, b = b, a
	}
	return a, b
}

// rejectEnded checks that a call ended with held rejected, that so many verdicts count, and
// that nothing is left to drain.
func rejectEnded(t testing.TB, store checkpoint.Store, err error, answered int) {
	t.Helper()
	var n *dispatcher.NodeError
	if !errors.As(err, &n) || n.Kind != dag.FailedRejected || n.Path != "held" {
		t.Errorf("the run ended with %v, want held rejected", err)
	}
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("these wait to be drained: %v, %v", posts, err)
	}
	if got := kinds(readLog(t, store), checkpoint.Answered); len(got) != answered {
		t.Errorf("the log has the verdicts %q, want %d", got, answered)
	}
}

// Whoever answers behind the rejection of the same visit is told so, while the run is live and has
// taken neither; an approval before it counts, and changes nothing. The run goes on, and the call
// behind that asks again.
func TestRejectBesideAnAnswerLive(t *testing.T) {
	for name, o := range rejectWays() {
		for _, order := range []string{"reject approve", "reject reject", "approve reject"} {
			for _, sorted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, %t", name, order, sorted), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { rejectLive(t, o, order, sorted) })
				})
			}
		}
	}
}

func rejectLive(t *testing.T, o dispatcher.Options, order string, sorted bool) {
	var w witness
	store := unwatched{new(memory.Store)} // the run takes both verdicts at once
	free := make(chan struct{})
	g := rejectPair(t, &w, free)
	over := beginRun(t, process(t, g, store, o))
	w.expect(t, "works")
	by := process(t, g, store, o)
	a, b := rejectWaits(t, by, sorted)
	first, second, _ := strings.Cut(order, " ")
	if err := by.Answer(t.Context(), run, a, first, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
	answered := 1
	err := by.Answer(t.Context(), run, b, second, dispatcher.Author("Bob"))
	if first == string(dispatcher.Reject) {
		refused(t, err, dispatcher.ErrNotAwaited)
	} else if answered++; err != nil {
		t.Error(err)
	}
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) != answered {
		t.Errorf("posted: %v, %v; the run was to take both verdicts at once", posts, err)
	}
	close(free)
	end := <-over
	rests(t, end.res, end.err, checkpoint.StatusFailed, "held")
	rejectEnded(t, store, end.err, answered)
	res, err := by.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "held") // the next call overrules it, and asks again
	w.expect(t)
}

// Of a run at rest a rejection ends what else waits before the visit as well: another answer
// beside it, whichever it is and in whatever order the ids are, is refused, and so is one
// behind it. Nothing has changed then.
func TestRejectBesideAnAnswerAtRest(t *testing.T) {
	for name, o := range rejectWays() {
		for _, sorted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", name, sorted), func(t *testing.T) {
				var w witness
				store := new(memory.Store)
				g := rejectPair(t, &w, closedChan())
				d := process(t, g, store, o)
				res, err := d.Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "held")
				a, b := rejectWaits(t, d, sorted)
				for _, other := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
					unchanged(t, store, run, func() {
						refused(t, d.Answers(t.Context(), run, map[string]any{a: dispatcher.Reject, b: other}), dispatcher.ErrNotAwaited)
					})
				}
				if err := d.Answers(t.Context(), run, map[string]any{a: dispatcher.Reject}); err != nil {
					t.Fatal(err)
				}
				unchanged(t, store, run, func() {
					refused(t, d.Answer(t.Context(), run, b, dispatcher.Approve), dispatcher.ErrNotAwaited)
				})
				_, err = d.Run(t.Context(), run, nil)
				rejectEnded(t, store, err, 1)
				w.expect(t, "works")
			})
		}
	}
}

// Of a run at rest both may be approved at once.
func TestRejectLeavesApprovalsTogether(t *testing.T) {
	for name, o := range rejectWays() {
		t.Run(name, func(t *testing.T) {
			var w witness
			store := new(memory.Store)
			d := process(t, rejectPair(t, &w, closedChan()), store, o)
			_, _ = d.Run(t.Context(), run, nil)
			a, b := rejectWaits(t, d, true)
			if err := d.Answers(t.Context(), run, map[string]any{a: dispatcher.Approve, b: dispatcher.Approve}); err != nil {
				t.Fatal(err)
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "works", "held", "last")
		})
	}
}

// The rejection of one effect of a visit ends no other interrupt of it: both verdicts count,
// together or one behind the other.
func TestRejectOneEffectOfTwo(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, sorted := range []bool{false, true} {
			t.Run(fmt.Sprintf("together=%t, %t", together, sorted), func(t *testing.T) { rejectEffect(t, together, sorted) })
		}
	}
}

func rejectEffect(t *testing.T, together, sorted bool) {
	var w witness
	var bank effectBank
	store := new(memory.Store)
	denied := 0
	b := dag.New[Tale]("shop")
	dag.Step(b, "pay", w.sees(func(ctx context.Context, _ *Tale) error {
		_, one := dag.Effect(ctx, "charge", 5, bank.pay)
		_, two := dag.Effect(ctx, "tip", 1, bank.pay)
		for _, err := range []error{one, two} {
			if errors.Is(err, dag.ErrDenied) {
				denied++
			} else if err != nil {
				return err
			}
		}
		return nil
	}))
	d := process(t, frozen(t, b), store, gated(dispatcher.Gates{Names: []string{"pay#charge", "pay#tip"}}))
	_, _ = d.Run(t.Context(), run, nil)
	x, y := rejectWaits(t, d, sorted)
	give := func(values map[string]any) {
		t.Helper()
		if err := d.Answers(t.Context(), run, values); err != nil {
			t.Fatal(err)
		}
	}
	if together {
		give(map[string]any{x: dispatcher.Reject, y: dispatcher.Approve})
	} else {
		give(map[string]any{x: dispatcher.Reject})
		give(map[string]any{y: dispatcher.Approve})
	}
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if denied != 1 || len(bank.counts()) != 1 {
		t.Errorf("%d denied, done %v, want one of each", denied, bank.counts())
	}
}
