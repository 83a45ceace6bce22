package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// crewFan is a fan of n nodes, of which each does f with its number.
func crewFan(t testing.TB, n int, f func(ctx context.Context, i int) error) *dag.Graph[Tale] {
	b := dag.New[Tale]("fan")
	sides := make([]dag.Edge[Tale], n)
	for i := range sides {
		sides[i] = dag.Step(b, fmt.Sprint("side", i), func(ctx context.Context, s *Tale) error {
			s.Count.Add(1)
			return f(ctx, i)
		})
	}
	dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, sides...)
	return frozen(t, b)
}

// onProcessors does f once for each number of processors that Go uses, which it sets for the whole
// program.
func onProcessors(t *testing.T, f func(t *testing.T)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			runtime.GOMAXPROCS(n)
			f(t)
		})
	}
}

// Visits side by side are all at work at once, however many processors there are: none waits for
// one that blocks.
func TestVisitsSideBySideAllBegin(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		const n = 200
		for _, ends := range []func(){func() {}, runtime.Goexit, func() { panic("no") }} {
			var begun sync.WaitGroup
			begun.Add(n)
			g := crewFan(t, n, func(context.Context, int) error {
				begun.Done()
				begun.Wait() // until all others are there
				ends()
				return nil
			})
			d, err := dispatcher.New(g, nil, dispatcher.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = d.Start(t.Context(), run, nil)
			begun.Wait()
		}
	})
}

// Visits that end their goroutine, side by side, take none with them.
func TestVisitsSideBySideThatEndTheirGoroutine(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		var calls atomic.Int32
		g := crewFan(t, 100, func(context.Context, int) error {
			calls.Add(1)
			runtime.Goexit()
			return nil
		})
		d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Start(t.Context(), run, nil)
		if err == nil || res.Status != checkpoint.StatusFailed || calls.Load() != 100 {
			t.Errorf("%d of 100 were called, %s, %v", calls.Load(), res.Status, err)
		}
	})
}

// What has returned is durable though others that began with it go on: each visit here returns once
// the one before it is.
func TestVisitIsDurableWhileItsSiblingsGoOn(t *testing.T) {
	onProcessors(t, func(t *testing.T) {
		const n = 60
		for _, order := range []string{"first to last", "last to first"} {
			durable := make([]chan struct{}, n)
			for i := range durable {
				durable[i] = make(chan struct{})
			}
			before := func(i int) int { return i - 1 }
			if order == "last to first" {
				before = func(i int) int { return (i + 1) % (n + 1) }
			}
			g := crewFan(t, n, func(ctx context.Context, i int) error {
				if b := before(i); b >= 0 && b < n {
					select {
					case <-durable[b]:
					case <-ctx.Done():
					}
				}
				return ctx.Err()
			})
			store := watchedStore{Store: new(memory.Store), done: func(path string) {
				var i int
				if _, err := fmt.Sscanf(path, "side%d", &i); err == nil {
					close(durable[i])
				}
			}}
			d, err := dispatcher.New(g, store, dispatcher.Options{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Start(t.Context(), run, nil)
			if completes(t, res, err); err != nil {
				t.Fatal(order)
			}
		}
	})
}

// watchedStore tells of each visit whose end it has appended.
type watchedStore struct {
	checkpoint.Store
	done func(path string)
}

func (s watchedStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	head, err := s.Store.Append(ctx, l, after, entries)
	for _, e := range entries {
		if err == nil && e.Kind == checkpoint.Done {
			s.done(e.Path)
		}
	}
	return head, err
}

// Visits side by side that don't block share a few goroutines: a spare one for each time that one
// is taken off its processor, as may happen to many of them at a time, and not again and again.
func TestVisitsSideBySideShareGoroutines(t *testing.T) {
	const n, tries = 1_000, 5
	var used [tries]int
	for i := range used {
		if used[i] = goroutinesOfFan(t, n); used[i] <= n/4 {
			return
		}
	}
	t.Errorf("%d visits took %d goroutines, try by try", n, used)
}

// goroutinesOfFan is how many goroutines run n visits side by side.
func goroutinesOfFan(t *testing.T, n int) int {
	t.Helper()
	traces := make([][64]byte, n) // each visit has its own: one that waited for another's would have blocked
	g := crewFan(t, n, func(_ context.Context, i int) error {
		runtime.Stack(traces[i][:], false)
		return nil
	})
	d, err := dispatcher.New(g, nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Start(t.Context(), run, nil)
	completes(t, res, err)
	used := map[string]bool{}
	for _, text := range traces {
		used[numberIn(text)] = true
	}
	return len(used)
}

// numberIn is the number of a goroutine, which its trace begins with.
func numberIn(trace [64]byte) string { return strings.Fields(string(trace[:]))[1] }

// goroutine is the number of the one that calls it.
func goroutine() string {
	var trace [64]byte
	runtime.Stack(trace[:], false)
	return numberIn(trace)
}

// A visit that has no goroutine yet when the run is cancelled is not begun. One that has may be
// about to begin, behind its look at the context: so no goroutine begins two behind the cancel.
func TestVisitsSideBySideAfterACancel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that one goroutine comes to all of them
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var over atomic.Bool
	var late sync.Map // the goroutines that have begun a visit behind the cancel, and the one that has cancelled
	g := crewFan(t, 100, func(ctx context.Context, i int) error {
		if over.Load() {
			if _, again := late.LoadOrStore(goroutine(), true); again {
				t.Errorf("side%d begins behind the cancel", i)
			}
		}
		if i == 0 {
			late.Store(goroutine(), true)
			cancel()
			over.Store(true)
		}
		<-ctx.Done() // also where another goroutine came to it before the cancel
		return ctx.Err()
	})
	d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Start(ctx, run, nil)
	if !errors.Is(err, context.Canceled) || res.Status != checkpoint.StatusCancelled || len(res.Cursor.Visits) != 100 {
		t.Errorf("%s at %q, %v", res.Status, res.Cursor.Visits, err)
	}
}
