package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/pawltest"
)

// crashes is how often a process is killed: PAWL_CRASHES times, by default 25.
func crashes(t *testing.T) int {
	text := os.Getenv("PAWL_CRASHES")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PAWL_CRASHES is %q, not a number", text)
	}
	return n
}

// A crowd is what pulls triggers at one wait, and whom the node has heard.
type crowd struct {
	size  int
	deny  bool // every second one denies
	mu    sync.Mutex
	heard []string // the trigger of each time that the body ran
}

func (c *crowd) graph(t *testing.T) *dag.Graph[Talk] {
	w := continuation.Wait{Kind: continuation.KindApproval, Key: "k", MaxFailures: 10}
	return waiting(t, w, dag.Policy{}, func(_ context.Context, s *Talk, r continuation.Reply[string]) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, r.Trigger)
		s.Said.Append(r.Trigger)
		return nil
	})
}

// pull pulls all triggers at once, and returns the ids of those that were accepted.
func (c *crowd) pull(p *process) (accepted []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range c.size {
		wg.Go(func() {
			tr := decide(fmt.Sprint("t", i), continuation.Approved)
			if tr.Key = "k"; c.deny && i%2 == 0 {
				tr.Decision = continuation.Denied
			}
			out, err := p.rt.Trigger(context.Background(), tr)
			switch {
			case out.Trigger != "" && (err == nil || errors.Is(err, pawltest.ErrDead)):
				mu.Lock()
				defer mu.Unlock()
				accepted = append(accepted, out.Trigger)
			case errors.Is(err, continuation.ErrTaken), errors.Is(err, continuation.ErrTerminal), errors.Is(err, pawltest.ErrDead):
			default:
				p.t.Errorf("trigger %d: %+v, %v", i, out, err)
			}
		})
	}
	wg.Wait()
	return accepted
}

// A process is killed at a write while many pull triggers. The next one recovers, and everybody
// pulls again: one trigger counts, the same before and after, and the node hears no other.
func TestCrashAmongTriggers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for n := range crashes(t) {
		c := &crowd{size: 20, deny: n%2 == 1}
		if n == 0 {
			c.size = 1000
		}
		store := &pawltest.Mortal{Store: &memory.Store{}}
		g := c.graph(t)
		p := begin(t, g, store, continuation.Options{})
		p.waits(run)
		if dies := 1 + random.IntN(6); random.IntN(2) == 0 {
			store.DieBefore(dies)
		} else {
			store.DieAfter(dies)
		}
		first := c.pull(p)
		if err := store.Revive(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := begin(t, g, store, continuation.Options{})
		if _, err := q.rt.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := c.pull(q)
		c.check(q, append(first, second...))
		if t.Failed() {
			t.Fatalf("crash %d: %v", n, q.kinds(run))
		}
	}
}

// check checks how the run has ended.
func (c *crowd) check(p *process, accepted []string) {
	p.t.Helper()
	slices.Sort(accepted)
	accepted = slices.Compact(accepted)
	v := p.only(run)
	if len(accepted) != 1 || v.Trigger == nil || v.Trigger.Trigger != accepted[0] {
		p.t.Errorf("%q were accepted, and the log tells of %+v", accepted, v.Trigger)
	}
	heard := slices.Compact(slices.Clone(c.heard))
	switch v.Status {
	case continuation.StatusResolved:
		if !slices.Equal(heard, accepted) || !slices.Equal(p.said(run), accepted) {
			p.t.Errorf("the node heard %q and said %q, want %q", c.heard, p.said(run), accepted)
		}
	case continuation.StatusCancelled:
		if len(heard) > 0 || !slices.Contains(p.kinds(run), checkpoint.Cancelled) {
			p.t.Errorf("denied, and the node heard %q: %v", heard, p.kinds(run))
		}
	default:
		p.t.Errorf("the wait is %s", v.Status)
	}
}

// A process dies when a trigger was posted and is not in the log yet. It was accepted: the next
// process takes it into the log, and goes on.
func TestCrashBehindAPost(t *testing.T) {
	store := &pawltest.Mortal{Store: &memory.Store{}}
	g := waiting(t, continuation.Wait{}, dag.Policy{}, says)
	p := begin(t, g, store, continuation.Options{})
	p.waits(run)
	if _, err := store.Acquire(t.Context(), run, "somebody at work on it"); err != nil { // else it would be in the log at once
		t.Fatal(err)
	}
	store.DieAfter(1)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); !errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the trigger: %v", err)
	}
	if err := store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := begin(t, g, store, continuation.Options{})
	if v := q.stands(run, continuation.StatusPending, ""); v.Trigger != nil {
		t.Errorf("it is in the log: %+v", v.Trigger)
	}
	if runs, err := q.rt.Recover(t.Context()); err != nil || !slices.Equal(runs, []string{run}) {
		t.Fatalf("recovered %q, %v", runs, err)
	}
	if v := q.stands(run, continuation.StatusResolved, continuation.Completed); v.Trigger.Trigger != "t" {
		t.Errorf("the wait is %+v", v)
	}
}
