package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Tale is the state of the graphs in the scenario and fault tests.
type Tale struct {
	Said  state.List[string] // the paths of the visits that were merged, in merge order
	Count state.Sum[int]
	Word  state.Value[string]
	Notes state.Map[string, string]
	Tags  state.Set[string]
}

// A part is the body of a node.
type part = func(context.Context, *Tale) error

// A witness sees which bodies begin, in all processes of a test.
type witness struct {
	mu    sync.Mutex
	began []string
}

// sees wraps a body: its path is noted when it begins, with # and the number of the
// attempt from the second on, and said in the state.
func (w *witness) sees(f part) part {
	return func(ctx context.Context, s *Tale) error {
		w.note(ctx)
		s.Said.Append(visitPath(ctx))
		if f == nil {
			return nil
		}
		return f(ctx, s)
	}
}

// routes is sees for a route.
func (w *witness) routes(f func(*Tale) way) func(context.Context, *Tale) (way, error) {
	return func(ctx context.Context, s *Tale) (way, error) {
		w.note(ctx)
		s.Said.Append(visitPath(ctx))
		return f(s), nil
	}
}

func (w *witness) note(ctx context.Context) {
	name := visitPath(ctx)
	if n := dag.Attempt(ctx); n > 1 {
		name += "#" + string(rune('0'+n))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = append(w.began, name)
}

// took returns the bodies that began since the last call, parallel ones in any order.
func (w *witness) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := w.began
	w.began = nil
	return began
}

// expect fails the test unless exactly these bodies began since the last call.
func (w *witness) expect(t testing.TB, want ...string) {
	t.Helper()
	got := w.took()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("bodies that ran: %q, want %q", got, want)
	}
}

// visitPath is the path of the visit that ctx belongs to.
func visitPath(ctx context.Context) string {
	_, path, _ := strings.Cut(dag.Key(ctx), "/")
	return path
}

// A way is an outcome of the routes.
type way string

const (
	left  way = "left"
	right way = "right"
)

// frozen builds a graph that has to be right.
func frozen[S any](t testing.TB, b *dag.Builder[S]) *dag.Graph[S] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// process returns a dispatcher as a new process would make one: it knows nothing but what
// the store holds.
func process[S any](t testing.TB, g *dag.Graph[S], store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[S] {
	t.Helper()
	o.Paranoid = true
	d, err := dispatcher.New(g, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run is the id of the run in tests that have one.
const run = "tale"

// rests checks what a call returned that came to rest: that result and error agree, and
// are what is wanted.
func rests[S any](t testing.TB, res *dispatcher.Result[S], err error, status checkpoint.Status, cursor ...string) {
	t.Helper()
	var rest *dispatcher.Rest
	if !errors.As(err, &rest) {
		t.Fatalf("the call returned %v, want a run at rest as %s", err, status)
	}
	if rest.Status != status || res.Status != status {
		t.Errorf("status %s in the error and %s in the result, want %s: %v", rest.Status, res.Status, status, err)
	}
	if !slices.Equal(res.Cursor.Visits, cursor) || !slices.Equal(rest.Cursor.Visits, cursor) {
		t.Errorf("cursor %q in the result and %q in the error, want %q", res.Cursor.Visits, rest.Cursor.Visits, cursor)
	}
	for target, want := range map[error]checkpoint.Status{
		dispatcher.ErrInterrupted: checkpoint.StatusInterrupted,
		context.Canceled:          checkpoint.StatusCancelled,
		context.DeadlineExceeded:  checkpoint.StatusTimedOut,
	} {
		if got := errors.Is(err, target); got != (status == want) {
			t.Errorf("errors.Is(%v, %v) = %t for a run that is %s", err, target, got, status)
		}
	}
}

// completes checks that a call brought its run to the end.
func completes[S any](t testing.TB, res *dispatcher.Result[S], err error) {
	t.Helper()
	if err != nil || res.Status != checkpoint.StatusCompleted || len(res.Cursor.Visits) > 0 {
		t.Fatalf("the run is %s at %q: %v, want it completed", res.Status, res.Cursor.Visits, err)
	}
}

// says checks what was said in a state.
func says(t testing.TB, s *Tale, want ...string) {
	t.Helper()
	if got := s.Said.Slice(); !slices.Equal(got, want) {
		t.Errorf("the state says %q, want %q", got, want)
	}
}

// meanwhile calls f in so long, beside the test, which ends behind that. The context of t may have
// ended by then.
func meanwhile(t *testing.T, in time.Duration, f func()) {
	ended := make(chan struct{})
	time.AfterFunc(in, func() { // the test waits for it
		defer close(ended)
		f()
	})
	t.Cleanup(func() { <-ended })
}

// asJSON is a state, or anything else, as text to compare.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readLog returns the entries of the run, with the memory of its own.
func readLog(t testing.TB, store checkpoint.Store) []checkpoint.Entry {
	t.Helper()
	var log []checkpoint.Entry
	for e, err := range store.Read(context.Background(), run, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e.Path, e.Outcome, e.ID, e.Post = strings.Clone(e.Path), strings.Clone(e.Outcome), strings.Clone(e.ID), strings.Clone(e.Post)
		e.Delta, e.Outer, e.Data = slices.Clone(e.Delta), slices.Clone(e.Outer), slices.Clone(e.Data)
		log = append(log, e)
	}
	return log
}

// kinds lists the entries of the log of these kinds as "kind path".
func kinds(log []checkpoint.Entry, of ...checkpoint.Kind) []string {
	var list []string
	for _, e := range log {
		if slices.Contains(of, e.Kind) {
			list = append(list, strings.TrimSpace(e.Kind.String()+" "+e.Path))
		}
	}
	return list
}

// quiet fails a test that ends with more goroutines than there are now. A bubble of
// synctest needs none: it says so itself.
func quiet(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if name := dispatcher.SharedIsWritten(); name != "" {
			t.Errorf("%s is shared by all runs, and was written to", name)
		}
		if left := dwindle(before); left > before {
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines are left of %d:\n%s", left, before, stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// dwindle returns how many goroutines there are, once they are no more than so many, or a minute is
// over: what has told that it is at its end may have to wait for a processor to end.
func dwindle(most int) (left int) {
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if left = runtime.NumGoroutine(); left <= most || time.Now().After(end) {
			return left
		}
	}
}

// lasts blocks for d, whatever its context says.
func lasts(d time.Duration) { <-time.After(d) }

// heeds blocks until d has passed or the context is done, whose error it returns.
func heeds(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// notes returns the notes of a state.
func notes(s *Tale) map[string]string { return maps.Collect(s.Notes.All()) }
