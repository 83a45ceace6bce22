package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// effectNamed is a graph of one node of this name, which does an effect and asks, and of one
// more if that is said.
func effectNamed(t testing.TB, name string, more bool, bank *effectBank, doubt error) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("moves")
	pay := dag.Step(b, name, func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 5, func(ctx context.Context, n int) (string, error) {
			receipt, err := bank.pay(ctx, n)
			return receipt, errors.Join(err, doubt)
		})
		if err != nil {
			return err
		}
		s.Word.Set(receipt)
		_, err = dag.Ask[bool](ctx, "sure", "?")
		return err
	})
	if more {
		dag.Step(b, "more", func(context.Context, *Tale) error { return nil }, pay)
	}
	return frozen(t, b)
}

// Effects go with their visit to a changed graph: renamed as well, unless one is in doubt,
// which the other side knows by the name that it was begun under.
func TestEffectsGoWithAChangedGraph(t *testing.T) {
	moved := dispatcher.Options{Migrations: []dispatcher.Migration{{Name: "rename", Nodes: map[string]string{"pay": "settle"}}}}
	for _, test := range []struct {
		name    string
		graph   string
		options dispatcher.Options
		doubt   error
		refused bool
	}{
		{"a node behind it", "pay", dispatcher.Options{}, nil, false},
		{"renamed", "settle", moved, nil, false},
		{"in doubt, a node behind it", "pay", dispatcher.Options{}, errors.New("reset"), false},
		{"in doubt, renamed", "settle", moved, errors.New("reset"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bank effectBank
			var store memory.Store
			res, err := process(t, effectNamed(t, "pay", false, &bank, test.doubt), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if test.doubt == nil {
				rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			}
			d := process(t, effectNamed(t, test.graph, test.graph == "pay", &bank, nil), &store, test.options)
			res, err = d.Resume(t.Context(), run)
			switch {
			case test.refused:
				var changed *dispatcher.GraphChangedError
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), `effect "charge" of visit pay was begun`) {
					t.Errorf("%v", err)
				}
			case test.doubt != nil:
				if rests(t, res, err, checkpoint.StatusFailed, test.graph); !errors.Is(err, dag.ErrInDoubt) {
					t.Errorf("%v", err)
				}
			default:
				rests(t, res, err, checkpoint.StatusInterrupted, test.graph)
				// What is open tells the key that the other side was given, not the one that it
				// would be given now.
				if o, err := d.Open(t.Context(), run); err != nil || len(o.Effects) != 1 || o.Effects[0].ID != "tale/pay#charge" {
					t.Errorf("open are the effects %+v, %v", o.Effects, err)
				}
				if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
					t.Fatal(err)
				}
				res, err = d.Run(t.Context(), run, nil)
				if completes(t, res, err); res.State.Word.Get() != "5 for tale/pay#charge" {
					t.Errorf("the word is %q", res.State.Word.Get())
				}
			}
			if got := asJSON(t, bank.counts()); got != `{"tale/pay#charge":1}` {
				t.Errorf("done %s", got)
			}
		})
	}
}
