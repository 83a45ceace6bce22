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

// What another program has kept of an effect is not taken for something else: whoever renames a member is told so, and loses nothing that
// was paid for. One that is new is zero.
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
