package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// leftDoubts is a run whose visits pay and ship have failed, each with its effects in doubt.
func leftDoubts(t *testing.T, store checkpoint.Store) *dag.Graph[Tale] {
	t.Helper()
	b := dag.New[Tale]("doubts")
	does := func(keys ...string) part {
		return func(ctx context.Context, s *Tale) error {
			var errs []error
			for _, key := range keys {
				said, err := dag.Effect(ctx, key, 5, func(context.Context, int) (string, error) { return "", errDoubtReset })
				errs = append(errs, err)
				s.Notes.Put(key, said)
			}
			return errors.Join(errs...)
		}
	}
	dag.Step(b, "pay", does("charge", "letter"))
	dag.Step(b, "ship", does("charge"))
	g := frozen(t, b)
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay", "ship")
	return g
}

// Who says what came of one effect, while others do so of other ones, is told of his own.
func TestResolveBesideOthers(t *testing.T) {
	var inner memory.Store
	g := leftDoubts(t, &inner)
	d := process(t, g, &inner, dispatcher.Options{})
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if k.method != "Post" || k.n > 1 {
			return nil
		}
		return errors.Join(
			d.Resolve(ctx, run, "pay", "letter", dispatcher.NotHappened("not sent")),
			d.Resolve(ctx, run, "ship", "charge", dispatcher.NotHappened("not charged")))
	}}
	by := process(t, g, store, dispatcher.Options{})
	if err := by.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("mine")); err != nil {
		t.Error(err)
	}
	if o, err := d.Open(t.Context(), run); err != nil || len(o.InDoubt()) > 0 {
		t.Errorf("in doubt are still %+v, %v", o.InDoubt(), err)
	}
}

// Of two who say what came of one effect the second is told that it is not what he has said that
// counts, unless the two have said the same: also if the first has said it since the second looked,
// and whether that is in the log or waits for who has the run.
func TestResolveBesideTheSame(t *testing.T) {
	const ada, bob = "Ada", "Bob"
	type says struct {
		what dispatcher.Resolution
		by   string
	}
	mine := says{dispatcher.Happened("receipt"), ada}
	for name, c := range map[string]struct {
		theirs, mine says
		refused      bool
	}{
		"the same":        {mine, mine, false},
		"another output":  {says{dispatcher.Happened("other"), ada}, mine, true},
		"another author":  {says{dispatcher.Happened("receipt"), bob}, mine, true},
		"that it did not": {says{dispatcher.NotHappened("no trace"), ada}, mine, true},
		"another why it did not": {
			says{dispatcher.NotHappened("no trace"), ada}, says{dispatcher.NotHappened("refused"), ada}, true},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, and it waits: %t", name, waits), func(t *testing.T) {
				var inner memory.Store
				g := leftDoubts(t, &inner)
				d := process(t, g, &inner, dispatcher.Options{})
				store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
					if k.method != "Post" || k.n > 1 {
						return nil
					}
					if waits {
						if _, err := inner.Acquire(ctx, run, "somebody"); err != nil {
							t.Error(err)
						}
					}
					return d.Resolve(ctx, run, "pay", "charge", c.theirs.what, dispatcher.Author(c.theirs.by))
				}}
				by := process(t, g, store, dispatcher.Options{})
				err := by.Resolve(t.Context(), run, "pay", "charge", c.mine.what, dispatcher.Author(c.mine.by))
				var refused *dispatcher.ResolutionError
				if is := errors.As(err, &refused) && errors.Is(err, dispatcher.ErrNotInDoubt); is != c.refused || !is && err != nil {
					t.Errorf("the second is told %v", err)
				}
			})
		}
	}
}

// What the store says of an append that drains what was said is what its author is told, if it is
// not that somebody else has the run.
func TestResolveOverAStoreThatFails(t *testing.T) {
	var inner memory.Store
	g := leftDoubts(t, &inner)
	store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
		if k.method == "Append" {
			return errWeather
		}
		return nil
	}}
	err := process(t, g, store, dispatcher.Options{}).Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("x"))
	if !errors.Is(err, errWeather) {
		t.Errorf("Resolve returned %v, want what the store says", err)
	}
}

// A message counts if it is of this doubt, in this turn, and says what can be; whatever else it is,
// it is drained and changes nothing. Before attempts were part of it none said which one it is of.
func TestResolutionsThatWerePosted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]any)
		counts bool
	}{
		"of this one":           {func(map[string]any) {}, true},
		"without an attempt":    {func(m map[string]any) { delete(m, "attempt") }, true},
		"of another attempt":    {func(m map[string]any) { m["attempt"] = 2 }, false},
		"of another generation": {func(m map[string]any) { m["generation"] = 1 }, false},
		"of a doubt anew":       {func(m map[string]any) { m["anew"] = 3 }, false},
		"of another turn":       {func(m map[string]any) { m["turn"] = 2 }, false},
		"of another instant":    {func(m map[string]any) { m["begun"] = "2001-02-03T04:05:06Z" }, false},
		"of another key":        {func(m map[string]any) { m["key"] = "nothing" }, false},
		"of another type":       {func(m map[string]any) { m["happened"] = 5 }, false},
		"saying nothing":        {func(m map[string]any) { delete(m, "happened") }, false},
		"saying both":           {func(m map[string]any) { m["not_happened"] = "no trace" }, false},
		"no message":            {func(m map[string]any) { m["turn"] = "one" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			side := doubtSide{fails: 1}
			d := doubtful(t, &side, &store)
			said := map[string]any{"turn": 1, "path": "pay", "key": "charge", "happened": "by hand"}
			for _, e := range readLog(t, &store) {
				if e.Kind != checkpoint.EffectBegun {
					continue
				}
				var begun checkpoint.BegunEffect
				if err := json.Unmarshal(e.Data, &begun); err != nil {
					t.Fatal(err)
				}
				said["begun"], said["attempt"] = begun.At, e.Attempt
			}
			c.change(said)
			data, err := json.Marshal(said)
			if err != nil {
				t.Fatal(err)
			}
			p := checkpoint.Post{ID: "by hand", Kind: checkpoint.PostResolution, Data: data}
			if err := store.Post(t.Context(), run, p); err != nil {
				t.Fatal(err)
			}
			res, err := d.Resume(t.Context(), run)
			if nothingIsPosted(t, &store); c.counts {
				if completes(t, res, err); res.State.Word.Get() != "by hand" {
					t.Errorf("the state has %q", res.State.Word.Get())
				}
				return
			}
			rests(t, res, err, checkpoint.StatusFailed, "pay")
		})
	}
}
