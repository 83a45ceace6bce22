package dispatcher_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A turnstile holds whoever passes, and lets some on, in an order that its seed gives, as
// soon as nobody in the bubble can do anything else.
type turnstile struct {
	*rand.Rand
	mu   sync.Mutex
	held map[string]chan struct{} // by a name that nobody else has at the same time
}

func newTurnstile(seed uint64) *turnstile {
	return &turnstile{Rand: rand.New(rand.NewPCG(seed, 3)), held: map[string]chan struct{}{}}
}

func (s *turnstile) pass(name string) {
	on := make(chan struct{})
	s.mu.Lock()
	s.held[name] = on
	s.mu.Unlock()
	<-on
}

// run calls f in a goroutine, which ends with f, and serves the turnstile meanwhile.
func (s *turnstile) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		synctest.Wait()
		select {
		case <-done:
			return
		default:
			s.letOn()
		}
	}
}

// letOn lets on one or more of those that are held.
func (s *turnstile) letOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.held))
	if len(names) == 0 {
		panic("the run waits for nothing that a test knows of")
	}
	s.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	for _, name := range names[:1+s.IntN(len(names))] {
		close(s.held[name])
		delete(s.held, name)
	}
}

// A slow store passes a turnstile in every append, so that visits end meanwhile.
type slow struct {
	memory.Store
	turnstile *turnstile
}

func (s *slow) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	s.turnstile.pass("append")
	return s.Store.Append(ctx, l, after, entries)
}

// Promise P8: in whatever order visits and appends end, and on however many processors,
// states and cursors are the same.
func TestRandomGraphsInAnyOrder(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			eachCase(t, func(t *testing.T, c *randomCase) {
				synctest.Test(t, func(t *testing.T) {
					store := &slow{turnstile: newTurnstile(c.seed + uint64(procs)<<32)}
					d := c.newDispatcher(t, store, dispatcher.Options{Parallel: int(c.seed % 4)})
					b := &bench{run: runID, spec: c.spec, body: func(_ context.Context, path string) error {
						store.turnstile.pass(path)
						return nil
					}}
					var res *dispatcher.Result[cells]
					var err error
					store.turnstile.run(func() { res, err = d.Run(b.context(t.Context()), runID, inputs) })
					sameRest(t, "held by a turnstile", res, err, c.want.rest())
					c.sameCheckpoints(t, d)
					b.narrow(t)
				})
				c.runsFreely(t)
			})
		})
	}
}

// runsFreely lets the scheduler choose the order, with a log and without.
func (c *randomCase) runsFreely(t *testing.T) {
	t.Helper()
	b := &bench{run: runID, body: func(context.Context, string) error {
		runtime.Gosched()
		return nil
	}}
	o := dispatcher.Options{Paranoid: c.seed%2 == 0, Parallel: int(c.seed % 5)}
	res, err := c.newDispatcher(t, new(memory.Store), o).Run(b.context(t.Context()), runID, inputs)
	sameRest(t, "in the scheduler's order", res, err, c.want.rest())
	res, err = c.newDispatcher(t, nil, o).Start(b.context(t.Context()), runID, inputs)
	sameRest(t, "without a store", res, err, c.want.rest())
}
