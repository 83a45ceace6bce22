package badgerstore_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Whatever an observer does, as to panic or to end its goroutine, the store goes on, tells it of
// the next group and closes.
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

// An append that is refused for want of room is told of as one that failed: whoever counts failures
// hears of a full disk.
func TestRefusedForWantOfRoomIsObserved(t *testing.T) {
	t.Parallel()
	var groups []checkpoint.Group
	o := small
	o.Observe = func(g checkpoint.Group) { groups = append(groups, g) } // by one goroutine, which Close waits for
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	l := acquire(t, s, 1)[0]
	room := int64(0)
	s.FreeWith(func() (int64, error) { return room, nil })
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); !errors.Is(err, checkpoint.ErrFull) {
		t.Fatalf("Append without room = %v, want ErrFull", err)
	}
	room = 1 << 40
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(groups) != 1 || groups[0].Appends != 1 || !errors.Is(groups[0].Err, checkpoint.ErrFull) {
		t.Errorf("the observer was told of %+v, want one group that failed with ErrFull", groups)
	}
}
