package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A dispatcher puts its graph before its first run begins, and not again: a large one takes a store
// longer than the run. If the store has no room for it nothing has begun, and the next run puts it.
func TestAGraphIsPutOnce(t *testing.T) {
	t.Parallel()
	var puts int
	store := &memory.Faulty{Fail: func(_ context.Context, w memory.Write) memory.Fault {
		if w.Method != "PutGraph" {
			return memory.None
		}
		if puts++; puts == 1 {
			return memory.Full
		}
		return memory.None
	}}
	g := chainOf(t, 3, func(context.Context, int, *Tale) error { return nil })
	d := callsDispatcher(t, g, store, dispatcher.Options{})
	if _, err := d.Start(t.Context(), run, nil); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Start on a store without room = %v, want ErrFull", err)
	}
	if _, err := store.Stat(t.Context(), run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the run that did not begin: %v, want ErrNotFound", err)
	}
	for _, id := range []string{run, "second", "third"} {
		res, err := d.Start(t.Context(), id, nil)
		completes(t, res, err)
	}
	if puts != 2 {
		t.Errorf("the graph was put %d times, want 2: in vain, and once", puts)
	}
	if kept, err := store.Graph(t.Context(), g.Digest()); err != nil || len(kept) == 0 {
		t.Errorf("the store has %d bytes of the graph, %v", len(kept), err)
	}
}
