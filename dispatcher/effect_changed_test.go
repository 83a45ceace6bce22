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

// callsThenAsks is a node that does an effect, keeps what it is given in is, and asks.
func callsThenAsks[Out any](t *testing.T, tries *int, is *Out, call func() Out) *dag.Graph[Tale] {
	return effectNode(t, func(ctx context.Context, s *Tale) error {
		*tries++
		out, err := dag.Effect(ctx, "call", 1, func(context.Context, int) (Out, error) { return call(), nil })
		if err != nil {
			return err
		}
		*is = out
		_, err = dag.Ask[bool](ctx, "sure", "?")
		return err
	}, dag.Policy{Attempts: 3})
}

// What another program has kept of an effect is not taken for something else: whoever renames a
// member is told so, and loses nothing that was paid for. One that is new is zero.
func TestEffectKeptByAnotherProgram(t *testing.T) {
	type reply struct {
		Text string
		Cost int
	}
	type renamed struct {
		Body string
		Cost int
	}
	type extended struct {
		Text  string
		Cost  int
		Model string
	}
	var store memory.Store
	var is reply
	tries := 0
	g := callsThenAsks(t, &tries, &is, func() reply { return reply{"a poem", 3} })
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")

	tries = 0
	var wrong renamed
	g2 := callsThenAsks(t, &tries, &wrong, func() renamed { t.Error("the effect is done again"); return renamed{} })
	res, err = process(t, g2, &store, dispatcher.Options{}).Run(t.Context(), run, nil, dispatcher.Answering("", true))
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if tries != 1 {
		t.Errorf("%d attempts, want one: no other would find something else", tries)
	}
	if !errors.Is(err, dag.ErrOutputChanged) || !strings.Contains(err.Error(), `unknown member "Text"`) || wrong != (renamed{}) {
		t.Errorf("the node was given %+v, %v, want dag.ErrOutputChanged", wrong, err)
	}

	var more extended
	g3 := callsThenAsks(t, &tries, &more, func() extended { t.Error("the effect is done again"); return extended{} })
	res, err = process(t, g3, &store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	if more != (extended{Text: "a poem", Cost: 3}) {
		t.Errorf("the node was given %+v", more)
	}
}

// What came of an effect in doubt is said in the type that it had when it began: what a later
// program wants is known when its node runs. If that one waits to be told it is said in its own.
func TestDoubtIsResolvedInTheTypeThatIsKnown(t *testing.T) {
	for _, asks := range []bool{false, true} {
		var store memory.Store
		side, number := doubtSide{}, 0
		doubtful(t, &side, &store)
		d := process(t, effectNode(t, func(ctx context.Context, _ *Tale) (err error) {
			var options []dag.EffectOption
			if asks {
				options = append(options, dag.InDoubt(dag.DoubtAsks))
			}
			number, err = dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) {
				t.Error("the effect is done again")
				return 0, nil
			}, options...)
			return err
		}, dag.Policy{}), &store, dispatcher.Options{})
		if _, err := d.Resume(t.Context(), run); errors.Is(err, dispatcher.ErrInterrupted) != asks {
			t.Fatalf("asks=%t: the run came to %v", asks, err)
		}
		refused, taken := dispatcher.Happened(7), dispatcher.Happened("receipt 7")
		if asks {
			refused, taken = taken, refused
		}
		if err := d.Resolve(t.Context(), run, "pay", "charge", refused); !errors.Is(err, dispatcher.ErrAnswerType) {
			t.Errorf("asks=%t: %v, want ErrAnswerType", asks, err)
		}
		if err := d.Resolve(t.Context(), run, "pay", "charge", taken); err != nil {
			t.Fatal(err)
		}
		res, err := d.Resume(t.Context(), run)
		if !asks {
			if rests(t, res, err, checkpoint.StatusFailed, "pay"); !errors.Is(err, dag.ErrOutputChanged) {
				t.Errorf("the run came to %v, want dag.ErrOutputChanged", err)
			}
			continue
		}
		if completes(t, res, err); number != 7 {
			t.Errorf("the node was given %d", number)
		}
	}
}
