package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A headcount is of the bodies that are at work at once.
type headcount struct {
	now, most atomic.Int32
	deaf      atomic.Bool // until another run is counted, they ignore their contexts for an hour
}

// works is a body that is counted. It heeds its context for a second, unless it is deaf.
func (s *headcount) works(ctx context.Context, _ int) error {
	k := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); k > m && !s.most.CompareAndSwap(m, k); m = s.most.Load() {
	}
	if s.deaf.Load() {
		lasts(time.Hour)
		return nil
	}
	return heeds(ctx, time.Second)
}

// allows runs another run, and checks how many of its bodies are at work at once.
func (s *headcount) allows(t *testing.T, d *dispatcher.Dispatcher[Tale], id string, want int32) {
	t.Helper()
	s.deaf.Store(false)
	s.most.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := d.Run(ctx, id, nil); err != nil {
		t.Errorf("the run %q: %v", id, err)
	}
	if got := s.most.Load(); got != want {
		t.Errorf("the run %q: %d bodies were at work at once, want %d", id, got, want)
	}
}

// goesOn runs to its end what a call has left.
func (s *headcount) goesOn(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := d.Run(ctx, run, nil)
	completes(t, res, err)
}

// slots is how many bodies may be at work at once; a fan is twice as wide.
const slots = 3

// A call that gives up on an observer gives back all places of Options.Parallel that it has: those
// of visits that have returned at once, those of bodies that still run when they return, and none
// twice. It names the observer once, which is not called beside itself.
func TestParallelBehindAnObserverThatHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, after := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond} {
			for n := int32(1); n <= 2*slots; n++ {
				t.Run(fmt.Sprintf("deaf=%t/%v/%d", deaf, after, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { hangAtVisit(t, deaf, after, n) })
				})
			}
		}
	}
}

// hangAtVisit has the observer hang where the n-th visit starts.
func hangAtVisit(t *testing.T, deaf bool, after time.Duration, n int32) {
	var s headcount
	s.deaf.Store(deaf)
	var started, inside atomic.Int32
	free := make(chan struct{})
	g := crewFan(t, 2*slots, s.works)
	d := process(t, g, new(memory.Store), dispatcher.Options{Parallel: slots, Observe: func(e dispatcher.Event) {
		if e.Run != run {
			return
		}
		if inside.Add(1) > 1 {
			t.Errorf("the observer is called beside itself: %v", e.Kind)
		}
		defer inside.Add(-1)
		if e.Kind == dispatcher.VisitStarted && started.Add(1) == n {
			<-free
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	end := time.Now().Add(after)
	res, err := d.Run(ctx, run, nil)
	if n <= slots || !deaf && after > time.Second {
		stuck(t, res, err, end, "Options.Observe")
	}
	if !deaf {
		s.allows(t, d, "beside it", slots)
	}
	close(free)
	lasts(2 * time.Hour)
	s.allows(t, d, "behind it", slots)
	s.goesOn(t, d)
}

// So does one that gives up on the store, whichever append hangs.
func TestParallelBehindAnAppendThatHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		n := 1
		for more := true; more && !t.Failed(); n++ {
			t.Run(fmt.Sprintf("deaf=%t/%d", deaf, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { more = hangAtAppend(t, deaf, n) })
			})
		}
		if n < 4 {
			t.Errorf("deaf=%t: only %d appends were tried", deaf, n-2)
		}
	}
}

// hangAtAppend has the n-th append hang. It reports whether there was one.
func hangAtAppend(t *testing.T, deaf bool, n int) bool {
	var s headcount
	s.deaf.Store(deaf)
	free := make(chan struct{})
	var hang atomic.Bool
	store := &tampered{Store: new(memory.Store), before: func(_ context.Context, c call) error {
		if c.method == "Append" && c.n == n {
			hang.Store(true)
			<-free
		}
		return nil
	}}
	staggered := func(ctx context.Context, i int) error { // the next ones return while the append of the first one hangs
		lasts(time.Duration(i) * 100 * time.Millisecond)
		return s.works(ctx, i)
	}
	d := process(t, crewFan(t, 2*slots, staggered), store, dispatcher.Options{Parallel: slots})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	end := time.Now().Add(2 * time.Second)
	res, err := d.Run(ctx, run, nil)
	if !hang.Load() {
		close(free)
		lasts(2 * time.Hour)
		s.allows(t, d, "behind it", slots)
		s.goesOn(t, d)
		return false
	}
	stuck(t, res, err, end, "append")
	if !deaf {
		s.allows(t, d, "beside it", slots)
	}
	close(free)
	lasts(2 * time.Hour)
	s.allows(t, d, "behind it", slots)
	s.goesOn(t, d)
	return true
}

// A call whose owner is held up between two calls, by the clock, returns without it; the owner
// gives the places back when it comes back, or when its goroutine ends there.
func TestParallelBehindAClockThatHangs(t *testing.T) {
	for name, comesBack := range map[string]func(){"returns": func() {}, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s headcount
				var failed atomic.Bool
				free := make(chan struct{})
				o := dispatcher.WithNow(dispatcher.Options{Parallel: slots}, func() time.Time {
					if failed.CompareAndSwap(true, false) {
						<-free
						comesBack()
					}
					return time.Now()
				})
				var bodies atomic.Int32
				b := dag.New[Tale]("retried")
				for i := range 2 * slots {
					dag.Step(b, fmt.Sprint("side", i), func(ctx context.Context, _ *Tale) error {
						if err := s.works(ctx, i); err != nil || bodies.Add(1) > 1 {
							return err
						}
						failed.Store(true)
						return errWeather
					}).With(dag.Policy{Attempts: 2})
				}
				d := process(t, frozen(t, b), new(memory.Store), o)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				res, err := d.Run(ctx, run, nil)
				if !errors.Is(err, dispatcher.ErrStuck) {
					t.Errorf("the call returned %+v, %v, want ErrStuck", res, err)
				}
				close(free)
				lasts(2 * time.Hour)
				s.allows(t, d, "behind it", slots)
				s.goesOn(t, d)
			})
		})
	}
}

// A body that ignores its context keeps its place while it runs, and gives it back when it returns,
// alone or beside others.
func TestParallelBehindABodyThatIsAbandoned(t *testing.T) {
	for _, width := range []int{1, 2, slots, 2 * slots} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s headcount
				s.deaf.Store(true)
				deaf := min(width, slots)
				d := process(t, crewFan(t, width, s.works), new(memory.Store), dispatcher.Options{Parallel: deaf})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				res, err := d.Run(ctx, run, nil)
				if err == nil || len(res.Abandoned) != deaf {
					t.Errorf("the call returned %v and abandoned %q, want %d bodies", err, res.Abandoned, deaf)
				}
				lasts(2 * time.Hour)
				s.allows(t, d, "behind it", int32(deaf))
				s.goesOn(t, d)
			})
		})
	}
}
