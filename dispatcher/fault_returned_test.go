package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// textOfErrors is what those errors do in their text that user code returns to the dispatcher, but
// for nodes; nil is nothing.
type textOfErrors struct{ err error }

// An unsaidItem is an item, or a value of a cell, whose JSON is an error.
type unsaidItem struct{ why *textOfErrors }

func (u unsaidItem) MarshalJSON() ([]byte, error) {
	if u.why != nil && u.why.err != nil {
		return nil, u.why.err
	}
	return []byte("{}"), nil
}

func (u *unsaidItem) UnmarshalJSON([]byte) error { return nil }

// Merge makes a value that can't be said of two that can.
func (u unsaidItem) Merge(unsaidItem) unsaidItem { return unsaidItem{textChecked} }

// textChecked is for methods of the state, which can't be given anything.
var textChecked = new(textOfErrors)

// An uncheckedTale is a state whose Check returns an error.
type uncheckedTale struct {
	Count state.Sum[int]
	Sign  state.Value[unsaidItem]
	Best  state.Fold[unsaidItem]
	Signs state.Map[unsaidKey, int]
}

// An unsaidKey is a key whose text is an error.
type unsaidKey struct{ why *textOfErrors }

func (u unsaidKey) MarshalText() ([]byte, error) { return nil, u.why.err }

func (u *unsaidKey) UnmarshalText([]byte) error { return nil }

func (s *uncheckedTale) Check() error {
	if s.Count.Get() > 0 {
		return textChecked.err
	}
	return nil
}

// textPlaces are where user code returns an error that is no node's, by what the code is called if
// it hangs. Each returns a call that comes to it.
var textPlaces = map[string]func(t *testing.T, e *textOfErrors) func(context.Context) (warnings []string, err error){
	"Hooks.OnStart": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textLine(t, dispatcher.Options{Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { return e.err }}})
	},
	"Hooks.OnEnd": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textLine(t, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error { return e.err }}})
	},
	"Gates.If for a": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textLine(t, gated(dispatcher.Gates{If: func(dispatcher.Action) (bool, error) { return false, e.err }}))
	},
	"Options.Revalidate": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		store := new(memory.Store)
		b := dag.New[Tale]("stale")
		used := dag.Step(b, "uses", func(ctx context.Context, _ *Tale) error {
			return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
		})
		dag.Step(b, "end", nothing, used)
		g := frozen(t, b)
		changeHeld(t, g, store, "end")
		return textResumed(process(t, g, store, dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error { return e.err }}))
	},
	"a Migration": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		store := new(memory.Store)
		migrateWords(t, store)
		return textResumed(process(t, migrateNumbers(t), store, migrating(dispatcher.Migration{
			Name: "numbers", State: func(string, json.RawMessage) (json.RawMessage, error) { return nil, e.err },
		})))
	},
	"the items of each": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textResumed(process(t, textItems(t, e), new(memory.Store), dispatcher.Options{}))
	},
	"the items of an Each": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		store, is := new(memory.Store), e.err
		e.err = nil
		g := textItems(t, e)
		changeHeld(t, g, store, "each/2")
		e.err = is
		return textResumed(process(t, g, store, dispatcher.Options{}))
	},
	"the merge of superstep 1": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textUnchecked(t, e, func(s *uncheckedTale) { s.Count.Add(1) })
	},
	"writes": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textUnchecked(t, e, func(s *uncheckedTale) { s.Sign.Set(unsaidItem{e}) })
	},
	"writes a key": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textUnchecked(t, e, func(s *uncheckedTale) { s.Signs.Put(unsaidKey{e}, 1) })
	},
	"the merge of superstep 2": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		return textUnchecked(t, e, func(s *uncheckedTale) { s.Best.Merge(unsaidItem{}) })
	},
	"the Check of a state": func(t *testing.T, e *textOfErrors) func(context.Context) ([]string, error) {
		store := new(memory.Store)
		g := textUncheckedGraph(t, func(s *uncheckedTale) { s.Count.Add(1) })
		changeHeld(t, g, store, "end")
		textChecked.err = e.err
		t.Cleanup(func() { textChecked.err = nil })
		return textResumed(process(t, g, store, dispatcher.Options{}))
	},
}

func textLine(t *testing.T, o dispatcher.Options) func(context.Context) ([]string, error) {
	return textResumed(process(t, wordsGraph(t), new(memory.Store), o))
}

func textItems(t *testing.T, e *textOfErrors) *dag.Graph[Tale] {
	b := dag.New[Tale]("list")
	each := dag.Each(b, "each", func(*Tale) []unsaidItem { return []unsaidItem{{e}, {e}} }, func(context.Context, *Tale, unsaidItem) error { return nil })
	dag.Step(b, "end", nothing, each)
	return frozen(t, b)
}

func textUncheckedGraph(t *testing.T, writes func(*uncheckedTale)) *dag.Graph[uncheckedTale] {
	b := dag.New[uncheckedTale]("unchecked")
	body := func(_ context.Context, s *uncheckedTale) error { writes(s); return nil }
	dag.Step(b, "end", body, dag.Step(b, "writes", body))
	return frozen(t, b)
}

func textUnchecked(t *testing.T, e *textOfErrors, writes func(*uncheckedTale)) func(context.Context) ([]string, error) {
	textChecked.err = e.err
	t.Cleanup(func() { textChecked.err = nil })
	return textResumed(process(t, textUncheckedGraph(t, writes), new(memory.Store), dispatcher.Options{}))
}

func textResumed[S any](d *dispatcher.Dispatcher[S]) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		res, err := d.Run(ctx, run, nil)
		return append(res.Warnings, res.Abandoned...), err
	}
}

// An error that user code beside the nodes returns is told as one of that code, whatever its own
// methods do: its text may panic with what has no text either, or end the goroutine, and nobody may
// be able to look into it.
func TestTextOfReturnedErrorsBreaks(t *testing.T) {
	for text, err := range map[string]error{
		"itself":  brokenError{func(e error) string { panic(e) }},
		"exits":   brokenError{func(error) string { runtime.Goexit(); return "" }},
		"nothing": (*fs.PathError)(nil), // whose Unwrap reads a field
	} {
		for place, at := range textPlaces {
			t.Run(text+"/"+place, func(t *testing.T) {
				quiet(t)
				warnings, err := at(t, &textOfErrors{err})(t.Context())
				switch {
				case place == "Hooks.OnEnd":
					if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], place) {
						t.Errorf("the call warns of %q, and returned %v", warnings, err)
					}
					return
				case err == nil || errors.Is(err, fs.ErrNotExist):
					t.Fatalf("the call returned %v", err)
				}
				_ = fmt.Sprint(err) // which would end the test
				var fault *dispatcher.FaultError
				var stale *dispatcher.StaleError
				var failed *dispatcher.NodeError
				if errors.As(err, &fault) && fault.Kind == "observer" || fault == nil && !errors.As(err, &stale) && !errors.As(err, &failed) && !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Errorf("the call returned %v", err)
				}
			})
		}
	}
}

// A text that hangs is code that hangs, under the name that the code has.
func TestTextOfReturnedErrorsHangs(t *testing.T) {
	for place, at := range textPlaces {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call := at(t, &textOfErrors{brokenError{func(error) string { lasts(time.Hour); return "late" }}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				abandoned, err := call(ctx)
				if !slices.Contains(abandoned, strings.TrimSuffix(place, " a key")) {
					t.Errorf("abandoned: %q, want %s: %v", abandoned, place, err)
				}
				lasts(2 * time.Hour)
			})
		})
	}
}

// What a Turn or an Edit writes may be merged to a value that can't be said: who called can look
// into the error.
func TestTextOfErrorsOfWhatIsWrittenBesideNodes(t *testing.T) {
	writes := func(s *uncheckedTale) { s.Best.Merge(unsaidItem{}) }
	d := process(t, textUncheckedGraph(t, writes), new(memory.Store), dispatcher.Options{})
	if _, err := d.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	textChecked.err = (*fs.PathError)(nil) // whose Unwrap reads a field
	t.Cleanup(func() { textChecked.err = nil })
	if _, err := d.Turn(t.Context(), run, writes); err == nil || errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("the turn returned %v", err)
	}
	if err := d.Edit(t.Context(), run, writes, dispatcher.EditOptions{}); err == nil || errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("the edit returned %v", err)
	}
}
