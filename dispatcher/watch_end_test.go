package dispatcher_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A watchCounter counts the watches that have not ended.
type watchCounter struct {
	memory.Store
	begun, open atomic.Int64
}

func (s *watchCounter) Watch(run string) (<-chan struct{}, func()) {
	told, stop := s.Store.Watch(run)
	s.begun.Add(1)
	s.open.Add(1)
	return told, func() {
		stop()
		s.open.Add(-1)
	}
}

// A call leaves no watch of its store behind, however it ends: a store keeps each of them until it
// is ended.
func TestCallsEndTheirWatches(t *testing.T) {
	var store watchCounter
	b := dag.New[Tale]("watched")
	first := dag.Step(b, "first", func(context.Context, *Tale) error { return nil })
	dag.Step(b, "second", func(context.Context, *Tale) error { return errors.New("no") }, first)
	d, err := dispatcher.New(frozen(t, b), &store, dispatcher.Options{InterruptAfter: []string{"first"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []func() error{
		func() error { _, err := d.Run(t.Context(), run, nil); return err },
		func() error { _, err := d.Resume(t.Context(), run); return err },
	} {
		was := store.begun.Load()
		if err := call(); err == nil {
			t.Error("the run came to its end")
		}
		if store.begun.Load() == was || store.open.Load() != 0 {
			t.Errorf("%d watches were begun, and %d have not ended", store.begun.Load()-was, store.open.Load())
		}
	}
}
