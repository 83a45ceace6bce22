package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eventsSeen collects what an observer is told.
type eventsSeen struct {
	mu  sync.Mutex
	all []dispatcher.Event
}

func (s *eventsSeen) observe(e dispatcher.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

// of returns the events of these kinds, of all kinds if none is named.
func (s *eventsSeen) of(kinds ...dispatcher.EventKind) []dispatcher.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []dispatcher.Event
	for _, e := range s.all {
		if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
			some = append(some, e)
		}
	}
	return some
}

// eventsTold returns the texts of events.
func eventsTold(events []dispatcher.Event) []string {
	var told []string
	for _, e := range events {
		told = append(told, e.String())
	}
	return told
}

// An observer is told what a visit emits in order, before it is told of its end, attempt by
// attempt; without a store too.
func TestObserverSeesEmittedBeforeTheEnd(t *testing.T) {
	for name, store := range map[string]checkpoint.Store{"memory": new(memory.Store), "none": nil} {
		t.Run(name, func(t *testing.T) {
			var seen eventsSeen
			b := dag.New[Tale]("talkative")
			emit := func(ctx context.Context, _ *Tale) error {
				for i := range 3 {
					if err := dag.Emit(ctx, "line", fmt.Sprint(visitPath(ctx), i)); err != nil {
						return err
					}
				}
				if visitPath(ctx) == "two" && dag.Attempt(ctx) == 1 {
					return errWeather
				}
				return nil
			}
			one := dag.Step(b, "one", emit)
			two := dag.Step(b, "two", emit, one).With(dag.Policy{Attempts: 2})
			three := dag.Step(b, "three", emit, one)
			dag.Step(b, "four", emit, two, three)
			res, err := process(t, frozen(t, b), store, dispatcher.Options{Observe: seen.observe}).Start(t.Context(), run, nil)
			completes(t, res, err)
			for path, want := range map[string]string{
				"one": "started 0 1 2 done", "two": "started 0 1 2 failed started 0 1 2 done",
				"three": "started 0 1 2 done", "four": "started 0 1 2 done",
			} {
				var got []string
				for _, e := range seen.of() {
					switch {
					case e.Path != path:
					case e.Kind == dispatcher.VisitStarted:
						got = append(got, "started")
					case e.Kind == dispatcher.Emitted:
						got = append(got, strings.Trim(strings.TrimPrefix(string(e.Value), `"`+path), `"`))
						if e.Name != "line" || e.Node != path || !e.Live || e.Step == 0 || e.Run != run || e.At.IsZero() {
							t.Errorf("emitted %+v", e)
						}
					case e.Kind == dispatcher.AttemptFailed:
						got = append(got, "failed")
					case e.Kind == dispatcher.VisitDone:
						got = append(got, "done")
					}
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: %s, want %s", path, strings.Join(got, " "), want)
				}
			}
		})
	}
}

// Values may be emitted from many goroutines of a node at once; an observer is told of all
// of them, and each goroutine's are in order.
func TestEmitFromManyGoroutines(t *testing.T) {
	var seen eventsSeen
	const writers, each = 8, 50
	d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					if err := dag.Emit(ctx, fmt.Sprint("writer ", w), i); err != nil {
						t.Errorf("Emit = %v", err)
					}
				}
			})
		}
		all.Wait()
		return nil
	}), new(memory.Store), dispatcher.Options{Observe: seen.observe})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	next := map[string]int{}
	for _, e := range seen.of(dispatcher.Emitted) {
		if string(e.Value) != fmt.Sprint(next[e.Name]) {
			t.Fatalf("%s emitted %s, want %d", e.Name, e.Value, next[e.Name])
		}
		next[e.Name]++
	}
	if len(next) != writers || next["writer 0"] != each {
		t.Errorf("the observer saw %v", next)
	}
}

// What a node emits too much of is dropped for the observer, who is told how much.
func TestEmitMoreThanIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		values int
		size   int
		kept   int
	}{
		"values": {1500, 1, 1024},
		"bytes":  {6, 1 << 20, 3}, // with their quotes four are more than is kept
	} {
		t.Run(name, func(t *testing.T) {
			var seen eventsSeen
			d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
				for range c.values {
					if err := dag.Emit(ctx, "value", strings.Repeat("x", c.size)); err != nil {
						return err
					}
				}
				return nil
			}), new(memory.Store), dispatcher.Options{Observe: seen.observe})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			events := seen.of(dispatcher.Emitted, dispatcher.Lagged)
			last := events[len(events)-1]
			if len(events) != c.kept+1 || last.Kind != dispatcher.Lagged || last.Dropped != c.values-c.kept || !last.Live {
				t.Errorf("the observer saw %d values, then %s", len(events)-1, last)
			}
		})
	}
}

// What can't be emitted is an error to the node, and nobody is told.
func TestEmitRefused(t *testing.T) {
	var seen eventsSeen
	o := dispatcher.Options{Observe: seen.observe}
	o.Limits.ValueBytes = 10
	d := process(t, solitary(t, func(ctx context.Context, _ *Tale) error {
		var limit *dispatcher.LimitError
		if err := dag.Emit(ctx, "large", "123456789"); !errors.As(err, &limit) || limit.Max != 10 || limit.Where != "emitted large" {
			t.Errorf("11 bytes of 10: %v", err)
		}
		if err := dag.Emit(ctx, "\xff", 1); err == nil {
			t.Error("a name that is not UTF-8 was accepted")
		}
		if err := dag.Emit(ctx, "channel", make(chan int)); err == nil {
			t.Error("a channel was accepted")
		}
		return dag.Emit(ctx, "fits", "12345678")
	}), new(memory.Store), o)
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if told := eventsTold(seen.of(dispatcher.Emitted)); !slices.Equal(told, []string{`tale: emitted q fits "12345678"`}) {
		t.Errorf("the observer was told %q", told)
	}
}

// Once an attempt has ended, by its return or because it was abandoned, nothing can be
// emitted in its name.
func TestEmitAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen eventsSeen
		var left sync.WaitGroup
		late := func(ctx context.Context) {
			if err := dag.Emit(ctx, "late", 1); !errors.Is(err, dag.ErrVisitOver) {
				t.Errorf("Emit after the end of %s = %v", visitPath(ctx), err)
			}
		}
		b := dag.New[Tale]("left-behind")
		first := dag.Step(b, "first", func(ctx context.Context, _ *Tale) error {
			left.Go(func() {
				lasts(time.Second)
				late(ctx)
			})
			return nil
		})
		for _, name := range []string{"stubborn", "beside"} {
			dag.Step(b, name, func(ctx context.Context, _ *Tale) error {
				defer left.Done()
				lasts(time.Hour)
				late(ctx)
				return nil
			}, first)
		}
		left.Add(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Observe: seen.observe})
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "stubborn", "beside")
		left.Wait()
		if told := eventsTold(seen.of(dispatcher.Emitted)); told != nil {
			t.Errorf("the observer was told %q", told)
		}
	})
}

// Of what is emitted while a reader takes nothing some megabytes are kept for it, and it is told
// how many values were not.
func TestEmitMoreBytesThanAreKept(t *testing.T) {
	for name, store := range map[string]checkpoint.Store{"memory": new(memory.Store), "none": nil} {
		const values = 32
		emitted, looking := make(chan struct{}), make(chan struct{})
		b := dag.New[Tale]("talkative")
		value := strings.Repeat("x", 1<<20)
		dag.Step(b, "talks", func(ctx context.Context, _ *Tale) error {
			<-looking
			defer close(emitted)
			for range values {
				if err := dag.Emit(ctx, "large", value); err != nil {
					return err
				}
			}
			return nil
		})
		d := process(t, frozen(t, b), store, dispatcher.Options{})
		got, dropped, first := 0, 0, true
		for item, err := range d.Stream(t.Context(), run, nil, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			if first {
				close(looking)
				<-emitted
				first = false
			}
			switch item.Event.Kind {
			case dispatcher.Emitted:
				got++
			case dispatcher.Lagged:
				dropped += item.Event.Dropped
			}
		}
		if got == 0 || got > 5 || got+dropped != values {
			t.Errorf("%s: of %d values %d came, and %d were dropped", name, values, got, dropped)
		}
	}
}
