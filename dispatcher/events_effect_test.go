package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An event of an effect tells how far it is by that, live and in the log, whatever the words are of
// why.
func TestEventsTellHowFarAnEffectIs(t *testing.T) {
	b := dag.New[Tale]("effects")
	does := func(key string, out string, err error) {
		dag.Step(b, key, func(ctx context.Context, _ *Tale) error {
			_, done := dag.Effect(ctx, key, 1, func(context.Context, int) (string, error) { return out, err })
			if errors.Is(done, dag.ErrInDoubt) {
				return done
			}
			return nil
		})
	}
	does("kept", "not done: is what it returned", nil)
	does("declined", "", fmt.Errorf("%w: done, and its output is lost: so it says", dag.NotDone))
	does("large", strings.Repeat("x", 100), nil)
	does("doubt", "", errWeather)
	does("doubted", "", errWeather)
	var live []string
	tells := func(e dispatcher.Event) string { return fmt.Sprint(e.Kind, " ", e.ID, ": ", e.Phase) }
	of := func(e dispatcher.Event) bool {
		return e.Kind == dispatcher.EffectBegun || e.Kind == dispatcher.EffectEnded
	}
	d := process(t, frozen(t, b), &memory.Store{}, dispatcher.Options{
		Parallel: 1, Limits: dispatcher.Limits{ValueBytes: 90},
		Observe: func(e dispatcher.Event) {
			if of(e) {
				live = append(live, tells(e))
			} else if e.Phase != "" {
				t.Errorf("%s has the phase %q", e, e.Phase)
			}
		},
	})
	if res, err := d.Run(t.Context(), run, nil); res.Status != checkpoint.StatusFailed {
		t.Fatal(err)
	}
	for key, what := range map[string]dispatcher.Resolution{"doubt": dispatcher.NotHappened("looked"), "doubted": dispatcher.Happened("x")} {
		if err := d.Resolve(t.Context(), run, key, key, what); err != nil {
			t.Fatal(err)
		}
	}
	var read []string
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		if of(e) {
			read = append(read, tells(e))
		}
	}
	want := []string{
		"effect begun kept: begun", "effect begun declined: begun", "effect begun large: begun", "effect begun doubt: begun", "effect begun doubted: begun",
		"effect ended kept: ended", "effect ended declined: not done", "effect ended large: lost",
		"effect ended doubt: not done", "effect ended doubted: ended",
	}
	slices.Sort(want)
	slices.Sort(live)
	slices.Sort(read)
	if !slices.Equal(live, want) || !slices.Equal(read, want) {
		t.Errorf("live\n%q, read\n%q, want\n%q", live, read, want)
	}
}
