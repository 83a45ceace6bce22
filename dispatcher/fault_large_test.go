package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

func openUnsynced(t *testing.T) *badgerstore.Store {
	t.Helper()
	return openUnsyncedWith(t, badgerstore.Options{})
}

func openUnsyncedWith(t *testing.T, o badgerstore.Options) *badgerstore.Store {
	t.Helper()
	store, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Visits that return together share an append only as far as a store can make it atomic.
func TestManyLargeVisitsAtOnce(t *testing.T) {
	const width = 70
	b := dag.New[Tale]("fan")
	var arrived atomic.Int32
	gate := make(chan struct{})
	for i := range width {
		dag.Step(b, fmt.Sprintf("n%d", i), func(_ context.Context, s *Tale) error {
			s.Said.Append(strings.Repeat("x", 1<<20))
			if arrived.Add(1) == width {
				close(gate)
			}
			<-gate
			return nil
		})
	}
	res, err := process(t, frozen(t, b), openUnsynced(t), dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if got := res.State.Said.Len(); got != width {
		t.Errorf("%d visits wrote, want %d", got, width)
	}
}

// An answer that is too large is refused before anything is stored: a smaller one counts.
func TestAnswerTooLarge(t *testing.T) {
	b := dag.New[Tale]("ask")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		a, err := dag.Ask[string](ctx, "k", "?")
		s.Word.Set(a)
		return err
	})
	store := openUnsynced(t)
	d := process(t, frozen(t, b), store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 1000}})
	res, _ := d.Run(t.Context(), run, nil)
	var refused *dispatcher.AnswerError
	var limit *dispatcher.LimitError
	err := d.Answer(t.Context(), run, res.Interrupts[0].ID, strings.Repeat("x", 1000))
	if !errors.As(err, &refused) || !errors.As(err, &limit) {
		t.Errorf("Answer = %v, want an AnswerError that holds a LimitError", err)
	}
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("the store holds posts %v, %v", posts, err)
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "small"); err != nil {
		t.Error(err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// A visit that writes more than Limits.VisitBytes fails, and its run with it: what one
// visit writes is never more than a store can make atomic.
func TestVisitTooLarge(t *testing.T) {
	b := dag.New[Tale]("large")
	dag.Step(b, "writes", func(_ context.Context, s *Tale) error {
		for range 40 {
			s.Said.Append(strings.Repeat("x", 1<<20))
		}
		return nil
	})
	res, err := process(t, frozen(t, b), openUnsynced(t), dispatcher.Options{}).Run(t.Context(), run, nil)
	var limit *dispatcher.LimitError
	if !errors.As(err, &limit) || limit.Limit != "visit bytes" || len(res.Failures) != 1 {
		t.Errorf("Run = %v, %v, want the limit of visit bytes", res.Failures, err)
	}
}

// What a visit notes counts with what it writes, and each note with what it takes in the log:
// together they are never more than a store can make atomic.
func TestVisitTooLargeWithItsNotes(t *testing.T) {
	large := strings.Repeat("x", 10<<20)
	for name, body := range map[string]part{
		"large": func(ctx context.Context, s *Tale) error {
			for range 3 {
				s.Said.Append(large)
			}
			return errors.Join(dag.Note(ctx, "shop.a", large), dag.Note(ctx, "shop.a", large), dag.Note(ctx, "shop.a", large))
		},
		"small": func(ctx context.Context, _ *Tale) (err error) {
			for i := 0; i < 1<<20 && err == nil; i++ {
				err = dag.Note(ctx, "a", 1)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New[Tale]("large")
			dag.Step(b, "writes", body)
			res, err := process(t, frozen(t, b), openUnsynced(t), dispatcher.Options{}).Run(t.Context(), run, nil)
			var limit *dispatcher.LimitError
			if !errors.As(err, &limit) || limit.Limit != "visit bytes" || len(res.Failures) != 1 {
				t.Errorf("Run = %v, %v, want the limit of visit bytes", res.Failures, err)
			}
		})
	}
}

type typedNil struct{}

func (e *typedNil) Error() string { panic("an Error that panics") }

// A blind is the state of a run whose Check returns an error in which nobody can look for another
// one.
type blind struct{ Count state.Sum[int] }

func (s *blind) Check() error {
	if s.Count.Get() == 0 {
		return nil
	}
	return (*fs.PathError)(nil) // whose Unwrap reads a field
}

// An error whose Unwrap panics is one that holds no other: as the cause of a context, of a state
// that is refused, and of a panic. Who gets the error of the call may look for any in it.
func TestErrorThatCannotBeUnwrapped(t *testing.T) {
	for name, store := range map[string]checkpoint.Store{"no store": nil, "memory": new(memory.Store)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		b := dag.New[Tale]("cancels")
		dag.Step(b, "cancels", func(ctx context.Context, _ *Tale) error {
			cancel((*fs.PathError)(nil))
			return ctx.Err()
		})
		res, err := process(t, frozen(t, b), store, dispatcher.Options{}).Start(ctx, "cancelled", nil)
		var rest *dispatcher.Rest
		if !errors.As(err, &rest) || errors.Is(err, fs.ErrNotExist) || res.Status != checkpoint.StatusCancelled {
			t.Errorf("%s: the run is %s, %v, want it cancelled", name, res.Status, err)
		}

		for _, panics := range []bool{false, true} {
			c := dag.New[blind]("refused")
			dag.Step(c, "adds", func(_ context.Context, s *blind) error {
				if panics {
					panic((*fs.PathError)(nil))
				}
				s.Count.Add(1)
				return nil
			})
			res, err := process(t, frozen(t, c), store, dispatcher.Options{}).Start(t.Context(), fmt.Sprint("refused", panics), nil)
			var fault *dispatcher.FaultError
			if res.Status != checkpoint.StatusFailed || errors.Is(err, fs.ErrNotExist) || !panics && (!errors.As(err, &fault) || fault.Kind != "check") {
				t.Errorf("%s, panics=%t: the run is %s, %v, want it failed", name, panics, res.Status, err)
			}
		}
	}
}

// The error of a visit that panicked says where, also if the runtime did it.
func TestPanicTellsItsPlace(t *testing.T) {
	for name, breaks := range map[string]func(s *Tale){
		"boom":            func(*Tale) { panic("boom") },
		"out of range":    func(s *Tale) { _ = []int{}[len(s.Said.Slice())] },
		"nil dereference": func(*Tale) { _ = *(*int)(nil) },
	} {
		b := dag.New[Tale]("breaks")
		dag.Step(b, "breaks", func(_ context.Context, s *Tale) error {
			breaks(s)
			return nil
		})
		_, err := process(t, frozen(t, b), nil, dispatcher.Options{}).Start(t.Context(), run, nil)
		if err == nil || !regexp.MustCompile(`failed: panic: .* \(fault_large_test\.go:\d+\)$`).MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error whose Error panics is an error like any other.
func TestErrorThatPanics(t *testing.T) {
	for name, fails := range map[string]func() error{
		"error": func() error { return &typedNil{} },
		"nil":   func() error { var e *typedNil; return e },
		"panic": func() error { panic(&typedNil{}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New[Tale]("fails")
			dag.Step(b, "fails", func(context.Context, *Tale) error { return fails() })
			d := process(t, frozen(t, b), openUnsynced(t), dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			var n *dispatcher.NodeError
			if !errors.As(err, &n) || len(res.Failures) != 1 || res.Failures[0].Attempts != 1 {
				t.Errorf("Run = %v, %v, want a NodeError", res.Failures, err)
			}
		})
	}
}

// A brokenError is an error whose text is user code that breaks.
type brokenError struct{ text func(error) string }

func (e brokenError) Error() string { return e.text(e) }

// An error whose text ends the goroutine, or panics with the error itself, is a failure of the
// visit that returned it or panicked with it.
func TestErrorWhoseTextBreaks(t *testing.T) {
	exits := brokenError{func(error) string { runtime.Goexit(); return "" }}
	itself := brokenError{func(e error) string { panic(e) }}
	for name, c := range map[string]struct {
		fails func() error
		kind  dag.FailureKind
	}{
		"returned/exits":  {func() error { return exits }, dag.FailedGoexit},
		"returned/itself": {func() error { return itself }, dag.FailedPanic},
		"panic/exits":     {func() error { panic(exits) }, dag.FailedGoexit},
		"panic/itself":    {func() error { panic(itself) }, dag.FailedPanic},
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New[Tale]("fails")
			dag.Step(b, "fails", func(context.Context, *Tale) error { return c.fails() })
			d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			var n *dispatcher.NodeError
			if !errors.As(err, &n) || n.Kind != c.kind || len(res.Failures) != 1 || res.Status != checkpoint.StatusFailed {
				t.Errorf("Run = %s, %v, %v, want a NodeError of kind %s", res.Status, res.Failures, err, c.kind)
			}
		})
	}
}

// An error whose text hangs is a visit that hangs.
func TestErrorWhoseTextHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("fails")
		dag.Step(b, "fails", func(context.Context, *Tale) error {
			return brokenError{func(error) string { lasts(time.Hour); return "late" }}
		})
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "fails")
		if !slices.Equal(res.Abandoned, []string{"fails"}) {
			t.Errorf("abandoned: %q, want the visit", res.Abandoned)
		}
		lasts(2 * time.Hour)
	})
}

// Visits that fail together share an append only so far, too: what they say of why is up to 64 KiB
// each, and of where.
func TestManyLargeFailuresAtOnce(t *testing.T) {
	const width = 200
	var arrived atomic.Int32
	gate := make(chan struct{})
	large := strings.Repeat("\x01", 64<<10) // six times that in JSON
	b := dag.New[Tale]("fan")
	dag.Each(b, "each", func(*Tale) []int { return make([]int, width) }, func(context.Context, *Tale, int) error {
		if arrived.Add(1) == width {
			close(gate)
		}
		<-gate
		return errors.New(large)
	}).With(dag.Policy{Errors: dag.Collect})
	store := new(narrowStore)
	res, err := process(t, frozen(t, b), store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	failed := 0
	for e, err := range store.Read(t.Context(), run, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.AttemptFailed {
			failed++
		}
	}
	if failed != width {
		t.Errorf("the log tells of %d failures, want %d", failed, width)
	}
}
