package badgerstore_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Whatever an observer does, as to panic or to end its goroutine, the store goes on, tells it of the next
// group and closes.
func TestObserverEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("mad") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told atomic.Int64
			o := small
			o.Observe = func(g checkpoint.Group) {
				told.Add(int64(g.Appends))
				end()
			}
			dir := t.TempDir()
			s, err := badgerstore.OpenUnsynced(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			l := acquire(t, s, 1)[0]
			var head checkpoint.Head
			for range 5 {
				if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if told.Load() != 5 {
				t.Errorf("the observer was told of %d appends, want 5", told.Load())
			}
			wantHead(t, open(t, dir), head)
		})
	}
}
