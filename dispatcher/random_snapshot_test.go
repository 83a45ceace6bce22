package dispatcher_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A forgetful store keeps snapshots, and serves them only while it remembers.
type forgetful struct {
	memory.Store
	forgets bool
	served  *atomic.Int32
}

func (f *forgetful) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	if f.forgets {
		return checkpoint.Snapshot{}, fmt.Errorf("%w: forgotten", checkpoint.ErrNotFound)
	}
	s, err := f.Store.Snapshot(ctx, run, upTo)
	if err == nil {
		f.served.Add(1)
	}
	return s, err
}

// newLongCase repeats a random graph many times, beside a node that each time replaces
// one big value: its log grows and its state does not, so that snapshots are taken. It is
// nil if there is no such run.
func newLongCase(seed uint64) *randomCase {
	r := newGenerator(seed)
	body := r.graph("spin", 2)
	body.Nodes = append(body.Nodes, &nodeSpec{Name: "big", Kind: dag.KindStep, Writes: []cellOp{{Cell: "V", Do: "set", Pad: 20_000}}})
	c := newCase(seed, r, &graphSpec{Name: "long", Nodes: []*nodeSpec{
		{Name: "spin", Kind: dag.KindLoop, Body: body, Most: 20, asked: r.asked},
		{Name: "beside", Kind: dag.KindStep, Writes: r.writes(3)},
		{Name: "last", Kind: dag.KindStep, After: []edgeSpec{{Node: 0}}, Writes: r.writes(3)},
	}})
	if c == nil || c.want.status != checkpoint.StatusCompleted {
		return nil
	}
	return c
}

// A machine that was read from a snapshot is the one that a replay from the start gives,
// and ends alike.
func TestRandomGraphsFromSnapshots(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	found := 0
	for seed := uint64(1); found < longCount; seed++ {
		c := newLongCase(seed)
		if c == nil {
			continue
		}
		found++
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c.fromSnapshots(t, &served)
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, c.spec)
			}
		})
	}
	if n := served.Load(); n < int32(longCount) {
		t.Errorf("%d snapshots were read, want at least one in each of %d runs", n, longCount)
	}
}

func (c *randomCase) fromSnapshots(t *testing.T, served *atomic.Int32) {
	r := rand.New(rand.NewPCG(c.seed, 7))
	store := &forgetful{served: served}
	pause, _, _ := strings.Cut(c.want.done[r.IntN(len(c.want.done))], "@")
	o := dispatcher.Options{InterruptBefore: []string{pause}}
	for cuts := 0; ; cuts++ {
		ctx, cancel := context.WithCancel(t.Context())
		events, last := 0, 20+r.IntN(300)
		o.Observe = func(dispatcher.Event) {
			if events++; events == last {
				cancel()
			}
		}
		d := c.newDispatcher(t, store, o)
		b := &bench{run: runID}
		var res *dispatcher.Result[cells]
		var err error
		if cuts == 0 {
			res, err = d.Run(b.context(ctx), runID, inputs)
		} else {
			res, err = d.Resume(b.context(ctx), runID)
		}
		cancel()
		c.sameFromStart(t, store, r)
		if res.Status == checkpoint.StatusCompleted || t.Failed() {
			sameRest(t, fmt.Sprintf("after %d rests", cuts), res, err, c.want.rest())
			return
		}
	}
}

// sameFromStart reads a run, and some of its checkpoints, by way of snapshots and without.
func (c *randomCase) sameFromStart(t *testing.T, store *forgetful, r *rand.Rand) {
	t.Helper()
	every, first := 10+r.IntN(20), r.IntN(10)
	read := func(forgets bool) (all []string) {
		store.forgets = forgets
		defer func() { store.forgets = false }()
		d := c.newDispatcher(t, store, dispatcher.Options{})
		res, err := d.State(t.Context(), runID)
		all = append(all, describe(res, err))
		number := first
		for p, err := range d.History(t.Context(), runID) {
			if err != nil {
				t.Fatal(err)
			}
			if number++; number%every == 0 {
				res, err := d.At(t.Context(), runID, p.Address())
				all = append(all, p.String()+": "+describe(res, err))
			}
		}
		return all
	}
	with, without := read(false), read(true)
	if !slices.Equal(with, without) {
		for i := range min(len(with), len(without)) {
			if with[i] != without[i] {
				t.Errorf("from a snapshot: %s\nfrom the start:  %s", with[i], without[i])
				return
			}
		}
		t.Errorf("%d checkpoints from a snapshot, %d from the start", len(with), len(without))
	}
}

// describe is all that a result says.
func describe(res *dispatcher.Result[cells], err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s superstep %d, %v, interrupts %v, finished %v, failures %v",
		restOf(res), res.Cursor, res.Superstep, res.Abandoned, res.Interrupts, res.Finished, res.Failures)
}
