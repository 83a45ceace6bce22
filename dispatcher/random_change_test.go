package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// clone copies a graph so that nodes can be added to it.
func (g *graphSpec) clone() *graphSpec {
	c := *g
	c.Nodes = nil
	for _, n := range g.Nodes {
		m := *n
		if m.Body != nil {
			m.Body = m.Body.clone()
		}
		m.After = cloneEdges(m.After)
		c.Nodes = append(c.Nodes, &m)
	}
	c.Ends = cloneEdges(g.Ends)
	return &c
}

func cloneEdges(edges []edgeSpec) []edgeSpec {
	edges = slices.Clone(edges)
	for i := range edges {
		edges[i].Of = cloneEdges(edges[i].Of)
	}
	return edges
}

// idler adds a node that writes nothing to g, or to a graph inside of it: at any place, and
// behind any node before that or none. Not behind an Each, which tells what failed in it.
func (g *graphSpec) idler(r *rand.Rand, name string) {
	for _, i := range r.Perm(len(g.Nodes)) {
		if body := g.Nodes[i].Body; body != nil && r.IntN(2) == 0 {
			body.idler(r, name)
			return
		}
	}
	at := r.IntN(len(g.Nodes) + 1)
	for _, n := range g.Nodes {
		shiftEdges(n.After, at)
	}
	shiftEdges(g.Ends, at)
	n := &nodeSpec{Name: name, Kind: dag.KindStep}
	if k := r.IntN(at + 1); k < at && g.Nodes[k].Kind != dag.KindFail && g.Nodes[k].Kind != dag.KindEach {
		n.After = []edgeSpec{{Node: k}}
	}
	g.Nodes = slices.Insert(g.Nodes, at, n)
}

// shiftEdges makes room for a node.
func shiftEdges(edges []edgeSpec, at int) {
	for i := range edges {
		if e := &edges[i]; e.Op == "" && e.Node >= at {
			e.Node++
		}
		shiftEdges(edges[i].Of, at)
	}
}

// Promise P10: a run whose program gets nodes that change nothing, again and again wherever
// it stands, ends as if it had not. Processes die meanwhile. One graph of three is tried.
func TestRandomGraphsThatGrow(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		if c.seed%3 == 0 {
			c.grow(t)
		}
	})
}

// grown returns c, and programs of which each has one node more that changes nothing.
func (c *randomCase) grown(t *testing.T, r *rand.Rand) []*randomCase {
	t.Helper()
	versions := []*randomCase{c}
	for spec := c.spec; len(versions) < 5; {
		spec = spec.clone()
		spec.idler(r, fmt.Sprintf("idler%d", len(versions)))
		next := *c
		next.spec = spec
		var err error
		if next.graph, err = assemble(spec, itself); err != nil {
			t.Fatalf("a graph with a node more can't be built: %v\n%s", err, spec)
		}
		versions = append(versions, &next)
	}
	return versions
}

func (c *randomCase) grow(t *testing.T) {
	r := rand.New(rand.NewPCG(c.seed, 11))
	versions := c.grown(t, r)
	last := len(versions) - 1
	d := &drive{store: new(mortal), opts: dispatcher.Options{Paranoid: r.IntN(2) == 0}}
	d.next = func(call int) (int, bool) {
		d.c = versions[min(call, last)]
		if call >= last {
			return 0, false
		}
		return 1 + r.IntN(1+len(c.want.done)/2), r.IntN(2) == 0
	}
	res, err := d.end(t)
	sameRest(t, fmt.Sprintf("%d calls", d.calls), res, err, c.want.rest())
}

// A machine that was read from a snapshot is the one that a replay from the start gives,
// whatever graphs the log has gone through.
func TestRandomGraphsThatGrowFromSnapshots(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	found := 0
	for seed := uint64(1); found < 3; seed++ {
		c := newLongCase(seed)
		if c == nil {
			continue
		}
		found++
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { c.growFromSnapshots(t, &served) })
	}
	if n := served.Load(); n < 3 {
		t.Errorf("%d snapshots were read, want at least one in each of 3 runs", n)
	}
}

func (c *randomCase) growFromSnapshots(t *testing.T, served *atomic.Int32) {
	r := rand.New(rand.NewPCG(c.seed, 12))
	store := &forgetful{served: served}
	versions := c.grown(t, r)
	for cuts := 0; ; cuts++ {
		if cuts > 1000 {
			t.Fatal("the run does not come to its end")
		}
		v := versions[min(cuts, len(versions)-1)]
		ctx, cancel := context.WithCancel(t.Context())
		events, last := 0, 50+r.IntN(200)
		d := v.newDispatcher(t, store, dispatcher.Options{Observe: func(dispatcher.Event) {
			if events++; events == last {
				cancel()
			}
		}})
		res, err := d.Run((&bench{run: runID}).context(ctx), runID, inputs)
		cancel()
		var changed *dispatcher.GraphChangedError
		if errors.As(err, &changed) {
			t.Fatalf("a node that changes nothing is refused: %v", err)
		}
		v.sameFromStart(t, store, r)
		if res.Status == checkpoint.StatusCompleted || t.Failed() {
			sameRest(t, fmt.Sprintf("after %d rests", cuts), res, err, c.want.rest())
			return
		}
	}
}
