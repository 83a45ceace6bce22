package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gatesNamed is a graph in which one node charges: a step, an Each with one item, or a step in a
// Loop of its name.
func gatesNamed(t testing.TB, kind dag.Kind, name string, f part) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("pay")
	switch kind {
	case dag.KindEach:
		dag.Each(b, name, func(*Tale) []int { return []int{5} }, func(ctx context.Context, s *Tale, _ int) error { return f(ctx, s) })
	case dag.KindLoop:
		body := dag.New[Tale]("body")
		dag.Step(body, name, f)
		dag.Loop(b, name, frozen(t, body), func(*Tale) bool { return true }, 2)
	default:
		dag.Step(b, name, f)
	}
	return frozen(t, b)
}

// What a person has rejected is not done because its node has another name since, and what was
// approved is not asked for again: be it an effect or a visit, decided before the rename or behind
// it.
func TestGatesBehindARename(t *testing.T) {
	for _, kind := range []dag.Kind{dag.KindStep, dag.KindEach, dag.KindLoop} {
		for _, effect := range []bool{false, true} {
			for _, behind := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s effect=%t behind=%t", kind, effect, behind), func(t *testing.T) {
					gatesDecidedAndRenamed(t, kind, effect, behind, dispatcher.Approve)
					gatesDecidedAndRenamed(t, kind, effect, behind, dispatcher.Reject)
				})
			}
		}
	}
}

func gatesDecidedAndRenamed(t *testing.T, kind dag.Kind, effect, behind bool, verdict dispatcher.Verdict) {
	quiet(t)
	var bank effectBank
	var store memory.Store
	path := map[dag.Kind]string{dag.KindStep: "%s", dag.KindEach: "%s/1", dag.KindLoop: "%[1]s/1/%[1]s"}[kind]
	under := func(name string) (g *dag.Graph[Tale], o dispatcher.Options, at, waits string) {
		at = fmt.Sprintf(path, name)
		if effect {
			return gatesNamed(t, kind, name, effectOnce(bank.pay)), gated(dispatcher.Gates{Names: []string{at + "#*"}}), at, "effect " + at + "#charge"
		}
		return gatesNamed(t, kind, name, effectOnce(bank.pay)), gated(dispatcher.Gates{Names: []string{at}}), at, "before " + at + "#"
	}
	nodes := map[string]string{"pay": "bill"}
	if kind == dag.KindLoop {
		nodes["pay/pay"] = "bill/bill"
	}
	was, old, _, waits := under("pay")
	is, o, at, still := under("bill")
	o.Migrations = migrating(dispatcher.Migration{Name: "m", Nodes: nodes}).Migrations
	i := gatesStops(t, was, &store, old, waits)
	if behind {
		if again := gatesStops(t, is, &store, o, still); again.ID != i.ID {
			t.Errorf("%s waits, and %s did", again.ID, i.ID)
		}
		was, old = is, o
	}
	gatesDecide(t, was, &store, old, i, verdict)
	if verdict == dispatcher.Reject {
		o.Gates = dispatcher.Gates{} // nor because nobody would be asked any more
		res, err := process(t, is, &store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, at)
		gatesUndone(t, &bank)
		return
	}
	res, err := process(t, is, &store, o).Run(t.Context(), run, nil)
	if completes(t, res, err); len(bank.counts()) != 1 {
		t.Errorf("done %v", bank.counts())
	}
}

// An approval is of the operation that was asked about, and of no other. What was rejected is not
// done by being declared as something else: it takes another input, or a person who is asked again.
func TestGatesEffectDeclaredOtherwise(t *testing.T) {
	quiet(t)
	for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
		var bank effectBank
		var store memory.Store
		was := effectNode(t, effectOnce(bank.pay), dag.Policy{})
		is := effectNode(t, effectOnce(bank.pay, dag.Operation("transfer"), dag.Writes), dag.Policy{})
		i := gatesStops(t, was, &store, gatesCharge, "effect pay#charge")
		gatesDecide(t, was, &store, gatesCharge, i, verdict)
		if verdict == dispatcher.Reject {
			res, err := process(t, is, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrDenied) {
				t.Errorf("the error is %v, want that it is denied", err)
			}
		}
		if again := gatesStops(t, is, &store, gatesCharge, "effect pay#charge"); again.ID == i.ID || gatesAction(t, again).Operation != "transfer" {
			t.Errorf("behind %s this waits: %+v", verdict, again)
		}
		gatesUndone(t, &bank)
	}
}
