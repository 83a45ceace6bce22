package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// What a visit does behind a trigger may wait for somebody to approve of it, or to say whether it
// has happened. Until that is said there is nothing to recover, whatever the node is called, and
// however short the log is; then there is, and nothing has lapsed.
func TestAnEffectBehindATriggerThatWaits(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		for _, by := range []string{"nothing else", "trim", "rename"} {
			if doubt && by == "rename" {
				continue // a migration leaves what is in doubt where it is
			}
			t.Run(fmt.Sprint("in doubt ", doubt, ", behind ", by), func(t *testing.T) {
				lost := doubt
				graph := func(node string) *dag.Graph[Talk] {
					b := dag.New[Talk]("paying")
					dag.Step(b, node, func(ctx context.Context, s *Talk) error {
						r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
						if err != nil {
							return err
						}
						if _, err := dag.Effect(ctx, "pay", 5, func(context.Context, int) (int, error) {
							if lost {
								lost = false
								return 0, errWeather
							}
							return 5, nil
						}, dag.InDoubt(dag.DoubtAsks)); err != nil {
							return err
						}
						return says(ctx, s, r)
					})
					return frozen(t, b)
				}
				node, store := "ask", &memory.Store{}
				options := func() dispatcher.Options {
					o := dispatcher.Options{Paranoid: true, Migrations: []dispatcher.Migration{{Name: "renamed", Nodes: map[string]string{"ask": node}}}}
					if !doubt {
						o.Gates.Names = []string{node + "#*"}
					}
					return o
				}
				p := under(t, options(), graph(node), store, continuation.Options{})
				p.waits(run)
				if out, err := p.rt.Trigger(t.Context(), reply("t", "yes")); err != nil || out.Status != continuation.StatusPending {
					t.Fatalf("%+v, %v", out, err)
				}
				var err error
				switch by {
				case "trim":
					err = p.d.Trim(t.Context(), run, dispatcher.Retention{Last: 1})
				case "rename":
					node = "pay"
					p = under(t, options(), graph(node), store, continuation.Options{})
					_, err = p.d.Run(t.Context(), run, nil)
				}
				if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Fatal(err)
				}
				if runs, err := p.rt.Recover(t.Context()); err != nil || len(runs) > 0 {
					t.Errorf("recovered %q, %v", runs, err)
				}
				if doubt {
					err = p.d.Resolve(t.Context(), run, node, "pay", dispatcher.Happened(5))
				} else {
					err = p.d.Answer(t.Context(), run, "", dispatcher.Approve)
				}
				if err != nil {
					t.Fatal(err)
				}
				if runs, err := p.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
					t.Errorf("recovered %q, %v", runs, err)
				}
				v := p.stands(run, continuation.StatusResolved, continuation.Completed)
				if said := p.said(run); !slices.Equal(said, []string{"yes"}) || v.Lapses != 0 || v.Failures != 0 {
					t.Errorf("it is %+v, and the state says %q", v, said)
				}
			})
		}
	}
}

// So it is where the process died that has taken what was said, and that is in no log yet.
func TestCrashBehindAnApprovalOfAnEffect(t *testing.T) {
	b := dag.New[Talk]("paying")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", continuation.Wait{})
		if err != nil {
			return err
		}
		if _, err := dag.Effect(ctx, "pay", 5, func(context.Context, int) (int, error) { return 5, nil }); err != nil {
			return err
		}
		return says(ctx, s, r)
	})
	g, store := frozen(t, b), &pawltest.Mortal{Store: &memory.Store{}}
	of := dispatcher.Options{Paranoid: true, Gates: dispatcher.Gates{Names: []string{"ask#*"}}}
	p := under(t, of, g, store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "yes")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(t.Context(), run, "somebody at work on it"); err != nil { // else it would be in the log at once
		t.Fatal(err)
	}
	store.DieAfter(1)
	if err := p.d.Answer(t.Context(), run, "", dispatcher.Approve); err != nil && !errors.Is(err, pawltest.ErrDead) {
		t.Fatal(err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = under(t, of, g, store, continuation.Options{})
	if runs, err := p.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Errorf("recovered %q, %v", runs, err)
	}
	p.stands(run, continuation.StatusResolved, continuation.Completed)
}
