package supervisor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A counting store counts how often it is asked for messages.
type counting struct {
	*memory.Store
	posts atomic.Int64
}

func (s *counting) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	s.posts.Add(1)
	return s.Store.Posts(ctx, run)
}

// Behind a run that nobody has joined the supervisor looks for no input: who enqueues some behind
// it submits it again, and that is a run of its own.
func TestACompletedRunThatNobodyJoinedIsNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: new(memory.Store)}
		d := process(t, line(t, "line", 3, nil), store, dispatcher.Options{})
		if _, err := d.Run(t.Context(), "by itself", nil); err != nil {
			t.Fatal(err)
		}
		alone := store.posts.Swap(0)
		s := supervise(t, store, supervisor.Options{}, d)
		completes(t, submit(t, s, d, "", "run"))
		synctest.Wait()
		if got := store.posts.Load(); got != alone {
			t.Errorf("the store is asked %d times what was posted, and %d times by the dispatcher alone", got, alone)
		}
	})
}
