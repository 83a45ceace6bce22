package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// A Runner goes on with runs of one graph. A *dispatcher.Dispatcher is one, whatever the state of
// its graph is.
//
// A Runner may have more methods of dispatchers. One that has Takes is also given runs of graphs of
// other names that it takes, as a dispatcher.Migration says, if no Runner is of that name. One that
// has CheckOptions is asked whether a submission's options can be, and, of a run that stays
// cancelled, who has cancelled it: by Continue with dispatcher.UnlessCancelled.
type Runner interface {
	// Graph returns the name of the graph.
	Graph() string
	// Continue brings a run that exists to its end, or as far as it can go, as
	// dispatcher.Dispatcher.Continue does. It returns soon after ctx is done.
	Continue(ctx context.Context, run string, options ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error)
}

// A taker is a Runner that tells of a graph of another name whether it goes on with its runs.
type taker interface {
	Runner
	Takes(graph, digest string) bool
}

// Options configure a [Supervisor]. The zero Options work.
type Options struct {
	// Cap is how many runs may be at work at once. One that waits between two attempts, for as long
	// as its Backoff says, is at work; one that waits for a person is not. Zero means 64.
	Cap int
	// AtWork is how many runs of one key may be at work at once, recovered ones among them, so that
	// no key takes all places: further ones wait, and other keys have their turns meanwhile. Zero
	// means as many as Cap says.
	AtWork int
	// Queue is how many runs may wait for their turn. Those that were at work, and wait again for
	// room in the store, are beyond it. Zero means 10,000.
	Queue int
	// PerKey is how many runs of one key may wait before another one is refused, so that no key
	// fills the queue. Runs that are recovered are not refused, and count: half of the queue may be
	// of one key. Zero means as many as Queue says.
	PerKey int
	// Label names the label of a run that is its key when it is recovered. Zero, and a run
	// without that label, mean the name of its graph.
	Label string
	// Answered has Recover go on as well with runs that are Interrupted and were answered, or
	// resolved, since: by a process that died before it went on with them, or by one that leaves
	// that to others. It costs a look at the end of the log of each run that waits. Zero means that
	// such runs are left to whoever continues them, as a continuation.Runtime does for the runs
	// that it serves, as often as their waits allow.
	Answered bool
	// Grace is how long Drain waits for runs whose contexts it has cancelled. It should be
	// longer than the grace periods of the dispatchers. Zero means 6 seconds.
	Grace time.Duration
	// Observe sees the events of the supervisor, from many goroutines: it should be quick. Its
	// panics are ignored. It may not wait for a Drain, since that waits for the run that Observe is
	// told of: call Drain in another goroutine. Nil means nobody does.
	Observe func(Event)
}

// A Supervisor runs many runs of many graphs. Make one with [New]. It is safe for concurrent
// use.
type Supervisor struct {
	store   checkpoint.Store
	options Options
	runners map[string]Runner // by graph
	takers  []taker           // of them, in the order in which they were given
	drain   chan struct{}     // closed when the supervisor drains

	mu      sync.Mutex
	queue   queue
	tickets map[string]*ticket  // by run: those that wait or are at work
	working int                 // how many are at work
	moved   chan struct{}       // closed when a run leaves the queue; nil if nobody waits for that
	hold    hold                // keeps those that wait from beginning
	rested  uint64              // how many runs have come to rest, for whom the store had room
	waited  time.Duration       // how long the last hold was; zero if one has come to rest since
	full    map[string]struct{} // runs that were left running since the store had no room, and have not come to rest here since
	ending  *ending             // nil until the supervisor drains
}

// New makes a supervisor of runs in a store, which is the one that the runners have. Recover
// finds what was left of their graphs; others may be submitted too.
//
// It returns an [*OptionError] for an option that can't be, for two runners of one graph, or for a
// runner that has no store or another one. A Runner that is no dispatcher is believed, unless it
// has a method Store as dispatchers do.
func New(store checkpoint.Store, o Options, runners ...Runner) (*Supervisor, error) {
	if misuse.Missing(store) {
		return nil, &OptionError{"store", "is nil: open one, and make the dispatchers with the same"}
	}
	for _, of := range []struct {
		name  string
		value int64
	}{{"Cap", int64(o.Cap)}, {"AtWork", int64(o.AtWork)}, {"Queue", int64(o.Queue)}, {"PerKey", int64(o.PerKey)}, {"Grace", int64(o.Grace)}} {
		if of.value < 0 {
			return nil, &OptionError{of.name, "is negative: zero means the default"}
		}
	}
	o.Cap = cmp.Or(o.Cap, 64)
	o.Queue = cmp.Or(o.Queue, 10_000)
	o.PerKey = cmp.Or(o.PerKey, o.Queue)
	o.Grace = cmp.Or(o.Grace, 6*time.Second)
	s := &Supervisor{
		store: store, options: o, runners: make(map[string]Runner, len(runners)),
		drain: make(chan struct{}), tickets: make(map[string]*ticket), full: make(map[string]struct{}),
	}
	for _, r := range runners {
		if misuse.Missing(r) {
			return nil, &OptionError{"runners", "hold a nil: make each with dispatcher.New"}
		}
		if elsewhere(r, store) {
			return nil, &OptionError{"runners", fmt.Sprintf(
				"hold one of graph %q without the supervisor's store: make both with the same store", r.Graph())}
		}
		if s.runners[r.Graph()] != nil {
			return nil, &OptionError{"runners", fmt.Sprintf("hold two of graph %q: give one for each graph", r.Graph())}
		}
		s.runners[r.Graph()] = r
		if t, ok := r.(taker); ok {
			s.takers = append(s.takers, t)
		}
	}
	return s, nil
}

// runner is who goes on with a run, nil if nobody does.
func (s *Supervisor) runner(info *checkpoint.Info) Runner {
	if r := s.runners[info.Graph]; r != nil {
		return r
	}
	for _, t := range s.takers {
		if t.Takes(info.Graph, info.Digest) {
			return t
		}
	}
	return nil
}

// Load tells how many runs are at work and how many wait for their turn. Some may wait while fewer
// than Options.Cap are at work: for one of their key to end (Options.AtWork), or for room in the
// store.
func (s *Supervisor) Load() (working, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working, s.queue.size
}
