package dispatcher_test

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gatesGrown is the graph look → pay{charge}, to which a node was added behind pay in a later
// version.
func gatesGrown(t *testing.T, bank *effectBank, later bool) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("grown")
	look := dag.Step(b, "look", func(_ context.Context, s *Tale) error { s.Said.Append("look"); return nil })
	pay := dag.Step(b, "pay", effectOnce(bank.pay), look)
	if later {
		dag.Step(b, "thank", func(_ context.Context, s *Tale) error { s.Said.Append("thank"); return nil }, pay)
	}
	return frozen(t, b)
}

// What was decided about an effect holds when the run goes on with a changed graph, whether the
// decision comes before the change or after it.
func TestGatesInAChangedGraph(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		var bank effectBank
		var store memory.Store
		was, is := gatesGrown(t, &bank, false), gatesGrown(t, &bank, true)
		i := gatesStops(t, was, &store, gatesCharge, "effect pay#charge")
		if after {
			gatesStops(t, is, &store, gatesCharge, "effect pay#charge")
			gatesDecide(t, is, &store, gatesCharge, i, dispatcher.Approve)
		} else {
			gatesDecide(t, was, &store, gatesCharge, i, dispatcher.Approve)
		}
		res, err := process(t, is, &store, gatesCharge).Run(t.Context(), run, nil)
		completes(t, res, err)
		says(t, res.State, "look", "thank")
		if bank.counts()["tale/pay#charge"] != 1 {
			t.Errorf("done %v", bank.counts())
		}
		gatesBegunUnder(t, &store, []string{i.ID})
	}
}

// A fork has approved of nothing: what a person has approved in its origin, and what is not
// spent there, has to be approved in it as well.
func TestGatesOfAFork(t *testing.T) {
	t.Parallel()
	var bank effectBank
	var store memory.Store
	g := gatesGrown(t, &bank, false)
	i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Approve)
	d := process(t, g, &store, gatesCharge)
	forks, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live})
	if err != nil || len(forks) != 1 {
		t.Fatalf("%v, %v", forks, err)
	}
	res, err := d.Run(t.Context(), forks[0], nil)
	j := gatesOne(t, res, err, "effect pay#charge")
	if a := gatesAction(t, j); j.ID == i.ID || a.Run != forks[0] {
		t.Errorf("the fork asks %+v", a)
	}
	gatesUndone(t, &bank)
	if err := d.Answer(t.Context(), forks[0], j.ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if done := bank.counts(); len(done) != 1 || done["tale/pay#charge"] != 1 {
		t.Errorf("done %v", done)
	}
}

// A run that is rewound to before an effect was approved asks for it again.
func TestGatesOfARewoundRun(t *testing.T) {
	t.Parallel()
	var bank effectBank
	var store memory.Store
	g := gatesGrown(t, &bank, true)
	i := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	gatesDecide(t, g, &store, gatesCharge, i, dispatcher.Approve)
	d := process(t, g, &store, gatesCharge)
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}, dispatcher.Author("Ann")); err != nil {
		t.Fatal(err)
	}
	j := gatesStops(t, g, &store, gatesCharge, "effect pay#charge")
	if j.ID == i.ID || len(bank.counts()) != 1 {
		t.Errorf("asked is %+v, done %v", j, bank.counts())
	}
	gatesDecide(t, g, &store, gatesCharge, j, dispatcher.Approve)
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	gatesBegunUnder(t, &store, []string{i.ID, j.ID})
}
