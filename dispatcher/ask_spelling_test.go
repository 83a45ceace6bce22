package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An answer that is JSON already reaches its node as it was given, without HTML's escapes.
func TestAnswersKeepTheirSpelling(t *testing.T) {
	const given = "{\"b\":\"<&> \u2028\u2029 \\u003c\",\"a\":1.0}"
	b := dag.New[Tale]("spelling")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		raw, err := dag.Ask[json.RawMessage](ctx, "json", "what?")
		s.Said.Append(string(raw))
		return err
	})
	d, err := dispatcher.New(frozen(t, b), new(memory.Store), dispatcher.Options{Paranoid: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), "r", "", json.RawMessage(given)); err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.State.Said.Slice(); len(got) != 1 || got[0] != given {
		t.Errorf("the node got %q, and %q was given", got, given)
	}
}
