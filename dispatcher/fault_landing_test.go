package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A sluggish store takes 300 ms for an append, for which who lands visits is away.
type sluggish struct{ memory.Store }

func (s *sluggish) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	lasts(300 * time.Millisecond)
	return s.Store.Append(ctx, l, after, entries)
}

// errCard is what refused fails with.
var errCard = errors.New("card refused")

// besideAnAppend returns a graph in which refused fails with errCard 50 ms after quick has
// returned, that is in the midst of the append of quick, and after follows that. begun is told
// which attempt of refused begins.
func besideAnAppend(t *testing.T, p dag.Policy, begun func(attempt int), after func(context.Context, *Tale) error) *dag.Graph[Tale] {
	t.Helper()
	quick := make(chan struct{})
	b := dag.New[Tale]("beside")
	dag.Step(b, "quick", func(context.Context, *Tale) error { close(quick); return nil })
	refused := dag.Step(b, "refused", func(ctx context.Context, _ *Tale) error {
		if begun(dag.Attempt(ctx)); dag.Attempt(ctx) > 1 {
			return nil
		}
		<-quick
		lasts(50 * time.Millisecond)
		return errCard
	}).With(p)
	dag.Step(b, "after", after, refused.Failed())
	return frozen(t, b)
}

// A visit that failed by itself before its time was up is no time-out, however late its failure is
// looked at.
func TestFailureInTimeIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []dag.Failure
		g := besideAnAppend(t, dag.Policy{Timeout: 200 * time.Millisecond}, func(int) {}, func(ctx context.Context, _ *Tale) error {
			failures = dag.Failures(ctx)
			return nil
		})
		res, err := process(t, g, new(sluggish), dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		if len(failures) != 1 || failures[0].Kind != dag.FailedError || failures[0].Message != errCard.Error() {
			t.Errorf("the failures are %+v, want one of the card", failures)
		}
	})
}

// An attempt that failed before the call was cancelled counts, however late its failure is looked
// at.
func TestFailureBeforeACancelCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		store, last := new(sluggish), 0
		p := dag.Policy{Attempts: 3, Retry: func(err error) bool { return errors.Is(err, errCard) }}
		d := process(t, besideAnAppend(t, p, func(attempt int) {
			if last = attempt; attempt == 1 {
				time.AfterFunc(150*time.Millisecond, cancel)
			}
		}, nothing[Tale]), store, dispatcher.Options{})
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusCancelled, "refused")
		failed := 0
		for e, err := range store.Read(t.Context(), run, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == checkpoint.AttemptFailed && e.Path == "refused" && e.Attempt == 1 {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("the log has %d failed attempts, want one", failed)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if last != 2 {
			t.Errorf("the second call made attempt %d, want 2", last)
		}
	})
}

// The time limit of an attempt begins with its function: an observer that takes its time to hear of
// it takes none of that.
func TestTimeoutBeginsBehindTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Tale]("observed")
		for _, node := range []string{"one", "two"} {
			dag.Step(b, node, func(ctx context.Context, _ *Tale) error {
				return heeds(ctx, 150*time.Millisecond)
			}).With(dag.Policy{Timeout: 200 * time.Millisecond})
		}
		res, err := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitStarted {
				lasts(100 * time.Millisecond)
			}
		}}).Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}
