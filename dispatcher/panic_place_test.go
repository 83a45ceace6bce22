package dispatcher_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// rude has a marshaller that panics.
type rude struct{ Text string }

func (rude) MarshalJSON() ([]byte, error)     { panic("not today") }
func (*rude) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, new(string)) }

// Of a panic the error says where the user's code was, also if it was in something that this
// called.
func TestPanicIsPlacedInTheUsersCode(t *testing.T) {
	for name, f := range map[string]part{
		"of the node": func(context.Context, *Tale) error { panic("here") },
		"of a list": func(_ context.Context, s *Tale) error {
			_ = s.Said.At(99)
			return nil
		},
		"of a marshaller": func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "pay", rude{}, func(context.Context, rude) (int, error) { return 1, nil })
			return err
		},
		"of the runtime": func(_ context.Context, s *Tale) error {
			s.Count.Add(1 / s.Count.Get())
			return nil
		},
		"of a map": func(context.Context, *Tale) error {
			delete(map[any]int{1: 1}, any([]int{}))
			return nil
		},
	} {
		_, err := process(t, effectNode(t, f, dag.Policy{}), new(memory.Store), dispatcher.Options{}).Run(t.Context(), run, nil)
		if err == nil || !strings.Contains(err.Error(), " (panic_place_test.go:") {
			t.Errorf("%s: %v, want the file of this test", name, err)
		}
	}
}
