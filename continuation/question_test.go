package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A question that a node asks by itself is no wait, whatever it says; one of a version to come is
// ErrVersion.
func TestQuestionsThatAreLikeThoseOfWaits(t *testing.T) {
	for question, want := range map[string]error{
		`{"continuation":"of what?"}`: nil, `{"continuation":1}`: nil, `{"continuation":1,"of":"the story"}`: nil,
		`{"continuation":2}`: nil, `{"continuation":7,"of":"the story"}`: nil, `{"continuation":0,"of":[]}`: nil,
		`{"continuation":3,"of":[{"page":1}]}`: nil, `{"continuation":1,"of":[{"page":1}]}`: nil,
		`{"continuation":2,"of":[{"kind":"user_reply"}]}`: checkpoint.ErrVersion,
	} {
		b := dag.New[Talk]("talk")
		dag.Step(b, "ask", func(ctx context.Context, _ *Talk) error {
			_, err := dag.Ask[string](ctx, "key", json.RawMessage(question))
			return err
		})
		p := begin(t, frozen(t, b), &memory.Store{}, continuation.Options{})
		if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if runs, err := p.rt.Sweep(t.Context()); len(runs) > 0 || !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: swept %q, %v, want %v", question, runs, err, want)
		}
	}
}
