package dispatcher_test

import (
	"context"
	"errors"
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

// A stubborn body ignores its context for a minute, the first time a visit runs it. It
// notes the idempotency keys that it is called with.
type stubborn struct {
	mu   sync.Mutex
	keys map[string][]string // by path
}

func (n *stubborn) part(ctx context.Context, s *Tale) error {
	path := visitPath(ctx)
	n.mu.Lock()
	if n.keys == nil {
		n.keys = map[string][]string{}
	}
	n.keys[path] = append(n.keys[path], dag.Key(ctx))
	first := len(n.keys[path]) == 1
	n.mu.Unlock()
	if first {
		lasts(time.Minute)
		s.Notes.Put(path, "too late")
	}
	return nil
}

// within checks that a call whose context ended at end returned in the grace period, and
// gave its nodes most of it.
func within(t *testing.T, end time.Time, grace time.Duration) {
	t.Helper()
	if took := time.Since(end); took > grace || took < grace*3/4 {
		t.Errorf("the call returned %v after the end of its context, the grace period is %v", took, grace)
	}
}

// A stand is a graph with stubborn nodes, and what is known of its run.
type stand struct {
	name      string
	graph     func(t testing.TB, w *witness, n *stubborn) *dag.Graph[Tale]
	abandoned []string
	before    []string // bodies that begin before the end of the context
	after     []string // bodies that begin after the resume
	finished  []string // siblings that are done by then
	told      []string // what the state says in the end
}

// beside returns a graph of parallel nodes, those of the names given stubborn, and a last
// one that follows them all.
func beside(t testing.TB, w *witness, n *stubborn, names ...string) *dag.Graph[Tale] {
	b := dag.New[Tale]("beside")
	var all []dag.Edge[Tale]
	for _, name := range []string{"a", "b", "c"} {
		body := part(nil)
		if slices.Contains(names, name) {
			body = n.part
		}
		all = append(all, dag.Step(b, name, w.sees(body)))
	}
	dag.Step(b, "last", w.sees(nil), all...)
	return frozen(t, b)
}

var stands = []stand{
	{
		name:      "alone",
		graph:     func(t testing.TB, w *witness, n *stubborn) *dag.Graph[Tale] { return line(t, w, n.part) },
		abandoned: []string{"b"}, before: []string{"a", "b"}, after: []string{"b", "c"}, told: []string{"a", "b", "c"},
	},
	{
		name:      "one of three",
		graph:     func(t testing.TB, w *witness, n *stubborn) *dag.Graph[Tale] { return beside(t, w, n, "b") },
		abandoned: []string{"b"}, before: []string{"a", "b", "c"}, after: []string{"b", "last"}, finished: []string{"a", "c"},
		told: []string{"a", "b", "c", "last"},
	},
	{
		name:      "two of three",
		graph:     func(t testing.TB, w *witness, n *stubborn) *dag.Graph[Tale] { return beside(t, w, n, "a", "c") },
		abandoned: []string{"a", "c"}, before: []string{"a", "b", "c"}, after: []string{"a", "c", "last"}, finished: []string{"b"},
		told: []string{"a", "b", "c", "last"},
	},
	{
		name: "inside a loop",
		graph: func(t testing.TB, w *witness, n *stubborn) *dag.Graph[Tale] {
			return nest(t, w, map[string]part{"mop": func(ctx context.Context, s *Tale) error {
				if visitPath(ctx) != mop2 {
					return nil
				}
				return n.part(ctx, s)
			}})
		},
		abandoned: []string{mop2}, before: nested[:6], after: nested[5:], told: nested,
	},
}

func TestStubbornNodeIsAbandoned(t *testing.T) {
	for _, s := range stands {
		for _, status := range []checkpoint.Status{checkpoint.StatusCancelled, checkpoint.StatusTimedOut} {
			for _, grace := range []time.Duration{0, time.Millisecond, 30 * time.Second} {
				t.Run(s.name+"/"+string(status)+"/"+grace.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { s.abandon(t, status, grace) })
				})
			}
		}
	}
}

func (s *stand) abandon(t *testing.T, status checkpoint.Status, grace time.Duration) {
	var w witness
	var n stubborn
	var store memory.Store
	g := s.graph(t, &w, &n)
	end := time.Now().Add(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	if status == checkpoint.StatusTimedOut {
		ctx, cancel = context.WithDeadline(t.Context(), end)
	} else {
		time.AfterFunc(time.Second, cancel)
	}
	defer cancel()

	d := process(t, g, &store, dispatcher.Options{Grace: grace})
	res, err := d.Run(ctx, run, nil)
	if grace == 0 {
		grace = 5 * time.Second
	}
	within(t, end, grace)
	rests(t, res, err, status, s.abandoned...)
	if got := slices.Sorted(slices.Values(res.Abandoned)); !slices.Equal(got, s.abandoned) {
		t.Errorf("abandoned: %q, want %q", got, s.abandoned)
	}
	if !slices.Equal(res.Finished, s.finished) {
		t.Errorf("finished: %q, want %q", res.Finished, s.finished)
	}
	w.expect(t, slices.Clone(s.before)...)

	s.beside(t, d, process(t, g, &store, dispatcher.Options{}), status)
	w.expect(t)
	before, _ := store.Stat(t.Context(), run)
	lasts(2 * time.Minute) // now the bodies have returned
	if after, _ := store.Stat(t.Context(), run); after.Head != before.Head {
		t.Errorf("a late result was committed: the log went from %d to %d entries", before.Head.Seq, after.Head.Seq)
	}
	s.goOn(t, process(t, g, &store, dispatcher.Options{}), &w, &n)
}

// beside checks that beside a body that still runs nothing of its run begins, wherever it is
// tried: in the dispatcher d that abandoned it, or in another.
func (s *stand) beside(t *testing.T, d, other *dispatcher.Dispatcher[Tale], status checkpoint.Status) {
	t.Helper()
	if _, err := d.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrStillRunning) {
		t.Errorf("a resume beside the body returned %v, want ErrStillRunning", err)
	}
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.Contains(err.Error(), s.abandoned[0]) {
		t.Errorf("a run beside the body returned %v, want ErrStillRunning of %q", err, s.abandoned)
	}
	if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("edited") }, dispatcher.EditOptions{}); !errors.Is(err, dispatcher.ErrStillRunning) {
		t.Errorf("an edit beside the body returned %v, want ErrStillRunning", err)
	}
	if _, err := other.Resume(t.Context(), run); !errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("a resume by another process returned %v, want ErrBusy", err)
	}
	if res, err := other.State(t.Context(), run); err != nil || res.Status != status {
		t.Errorf("the run reads as %s, %v, want %s", res.Status, err, status)
	}
}

// goOn resumes the run: the visits that were abandoned run again, as the same attempt.
func (s *stand) goOn(t *testing.T, d *dispatcher.Dispatcher[Tale], w *witness, n *stubborn) {
	res, err := d.Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, slices.Clone(s.after)...)
	says(t, res.State, s.told...)
	if late := notes(res.State); len(late) > 0 {
		t.Errorf("late results are in the state: %v", late)
	}
	for _, path := range s.abandoned {
		if want := run + "/" + path; !slices.Equal(n.keys[path], []string{want, want}) {
			t.Errorf("the keys of %s are %q, want %q twice", path, n.keys[path], want)
		}
	}
}

// A body that is abandoned holds the run, and nothing else: not the dispatcher, and not
// its place among those that may run at once.
func TestStubbornNodeHoldsItsRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var n stubborn
		var store memory.Store
		d := process(t, line(t, &w, n.part), &store, dispatcher.Options{Parallel: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		if res, err := d.Run(t.Context(), "another", nil); err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("another run is %s, %v", res.Status, err)
		}
		lasts(2 * time.Minute)
		w.took()
		// Both places are free again: two runs that need them at once get them.
		ends := make(chan error, 2)
		for _, id := range []string{run, "third"} {
			go func() {
				_, err := d.Run(t.Context(), id, nil)
				ends <- err
			}()
		}
		for range 2 {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
		w.expect(t, "b", "c", "a", "b", "c")
	})
}

// The shortest grace period is one, too.
func TestStubbornNodeWithoutGrace(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var n stubborn
			var store memory.Store
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			d := process(t, line(t, &w, n.part), &store, dispatcher.Options{Grace: 1})
			end := time.Now().Add(time.Second)
			res, err := d.Run(ctx, run, nil)
			if took := time.Since(end); took > 1 {
				t.Errorf("the call returned %v after the end of its context, want one nanosecond", took)
			}
			if err == nil || !slices.Equal(res.Abandoned, []string{"b"}) {
				t.Errorf("the call abandoned %q and returned %v, want b", res.Abandoned, err)
			}
			lasts(2 * time.Minute)
			res, err = process(t, line(t, &w, n.part), &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			completes(t, res, err)
		})
	}
}

// What two calls of a run have abandoned is named together, and what the one has stays so when that
// of the other has returned.
func TestTwoCallsAbandonWhatHoldsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var n stubborn
		free := make(chan struct{})
		store := &tampered{Store: new(memory.Store), before: hangs("Acquire", 2, free)}
		d := process(t, line(t, &w, n.part), store, dispatcher.Options{Grace: time.Second})
		var ended sync.WaitGroup
		ended.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			res, err := d.Run(ctx, run, nil)
			rests(t, res, err, checkpoint.StatusTimedOut, "b")
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := d.Run(ctx, run, nil); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("a run whose Acquire hangs returned %v, want ErrStuck", err)
		}
		ended.Wait()
		still := func(names ...string) {
			t.Helper()
			_, err := d.Run(t.Context(), run, nil)
			if !errors.Is(err, dispatcher.ErrStillRunning) || !strings.HasSuffix(err.Error(), ": "+strings.Join(names, ", ")) {
				t.Errorf("a run beside them returned %v, want ErrStillRunning of %q", err, names)
			}
		}
		still("b", "opening the run in the store")
		close(free)
		synctest.Wait()
		still("b")
		lasts(2 * time.Minute)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}

// The names of what was abandoned are the caller's in the Result, and OnEnd's in the End: who
// writes to them changes nobody else's.
func TestNamesOfTheAbandonedAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		var n stubborn
		var o dispatcher.Options
		o.Hooks.OnEnd = func(_ context.Context, e dispatcher.End) error { clear(e.Abandoned); return nil }
		d := process(t, line(t, &w, n.part), new(memory.Store), o)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := d.Run(ctx, run, nil)
		rests(t, res, err, checkpoint.StatusTimedOut, "b")
		if !slices.Equal(res.Abandoned, []string{"b"}) {
			t.Errorf("behind an OnEnd that clears its own names the call has abandoned %q", res.Abandoned)
		}
		clear(res.Abandoned)
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrStillRunning) || !strings.HasSuffix(err.Error(), ": b") {
			t.Errorf("a run beside it returned %v, want ErrStillRunning of b", err)
		}
		lasts(2 * time.Minute)
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
	})
}
