package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

// A parcel is the state of the graphs in these tests.
type parcel struct {
	Name  state.Value[string]
	Steps state.List[string]
}

var errLost = errors.New("the parcel is lost")

// line is a graph of steps in a row, each of which calls body.
func line(t testing.TB, name string, steps int, body func(ctx context.Context, step int) error) *dag.Graph[parcel] {
	t.Helper()
	b := dag.New[parcel](name)
	var after []dag.Edge[parcel]
	for i := range steps {
		n := dag.Step(b, fmt.Sprintf("step-%d", i), func(ctx context.Context, p *parcel) error {
			if body != nil {
				if err := body(ctx, i); err != nil {
					return err
				}
			}
			p.Steps.Append(dag.Key(ctx))
			return nil
		}, after...)
		after = []dag.Edge[parcel]{n}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func process(t testing.TB, g *dag.Graph[parcel], store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[parcel] {
	t.Helper()
	d, err := dispatcher.New(g, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func supervise(t testing.TB, store checkpoint.Store, o supervisor.Options, runners ...supervisor.Runner) *supervisor.Supervisor {
	t.Helper()
	s, err := supervisor.New(store, o, runners...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func submit(t testing.TB, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel], key, run string) *supervisor.Task[parcel] {
	t.Helper()
	task, err := supervisor.Submit(t.Context(), s, d, key, run, func(p *parcel) { p.Name.Set(run) })
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// completes waits for a task whose run has to be completed.
func completes(t testing.TB, task *supervisor.Task[parcel]) {
	t.Helper()
	res, err := task.Wait(t.Context())
	if err != nil || res.Status != checkpoint.StatusCompleted || res.State.Name.Get() != task.Run() {
		t.Errorf("run %q is %s, of %q: %v", task.Run(), res.Status, res.State.Name.Get(), err)
	}
}

// A diary is what happened, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) expect(t testing.TB, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, want) {
		t.Errorf("what happened is %q, want %q", d.lines, want)
	}
	d.lines = nil
}

// statuses is what the store says of runs.
func statuses(t testing.TB, store checkpoint.Store) map[string]checkpoint.Status {
	t.Helper()
	all := map[string]checkpoint.Status{}
	page, err := store.List(t.Context(), checkpoint.Filter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range page {
		if all[info.Run] = info.Status; info.Owner != "" {
			t.Errorf("run %q is held by %s", info.Run, info.Owner)
		}
	}
	return all
}

// quiet checks that the test leaves no goroutine.
func quiet(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// lasts takes a time that nothing shortens.
func lasts(d time.Duration) { <-time.After(d) }

// heeds takes a time, or ends with ctx.
func heeds(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recovering has s recover its runs in another goroutine, which ends when what it returns is
// received.
func recovering(t *testing.T, s *supervisor.Supervisor) <-chan supervisor.Recovery {
	recovered := make(chan supervisor.Recovery)
	go func() {
		r, err := s.Recover(t.Context())
		if err != nil {
			t.Error(err)
		}
		recovered <- r
	}()
	return recovered
}
