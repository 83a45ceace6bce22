package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A lossyBank does what it is asked to, and loses some of the first requests, and some replies.
type lossyBank struct {
	c *randomCase

	mu     sync.Mutex
	asked  map[string]int // by idempotency key
	done   map[string]int
	doubts map[dag.Doubt]int
	breaks int // by panics and Goexits
}

var errLost = errors.New("no reply")

// pay is the other side of an effect.
func (b *lossyBank) pay(ctx context.Context, i int) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := dag.Key(ctx)
	b.asked[id]++
	luck := chance(3, "luck", id)
	if b.asked[id] > 1 {
		luck = 0
	}
	if luck < 2 {
		b.done[id]++
	}
	if luck > 0 {
		b.loses(id)
		return "", errLost
	}
	return fmt.Sprintf("%d for %s", i, id), nil
}

// loses has the function of an effect break now and then, instead of returning that there is no
// reply.
func (b *lossyBank) loses(id string) {
	switch chance(4, "breaks", id) {
	case 0:
		b.breaks++
		panic(errLost)
	case 1:
		b.breaks++
		runtime.Goexit()
	}
}

// tells is what the other side says of an effect in doubt.
func (b *lossyBank) tells(e dispatcher.OpenEffect) dispatcher.Resolution {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done[e.ID] == 0 {
		return dispatcher.NotHappened("the bank does not know it")
	}
	return dispatcher.Happened(fmt.Sprintf("%s for %s", e.Input, e.ID))
}

// body does one or two effects in some visits, and goes on without none of them.
func (b *lossyBank) body(ctx context.Context, visit string) error {
	for i := range max(0, chance(8, "doubts", strconv.FormatUint(b.c.seed, 10), visit)-5) {
		doubt := b.c.doubtOf(visit)
		got, err := dag.Effect(ctx, fmt.Sprint("thing ", i), i, b.pay, dag.InDoubt(doubt))
		if errors.Is(err, dag.ErrInDoubt) {
			b.mu.Lock()
			b.doubts[doubt]++
			b.mu.Unlock()
		}
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%d for %s#thing %d", i, dag.Key(ctx), i); got != want {
			return fmt.Errorf("the effect returned %q, want %q", got, want)
		}
	}
	return nil
}

// doubtOf is what an effect in a visit declares. A visit may fail only where that changes nothing
// of what the run comes to: its attempts are counted by who is told of its failure, and of a frame
// that fails in doubt all is tried again that has failed in it. If its node is to be told, nobody
// may follow, who would be told of the doubt.
func (c *randomCase) doubtOf(visit string) dag.Doubt {
	fails, tells := true, true
	g, parts := c.spec, strings.Split(visit, "/")
	for len(parts) > 0 {
		if isNumber(parts[0]) {
			parts = parts[1:]
			continue
		}
		in, i := g.place(parts[0])
		n := in.Nodes[i]
		if caught := in.catches(i) || n.Collect; caught {
			tells = false
			fails = fails && (n.Body == nil || !n.Body.failing())
		}
		if n.Body == nil {
			fails = fails && n.Fails == 0
			break
		}
		g, parts = n.Body, parts[1:]
	}
	options := []dag.Doubt{dag.DoubtAsks}
	if fails {
		options = append(options, dag.DoubtFails)
	}
	if fails && tells {
		options = append(options, dag.DoubtTells)
	}
	return options[chance(len(options), "doubt", visit)]
}

// failing reports whether an attempt of a visit in the graph may fail.
func (g *graphSpec) failing() bool {
	for _, n := range g.Nodes {
		if n.Fails != 0 || n.Body != nil && n.Body.failing() {
			return true
		}
	}
	return false
}

// Rule 7 and promises P2, P4 and P8: effects end in doubt at random, under each policy, and
// processes die at random appends. Resolved by what the other side tells, sooner or later, each is
// done once, and the run comes to what it comes to when nothing is lost.
func TestRandomGraphsInDoubt(t *testing.T) {
	t.Parallel()
	met := map[dag.Doubt]int{}
	n, breaks := 0, 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if c.want.status != checkpoint.StatusCompleted { // what ran before it failed is timing
			return
		}
		if n++; n%3 != 0 {
			return
		}
		bank := &lossyBank{c: c, asked: map[string]int{}, done: map[string]int{}, doubts: met}
		res, store := c.endInDoubt(t, bank)
		breaks += bank.breaks
		sameRest(t, "doubts resolved", res, nil, c.want.rest())
		for e, err := range store.Read(t.Context(), runID, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			id := runID + "/" + e.Path + "#" + e.ID
			if e.Kind == checkpoint.EffectEnded && bank.done[id] > 1 {
				t.Errorf("%s was done %d times", id, bank.done[id])
			}
		}
		for id, times := range bank.done {
			if times != 1 {
				t.Errorf("%s was done %d times", id, times)
			}
		}
	})
	if breaks == 0 {
		t.Error("the function of no effect has broken")
	}
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		if met[doubt] == 0 {
			t.Errorf("no visit has met a doubt under the policy %s", doubt)
		}
	}
}

// endInDoubt brings a run to its end, over deaths of the store and resolutions.
func (c *randomCase) endInDoubt(t *testing.T, bank *lossyBank) (*dispatcher.Result[cells], *mortal) {
	t.Helper()
	r := rand.New(rand.NewPCG(c.seed, 11))
	store := new(mortal)
	b := &bench{run: runID, body: func(ctx context.Context, path string) error {
		if store.isDone(path) {
			t.Errorf("visit %s runs again, and its entry is durable", path)
		}
		return bank.body(ctx, path)
	}}
	ctx := b.context(t.Context())
	idle := 0
	for call := range 1000 {
		if err := store.revive(ctx, 2+r.IntN(8)+call/8, r.IntN(2) == 0); err != nil {
			t.Fatal(err)
		}
		o := dispatcher.Eager(dispatcher.Options{Paranoid: call%2 == 0})
		res, err := c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
		died := store.died()
		if err := store.revive(ctx, 0, false); err != nil {
			t.Fatal(err)
		}
		if !died && res.Status == checkpoint.StatusCompleted {
			return res, store
		}
		d := c.newDispatcher(t, store, o)
		opened, failed := d.Open(ctx, runID)
		if errors.Is(failed, dispatcher.ErrNotFound) {
			continue
		}
		if failed != nil {
			t.Fatal(failed)
		}
		for _, e := range opened.InDoubt() {
			if died && r.IntN(2) == 0 {
				continue // its visit meets the doubt first
			}
			if err := d.Resolve(ctx, runID, e.Path, e.Key, bank.tells(e)); err != nil && !errors.Is(err, dispatcher.ErrNotInDoubt) {
				t.Fatalf("%s: %v, while the run is %s: %v", e, err, opened.Status, res.Status)
			}
		}
		if idle++; died || len(opened.InDoubt()) > 0 {
			idle = 0
		}
		if idle > 1 { // one call may be the first that goes on with what was resolved
			t.Fatalf("nothing is in doubt, and the run is %s: %v", res.Status, err)
		}
	}
	t.Fatal("the run does not come to its end")
	return nil, nil
}
