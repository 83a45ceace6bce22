package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A gatesWorld is what the nodes of a test do outside the run. It outlives processes, and
// looks into the log, whenever something is done, whether that was approved.
type gatesWorld struct {
	t     testing.TB
	store *mortal
	when  string
	did   map[string]int // by idempotency key
}

// does is a body of a gated visit, or an effect, that happens now.
func (g *gatesWorld) does(ctx context.Context, effect string) {
	g.t.Helper()
	path := visitPath(ctx)
	if effect != "" {
		path = strings.TrimSuffix(path, "#"+effect)
	}
	g.did[dag.Key(ctx)]++
	approved := ""
	asked := map[string]string{}
	spent := map[string]int{}
	for _, e := range readLogIf(g.t, &g.store.Store) {
		switch {
		case e.Kind == checkpoint.Interrupted && e.Path == path:
			var i checkpoint.Interrupt
			gatesDecode(g.t, e, &i)
			if i.By == "gate" && i.Key == effect {
				asked[e.ID] = path
			}
		case e.Kind == checkpoint.Answered && asked[e.ID] != "":
			var a checkpoint.Answer
			gatesDecode(g.t, e, &a)
			if string(a.Value) == `"approve"` {
				approved = e.ID
			}
		case e.Kind == checkpoint.EffectBegun && e.Path == path && e.ID == effect:
			var b checkpoint.BegunEffect
			gatesDecode(g.t, e, &b)
			if spent[b.Approval]++; spent[b.Approval] > 1 && !b.Replayable || b.Approval == "" {
				g.t.Errorf("%s: %s#%s begins under the approval %q, which was spent %d times", g.when, path, effect, b.Approval, spent[b.Approval])
			}
		}
	}
	if approved == "" {
		g.t.Errorf("%s: %s#%s is done, and nobody has approved of it", g.when, path, effect)
	}
}

// gatesEverywhere is the graph
//
//	gated → rounds { pay: charge, which does not happen at first, and mail, replayable } → refused → last
//
// over world, whose visit gated and whose effects are all gated; that of refused is rejected.
func gatesEverywhere(t testing.TB, world *gatesWorld) (*dag.Graph[Tale], dispatcher.Options) {
	t.Helper()
	do := func(key string, refusal error, options ...dag.EffectOption) part {
		return func(ctx context.Context, s *Tale) error {
			receipt, err := dag.Effect(ctx, key, 5, func(ctx context.Context, cents int) (string, error) {
				world.does(ctx, key)
				if world.did[dag.Key(ctx)] == 1 && refusal != nil {
					return "", refusal
				}
				return "paid " + dag.Key(ctx), nil
			}, options...)
			if err == nil {
				s.Notes.Put(visitPath(ctx)+"#"+key, receipt)
			}
			return err
		}
	}
	body := dag.New[Tale]("body")
	dag.Step(body, "pay", func(ctx context.Context, s *Tale) error {
		if err := do("charge", fmt.Errorf("later: %w", dag.NotDone))(ctx, s); err != nil {
			return err
		}
		return do("mail", nil, dag.Replayable)(ctx, s)
	}).With(dag.Policy{Attempts: 100})
	b := dag.New[Tale]("gates")
	first := dag.Step(b, "gated", func(ctx context.Context, s *Tale) error {
		world.does(ctx, "")
		s.Said.Append("gated")
		return nil
	})
	rounds := dag.Loop(b, "rounds", frozen(t, body), func(*Tale) bool { return false }, 2, first)
	refused := dag.Step(b, "refused", do("charge", nil), rounds)
	dag.Step(b, "last", func(_ context.Context, s *Tale) error { s.Said.Append("last"); return nil }, refused.Failed())
	return frozen(t, b), gated(dispatcher.Gates{Names: []string{"gated", "rounds/pay#*", "refused#*"}})
}

// Whatever append a process dies at, whether that became durable or not: no body runs and no
// effect begins before its approval is durable, and an approval is spent once. What is not in
// doubt comes to the same end. With a snapshot behind every append the same.
func TestGatesSurviveCrashes(t *testing.T) {
	t.Parallel()
	calm := ""
	for _, eager := range []bool{false, true} {
		for _, written := range []bool{false, true} {
			for k := 0; ; k++ { // the first does not crash
				state, doubt, died := gatesCrash(t, k, written, eager)
				if calm == "" {
					calm = state
				}
				if state != calm && !doubt {
					t.Errorf("crash at append %d, written=%t: %s, want %s", k, written, state, calm)
				}
				if k > 0 && !died || t.Failed() {
					diedOften(t, k-1, 2)
					break
				}
			}
		}
	}
}

func gatesCrash(t *testing.T, life int, written, eager bool) (state string, doubt, died bool) {
	t.Helper()
	store := new(mortal)
	world := &gatesWorld{
		t: t, store: store, did: map[string]int{},
		when: fmt.Sprintf("crash at append %d, written=%t, eager=%t", life, written, eager),
	}
	g, o := gatesEverywhere(t, world)
	if o.Paranoid = !eager; eager {
		o = dispatcher.Eager(o)
	}
	for calls := 0; ; calls++ {
		if calls > 30 {
			t.Fatalf("%s: the run does not come to its end", world.when)
		}
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		life = 0
		d, err := dispatcher.New(g, store, o)
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), run, nil)
		switch {
		case store.died():
			died = true
		case errors.Is(err, dag.ErrInDoubt):
			if !died {
				t.Errorf("%s: %v", world.when, err)
			}
			return "", true, died
		case errors.Is(err, dispatcher.ErrInterrupted):
			for _, i := range res.Interrupts {
				v := dispatcher.Approve
				if i.Path == "refused" {
					v = dispatcher.Reject
				}
				if err := d.Answer(t.Context(), run, i.ID, v); err != nil && !store.died() {
					t.Fatal(err)
				} else if err != nil {
					died = true
				}
			}
		default:
			completes(t, res, err)
			if n := world.did["tale/refused#charge"]; n > 0 {
				t.Errorf("%s: the rejected effect was done", world.when)
			}
			return asJSON(t, res.State), false, died
		}
	}
}

// A snapshot at any entry is what a replay of the log comes to: what was decided about
// effects, spent and not spent, is in it.
func TestGatesSnapshots(t *testing.T) {
	t.Parallel()
	store := new(mortal)
	world := &gatesWorld{t: t, store: store, did: map[string]int{}, when: "undisturbed"}
	g, o := gatesEverywhere(t, world)
	o = dispatcher.Eager(o)
	for {
		d := process(t, g, store, o)
		res, err := d.Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			completes(t, res, err)
			break
		}
		for _, i := range res.Interrupts {
			v := dispatcher.Approve
			if i.Path == "refused" {
				v = dispatcher.Reject
			}
			gatesDecide(t, g, store, o, i, v)
		}
	}
	d := process(t, g, store, o)
	grants := 0
	for _, e := range readLog(t, store) {
		got, err := dispatcher.MachineAt(t.Context(), d, run, e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		want, err := dispatcher.Replayed(t.Context(), d, run, e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("at entry %d (%s %s) the snapshot leads to\n%s, a replay to\n%s", e.Seq, e.Kind, e.Path, got, want)
		}
		if strings.Contains(string(got), `"grants":{`) {
			grants++
		}
	}
	if grants < 5 {
		t.Errorf("%d machines hold something that was decided", grants)
	}
}
