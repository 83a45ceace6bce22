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

// guarded returns
//
//	refused ─failed→ sorry → rounds { paid } → (swapped, turned) → last
//
// and the hooks of it: refused is denied, paid needs an approval in every round, swapped is
// substituted, and the result of turned is replaced.
func guarded(t testing.TB, w *witness, l *hookLog, check func(dispatcher.Call)) (*dag.Graph[Tale], dispatcher.Options) {
	body := dag.New[Tale]("body")
	dag.Step(body, "paid", w.sees(nil))
	b := dag.New[Tale]("guarded")
	refused := dag.Step(b, "refused", w.sees(nil)).With(dag.Policy{Attempts: 3})
	sorry := dag.Step(b, "sorry", w.sees(nil), refused.Failed())
	rounds := dag.Loop(b, "rounds", frozen(t, body), func(*Tale) bool { return false }, 2, sorry)
	swapped := dag.Step(b, "swapped", w.sees(nil), rounds)
	turned := dag.Step(b, "turned", w.sees(nil), rounds)
	dag.Step(b, "last", w.sees(nil), swapped, turned)

	o := dispatcher.Options{Hooks: l.ends()}
	o.Hooks.Intercept = []dispatcher.Interceptor{{
		Name: "guard",
		Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
			check(c)
			switch c.Node {
			case "refused":
				return dispatcher.Deny("never")
			case "rounds/paid":
				return dispatcher.Ask("pay in " + c.Path + "?")
			case "swapped":
				return dispatcher.Instead(saying("substitute"))
			}
			return dispatcher.Continue()
		},
		After: func(_ context.Context, c dispatcher.Call, _ []string) dispatcher.Change {
			if c.Node == "turned" {
				return dispatcher.Replace(saying("replaced"))
			}
			return dispatcher.Keep()
		},
	}}
	return frozen(t, b), o
}

// Whatever append a process dies at, whether that became durable or not: the end is the
// same, what was denied stays denied, what was approved is not asked for again, and nobody
// is asked about a visit whose entry is durable.
func TestGuardedRunSurvivesCrashes(t *testing.T) {
	var undisturbed string
	for _, paranoid := range []bool{false, true} {
		for _, written := range []bool{false, true} {
			for k := 0; ; k++ { // the first does not crash
				state, died := crashGuarded(t, k, written, paranoid)
				if undisturbed == "" {
					undisturbed = state
				}
				if state != undisturbed {
					t.Errorf("crash at append %d, written=%t: %s, want %s", k, written, state, undisturbed)
				}
				if k > 0 && !died || t.Failed() {
					diedOften(t, k-1, 3)
					break
				}
			}
		}
	}
}

func crashGuarded(t *testing.T, life int, written, paranoid bool) (state string, died bool) {
	t.Helper()
	var w witness
	var l hookLog
	store := new(mortal)
	asked, approved := map[string]string{}, map[string]bool{} // by path
	g, o := guarded(t, &w, &l, func(c dispatcher.Call) {
		for _, e := range readLogIf(t, &store.Store) {
			if e.Path == c.Path && (e.Kind == checkpoint.Done || e.Kind == checkpoint.AttemptFailed) {
				t.Errorf("crash at %d: asked before %s, which is settled", life, c.Path)
			}
		}
		if approved[c.Path] && len(c.Approved) != 1 {
			t.Errorf("crash at %d: asked before %s, which was approved, and sees %q", life, c.Path, c.Approved)
		}
	})
	o.Paranoid = paranoid
	for calls := 0; ; calls++ {
		if calls > 20 {
			t.Fatal("the run does not come to its end")
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
		if hooks := l.took(); len(hooks) != 0 && (len(hooks) != 2 || hooks[0][:5] != "start" || hooks[1][:3] != "end") {
			t.Errorf("hooks of a call that returned %v: %q", err, hooks)
		}
		switch {
		case store.died():
			died = true
		case errors.Is(err, dispatcher.ErrInterrupted):
			for _, i := range res.Interrupts {
				if id, ok := asked[i.Path]; ok && id != i.ID {
					t.Errorf("%s was asked for again", i)
				}
				asked[i.Path] = i.ID
				err := d.Answer(t.Context(), run, i.ID, dispatcher.Approve)
				if err != nil && !store.died() {
					t.Fatal(err)
				}
				approved[i.Path], died = err == nil, died || err != nil
			}
		default:
			completes(t, res, err)
			return asJSON(t, res.State), died
		}
	}
}

// A snapshot holds what was approved: a run that goes on from one does not ask for it again.
func TestApprovalsInSnapshots(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	body := dag.New[Tale]("body")
	dag.Step(body, "page", w.sees(func(ctx context.Context, s *Tale) error {
		s.Notes.Put(visitPath(ctx), strings.Repeat("x", 90<<10))
		return nil
	}))
	b := dag.New[Tale]("outer")
	dag.Step(b, "paid", w.sees(nil))
	dag.Loop(b, "pages", frozen(t, body), func(*Tale) bool { return false }, 16)
	g := frozen(t, b)
	o := hookBefore([]string{"paid"}, always(dispatcher.Ask("one?")), always(dispatcher.Ask("two?")))
	o.InterruptBefore = []string{"pages/4/page"}
	approve := func(question string) {
		t.Helper()
		res, err := process(t, g, &store, o).State(t.Context(), run)
		k := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return string(i.Question) == question })
		if err != nil || k < 0 {
			t.Fatalf("%s is not among %v, %v", question, res.Interrupts, err)
		}
		if err := process(t, g, &store, o).Answer(t.Context(), run, res.Interrupts[k].ID, dispatcher.Approve); err != nil {
			t.Fatal(err)
		}
	}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "paid", "pages/4/page")
	approve(`"one?"`)
	answered := uint64(len(readLog(t, &store)))
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "paid")
	log := readLog(t, &store)
	s, err := store.Snapshot(t.Context(), run, uint64(len(log)))
	if err != nil || s.Head.Seq <= answered {
		t.Fatalf("the last snapshot is at %d (%v), the approval at %d", s.Head.Seq, err, answered)
	}
	approve(`"two?"`)
	res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
}
