package dispatcher_test

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// No two visits of two runs have the same key, whatever their ids and paths are: a key is
// what makes a thing happen once.
func TestCallsKeysOfOddRuns(t *testing.T) {
	var at string
	keys := map[string]string{}
	b := dag.New[Tale]("inner")
	dag.Step(b, "c", func(ctx context.Context, _ *Tale) error {
		if was, ok := keys[dag.Key(ctx)]; ok {
			t.Errorf("%s and %s have the key %s", was, at, dag.Key(ctx))
		}
		keys[dag.Key(ctx)] = at
		return nil
	})
	inner := frozen(t, b)
	b = dag.New[Tale]("outer")
	dag.Embed(b, "b", inner, func(*Tale, *Tale) {}, func(*Tale, *Tale) {})
	outer := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	alone := process(t, inner, new(memory.Store), dispatcher.Options{})
	for _, id := range []string{"a", "a/b", "a/b/b", "a%2Fb", "a%", "a%25", "/", "%"} {
		at = "outer " + id
		res, err := outer.Run(t.Context(), id, nil)
		completes(t, res, err)
		at = "alone " + id
		res, err = alone.Run(t.Context(), id, nil)
		completes(t, res, err)
	}
	if keys["a/b/c"] != "outer a" || keys["a%2Fb/c"] != "alone a/b" {
		t.Errorf("the keys are %v", keys)
	}
}
