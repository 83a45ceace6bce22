package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
)

// held is a supervisor with a hold, and one run that waits.
func held(t *testing.T) *Supervisor {
	t.Helper()
	s, err := New(new(memory.Store), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.push(&ticket{run: "a", key: "a", done: make(chan struct{})})
	s.noRoom(&ticket{})
	return s
}

// A timer of a hold that has ended, and that fires late, leaves the next hold as it is.
func TestATimerThatFiresLateTriesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := held(t)
		late := s.hold.round
		s.mu.Lock()
		s.lift()
		s.noRoom(&ticket{})
		s.mu.Unlock()
		if begun := s.tryStore(late); begun != nil || s.hold.tries != nil || s.hold.wait == 0 || s.queue.size != 1 {
			t.Errorf("it has %d runs begin, and the hold is %+v", len(begun), s.hold)
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A Drain stops the timer of a hold, so that nothing keeps the supervisor.
func TestDrainStopsTheTimerOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := held(t)
		timer := s.hold.timer
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if timer.Stop() {
			t.Error("it runs on")
		}
		<-time.After(time.Minute)
	})
}
