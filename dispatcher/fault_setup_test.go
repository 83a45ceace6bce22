package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Code that a resume asks before anything runs, and that ends the goroutine, is told as what it is.
// Nothing has changed, and the next call goes on.
func TestGoexitBeforeARunGoesOn(t *testing.T) {
	quiet(t)
	armed := false
	exit := func() {
		if armed {
			runtime.Goexit()
		}
	}
	var words memory.Store
	migrateWords(t, &words)
	numbers := migrating(dispatcher.Migration{Name: "numbers", State: func(path string, old json.RawMessage) (json.RawMessage, error) {
		exit()
		return migrateToNumbers(path, old)
	}})

	var ended memory.Store
	if _, err := process(t, wordsGraph(t), &ended, dispatcher.Options{}).Start(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}

	var listed memory.Store
	b := dag.New[Tale]("list")
	each := dag.Each(b, "each", func(*Tale) []int { exit(); return []int{1, 2} }, func(ctx context.Context, _ *Tale, _ int) error {
		return nil
	})
	dag.Step(b, "end", func(context.Context, *Tale) error { return nil }, each)
	list := frozen(t, b)
	changeHeld(t, list, &listed, "each/2")

	var stale memory.Store
	b = dag.New[Tale]("stale")
	used := dag.Step(b, "uses", func(ctx context.Context, _ *Tale) error {
		return dag.Depends(ctx, dag.Dependency{Name: "price", Captured: time.Unix(0, 0), StaleAfter: 1, OnStale: dag.Revalidate})
	})
	dag.Step(b, "end", func(context.Context, *Tale) error { return nil }, used)
	prices := frozen(t, b)
	changeHeld(t, prices, &stale, "end")
	fresh := dispatcher.Options{Revalidate: func(context.Context, dag.Dependency) error { exit(); return nil }}

	for kind, c := range map[string]struct {
		store  *memory.Store
		resume func() error
	}{
		"migration": {&words, func() error {
			_, err := process(t, migrateNumbers(t), &words, numbers).Resume(t.Context(), run)
			return err
		}},
		"migration, behind a turn": {&ended, func() error {
			_, err := process(t, migrateNumbers(t), &ended, numbers).Turn(t.Context(), run, nil)
			return err
		}},
		"items": {&listed, func() error {
			_, err := process(t, list, &listed, dispatcher.Options{}).Resume(t.Context(), run)
			return err
		}},
		"revalidate": {&stale, func() error {
			_, err := process(t, prices, &stale, fresh).Resume(t.Context(), run)
			return err
		}},
	} {
		armed = true
		unchanged(t, c.store, run, func() {
			var fault *dispatcher.FaultError
			if err := c.resume(); !errors.As(err, &fault) || !strings.HasPrefix(kind, fault.Kind) || len(fault.Stack) == 0 {
				t.Errorf("%s: %v", kind, err)
			}
			if fault != nil && fault.Kind == "migration" && fault.Message != `migration "numbers": called runtime.Goexit` {
				t.Errorf("%s: the text %q does not name the migration", kind, fault.Message)
			}
		})
		armed = false
		if err := c.resume(); err != nil {
			t.Errorf("%s: the next call: %v", kind, err)
		}
	}
}

// A leaver ends its goroutine when it is to be said in JSON.
type leaver struct{}

func (leaver) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

// What a call asks on the caller's own goroutine ends that, as it would anywhere, and nothing else:
// the run is what it was, and nobody holds it.
func TestGoexitOfTheCaller(t *testing.T) {
	quiet(t)
	var store memory.Store
	d, ctx := valuesAsked(t, &store), t.Context()
	exits := func(*Tale) { runtime.Goexit() }
	for name, call := range map[string]func() error{
		"Edit":   func() error { return d.Edit(ctx, run, exits, dispatcher.EditOptions{}) },
		"EditOf": func() error { return dispatcher.EditOf(ctx, d, run, exits, dispatcher.EditOptions{}) },
		"Fork": func() error {
			_, err := d.Fork(ctx, run, "", dispatcher.ForkOptions[Tale]{Into: []string{"other"}, Edit: exits})
			return err
		},
		"Enqueue": func() error { return d.Enqueue(ctx, run, exits) },
		"Answer":  func() error { return d.Answer(ctx, run, "", leaver{}) },
		"Note":    func() error { return d.Note(ctx, run, "shop.note", leaver{}) },
		"Settings": func() error {
			_, err := d.Resume(ctx, run, dispatcher.Settings(leaver{}, "ann"))
			return err
		},
	} {
		unchanged(t, &store, run, func() {
			left, returned := make(chan struct{}), false
			go func() { // ends in the call
				defer close(left)
				_ = call()
				returned = true
			}()
			if <-left; returned {
				t.Errorf("%s returned", name)
			}
		})
	}
	if err := d.Edit(ctx, run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := store.Stat(ctx, "other"); err == nil {
		t.Error("there is a fork")
	}
}

// A quitter ends its goroutine when it is read from JSON.
type quitter struct{}

func (quitter) MarshalJSON() ([]byte, error) { return []byte(`""`), nil }
func (*quitter) UnmarshalJSON([]byte) error  { runtime.Goexit(); return nil }

// What decodes an answer is asked on the goroutine of who gives it, and ends that and nothing else:
// the question waits as before.
func TestGoexitOfWhoAnswers(t *testing.T) {
	quiet(t)
	b := dag.New[Tale]("quit")
	dag.Step(b, "ask", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[quitter](ctx, "k", "which?")
		return err
	})
	for name, answer := range map[string]func(d *dispatcher.Dispatcher[Tale], id string) error{
		"Answer": func(d *dispatcher.Dispatcher[Tale], _ string) error {
			return d.Answer(t.Context(), run, "", "this")
		},
		"Answers": func(d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Answers(t.Context(), run, map[string]any{id: "this"})
		},
	} {
		var store memory.Store
		d := process(t, frozen(t, b), &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "ask")
		unchanged(t, &store, run, func() {
			left, returned := make(chan struct{}), false
			go func() { // ends in the call
				defer close(left)
				_ = answer(d, res.Interrupts[0].ID)
				returned = true
			}()
			if <-left; returned {
				t.Errorf("%s returned", name)
			}
		})
		if err := d.Skip(t.Context(), run, ""); err != nil {
			t.Errorf("%s: skipping it behind that: %v", name, err)
		}
	}
}
