package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// errForeign is the error of something else that ended by a context of its own, or that waits for
// somebody.
var errForeign = fmt.Errorf("another service: %w: %w, %w, %w",
	errWeather, context.Canceled, context.DeadlineExceeded, dispatcher.ErrInterrupted)

// A Strict is a state whose check asks another service.
type Strict struct{ Word state.Value[string] }

func (s *Strict) Check() error {
	if s.Word.Get() == "refused" {
		return errForeign
	}
	return nil
}

// isForeign checks that an error is errForeign, and that it is not taken for how the run rests.
func isForeign(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errWeather) {
		t.Errorf("%v is not what user code returned", err)
	}
	for _, target := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			t.Errorf("errors.Is(%v, %v)", err, target)
		}
	}
}

// What user code returned may hold an error of a context that is not the run's: how the run rests
// is told by its status alone.
func TestForeignContextErrors(t *testing.T) {
	t.Run("check", func(t *testing.T) {
		b := dag.New[Strict]("strict")
		dag.Step(b, "writes", func(_ context.Context, s *Strict) error { s.Word.Set("refused"); return nil })
		d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "writes")
		isForeign(t, err)
		var fault *dispatcher.FaultError
		if !errors.As(err, &fault) || fault.Kind != "check" {
			t.Errorf("the error is %v, want a FaultError of the check", err)
		}
		_, err = d.Run(t.Context(), "other", func(s *Strict) { s.Word.Set("refused") })
		isForeign(t, err)
	})
	t.Run("node", func(t *testing.T) {
		d := process(t, callsGraph(t, func(context.Context, *Tale) error { return errForeign }), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "only")
		isForeign(t, err)
	})
	t.Run("OnStart", func(t *testing.T) {
		d := process(t, callsGraph(t, nothing[Tale]), new(memory.Store), dispatcher.Options{
			Hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { return errForeign }},
		})
		_, err := d.Run(t.Context(), run, nil)
		isForeign(t, err)
	})
}

// The cause of a context may hold the error of another one: a cancel with such a cause is no
// time-out, and a time-out no cancel.
func TestForeignContextCauses(t *testing.T) {
	for status, ends := range map[checkpoint.Status]func(context.Context) (context.Context, context.CancelFunc){
		checkpoint.StatusCancelled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errForeign) })
			return ctx, func() { cancel(nil) }
		},
		checkpoint.StatusTimedOut: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Second, errForeign)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := callsGraph(t, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Minute) })
			ctx, cancel := ends(t.Context())
			defer cancel()
			res, err := process(t, g, new(memory.Store), dispatcher.Options{}).Run(ctx, run, nil)
			rests(t, res, err, status, "only")
			if !errors.Is(err, errWeather) {
				t.Errorf("the cause %v is not found in %v", errForeign, err)
			}
		})
	}
}

// A refusal is an error that says nothing of itself if it is a nil pointer.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// A nil pointer that a node returns as its error is one: what it is is said, live and behind a
// restart, and it is found by its type.
func TestErrorThatIsANilPointer(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := process(t, effectNode(t, func(context.Context, *Tale) error { var none *refusal; return none }, dag.Policy{}), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	says := "a nil *dispatcher_test.refusal: return nil itself where nothing failed"
	if found := new(refusal); !errors.As(err, &found) || found != nil {
		t.Errorf("the error is %v, want a nil refusal inside", err)
	}
	advises(t, err, says)
	if res, err = d.State(t.Context(), run); err != nil || len(res.Failures) != 1 || !strings.Contains(res.Failures[0].Message, says) {
		t.Errorf("State tells of the failures %+v, %v", res.Failures, err)
	}
}
