package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A supervisor and its dispatchers have one store: whoever has none or another is refused,
// by New and by each submission, and nothing is in either store then.
func TestSupersOtherStoreIsRefused(t *testing.T) {
	var store, other memory.Store
	g := line(t, "line", 1, nil)
	same := process(t, g, &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{}, same)
	for name, has := range map[string]checkpoint.Store{"another": &other, "none": nil, "a wrapped one": unlistable{&store}} {
		d := process(t, g, has, dispatcher.Options{})
		var option *supervisor.OptionError
		if _, err := supervisor.New(&store, supervisor.Options{}, d); !errors.As(err, &option) || option.Option != "runners" {
			t.Errorf("%s: New returns %v", name, err)
		}
		var refused *supervisor.RunError
		_, err := supervisor.Submit(t.Context(), s, d, "", "run", nil)
		if !errors.As(err, &refused) || !errors.Is(err, supervisor.ErrOtherStore) {
			t.Errorf("%s: Submit returns %v", name, err)
		}
		_, err = supervisor.Go(t.Context(), s, d, "", "run",
			func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				t.Error("the call was made")
				return nil, errLost
			})
		if !errors.Is(err, supervisor.ErrOtherStore) {
			t.Errorf("%s: Go returns %v", name, err)
		}
	}
	if n := len(statuses(t, &store)) + len(statuses(t, &other)); n != 0 {
		t.Errorf("%d runs were begun", n)
	}
	completes(t, submit(t, s, same, "", "run"))
}

// odd is a store of a type that Go can't compare.
type odd struct {
	checkpoint.Store
	_ []int
}

// Stores that can't be compared are taken at their word, without a panic.
func TestSupersStoreThatCannotBeCompared(t *testing.T) {
	store := odd{Store: new(memory.Store)}
	d := process(t, line(t, "line", 1, nil), store, dispatcher.Options{})
	s := supervise(t, store, supervisor.Options{}, d)
	completes(t, submit(t, s, d, "", "run"))
}

// What is nil or empty is a typed error of the call that was given it, and no panic.
func TestSupersNilAndEmptyAreTyped(t *testing.T) {
	var store memory.Store
	var none *dispatcher.Dispatcher[parcel]
	var nowhere *supervisor.Supervisor
	var noctx context.Context
	var never *supervisor.Task[parcel]
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{}, d)
	task := submit(t, s, d, "", "run")
	completes(t, task)
	call := func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) { return nil, errLost }
	for name, f := range map[string]func() error{
		"New(typed nil runner)": func() error { _, err := supervisor.New(&store, supervisor.Options{}, none); return err },
		"New(nil runner)":       func() error { _, err := supervisor.New(&store, supervisor.Options{}, nil); return err },
		"New(typed nil store)":  func() error { _, err := supervisor.New((*memory.Store)(nil), supervisor.Options{}); return err },
		"Submit(nil dispatcher)": func() error {
			_, err := supervisor.Submit(t.Context(), s, none, "", "x", nil)
			return err
		},
		"Submit(nil ctx)":        func() error { _, err := supervisor.Submit(noctx, s, d, "", "x", nil); return err },
		"Submit(nil supervisor)": func() error { _, err := supervisor.Submit(t.Context(), nowhere, d, "", "x", nil); return err },
		"Go(nil dispatcher)":     func() error { _, err := supervisor.Go(t.Context(), s, none, "", "x", call); return err },
		"Go(nil call)":           func() error { _, err := supervisor.Go(t.Context(), s, d, "", "x", nil); return err },
		"Continue(nil ctx)":      func() error { _, err := s.Continue(noctx, "", "run"); return err },
		"Recover(nil ctx)":       func() error { _, err := s.Recover(noctx); return err },
		"Drain(nil ctx)":         func() error { _, err := s.Drain(noctx); return err },
		"Wait(nil ctx)":          func() error { _, err := task.Wait(noctx); return err },
		"Wait of a nil Task":     func() error { _, err := never.Wait(t.Context()); return err },
		"Wait of the zero Task":  func() error { _, err := new(supervisor.Task[parcel]).Wait(noctx); return err },
		"Submit(zero Supervisor)": func() error {
			_, err := supervisor.Submit(t.Context(), new(supervisor.Supervisor), d, "", "x", nil)
			return err
		},
	} {
		var option *supervisor.OptionError
		if err := f(); !errors.As(err, &option) || !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s returns %v, want an OptionError", name, err)
		}
	}
	<-never.Done() // nobody waits for ever
	if never.Run() != "" || never.Withdraw() {
		t.Error("a nil Task is of a run, or was withdrawn")
	}
	for name, f := range map[string]func() error{
		"Submit":   func() error { _, err := supervisor.Submit(t.Context(), s, d, "", "", nil); return err },
		"Go":       func() error { _, err := supervisor.Go(t.Context(), s, d, "", "", call); return err },
		"Continue": func() error { _, err := s.Continue(t.Context(), "", ""); return err },
	} {
		if err := f(); !errors.Is(err, checkpoint.ErrRunID) || strings.Contains(err.Error(), "checkpoint: ") {
			t.Errorf("%s of an empty run id returns %v", name, err)
		}
	}
	completes(t, submit(t, s, d, "", "after")) // Drain(nil) did not drain
}
