package dispatcher_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A doubtRun is a run of effectful whose processes die, and whose doubts are resolved by
// looking at the other side.
type doubtRun struct {
	doubt   dag.Doubt
	eager   bool // snapshots behind every append
	bank    effectBank
	store   mortal
	doubted int
}

func (c *doubtRun) process(t *testing.T) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	var o dispatcher.Options
	if c.eager {
		o = dispatcher.Eager(o)
	}
	return process(t, effectful(t, &c.bank, dag.InDoubt(c.doubt)), &c.store, o)
}

// live is one process, which dies at append life, or brings the run as far as it goes.
func (c *doubtRun) live(t *testing.T, life int, written bool) (*dispatcher.Result[Tale], error) {
	t.Helper()
	if err := c.store.revive(t.Context(), life, written); err != nil {
		t.Fatal(err)
	}
	return c.process(t).Run(t.Context(), run, nil)
}

// resolve says of each effect in doubt what the other side tells. What is in doubt is what
// the log has begun and not ended, and can't be done again.
func (c *doubtRun) resolve(t *testing.T) {
	t.Helper()
	if err := c.store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	d := c.process(t)
	opened, err := d.Open(t.Context(), run)
	if errors.Is(err, dispatcher.ErrNotFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var doubts []string
	for _, e := range opened.InDoubt() {
		doubts = append(doubts, e.ID)
	}
	open, _ := effectsOpen(t, &c.store)
	open = slices.DeleteFunc(open, func(id string) bool { return strings.Contains(id, "#again") })
	slices.Sort(open)
	slices.Sort(doubts)
	if !slices.Equal(doubts, open) {
		t.Fatalf("in doubt are %q, and the log has begun %q", doubts, open)
	}
	c.manual(t, d, doubts)
	for _, e := range opened.InDoubt() {
		c.doubted++
		what := dispatcher.NotHappened("the bank does not know it")
		if c.bank.counts()[e.ID] > 0 {
			what = dispatcher.Happened(fmt.Sprintf("%s for %s", e.Input, e.ID))
		}
		if err := d.Resolve(t.Context(), run, e.Path, e.Key, what); err != nil {
			t.Fatal(err)
		}
	}
	c.manual(t, d, nil)
}

// manual checks that a call with Manual goes on only if nothing is in doubt. Of a call that
// would go on only the refusals of others are looked at: the context is done.
func (c *doubtRun) manual(t *testing.T, d *dispatcher.Dispatcher[Tale], doubts []string) {
	t.Helper()
	if len(doubts) == 0 {
		opened, err := d.Open(t.Context(), run)
		if err != nil || len(opened.InDoubt()) > 0 {
			t.Fatalf("in doubt are %v: %v", opened.InDoubt(), err)
		}
		return
	}
	unchanged(t, &c.store, run, func() {
		_, err := d.Resume(t.Context(), run, dispatcher.Manual())
		var refused *dispatcher.DoubtError
		if !errors.As(err, &refused) || !errors.Is(err, dag.ErrInDoubt) || len(refused.Effects) != len(doubts) {
			t.Errorf("a manual resume with %q in doubt: %v", doubts, err)
		}
		for _, id := range doubts {
			if err == nil || !strings.Contains(err.Error(), id) {
				t.Errorf("%v does not name %s", err, id)
			}
		}
	})
}

// Rule 7 and promise P2: over crashes at every append, and again in every process after, each
// doubt that is resolved by what the other side tells leaves a run that ends as if nothing had
// happened, with each effect done once, or twice under one key if it is replayable.
func TestDoubtsResolvedOverCrashes(t *testing.T) {
	t.Parallel()
	calm := &doubtRun{}
	res, err := calm.live(t, 0, false)
	completes(t, res, err)
	want, once := asJSON(t, res.State), calm.bank.counts()
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		doubted, sweeps := 0, 0
		for ; doubted < 10 && sweeps < 20 && !t.Failed(); sweeps++ {
			doubted += sweepDoubts(t, doubt, want, once)
		}
		if doubted < 10 {
			t.Errorf("%s: only %d effects were in doubt in %d sweeps", doubt, doubted, sweeps)
		}
	}
}

// sweepDoubts lets processes die at every append of a run, and returns how many effects were
// in doubt: one sweep may meet few, since visits side by side append together what they have.
func sweepDoubts(t *testing.T, doubt dag.Doubt, want string, once map[string]int) (doubted int) {
	t.Helper()
	for life := 3; ; life++ {
		c := &doubtRun{doubt: doubt, eager: life%2 == 0}
		lives := c.untilDone(t, life, want, once)
		if doubted += c.doubted; lives == 1 || t.Failed() {
			return doubted
		}
	}
}

// untilDone lets processes die at append life until the run is completed, and returns how
// many it took. Every other one dies behind its last append, and before every third one
// another process has met the doubts, if there are any.
func (c *doubtRun) untilDone(t *testing.T, life int, want string, once map[string]int) (lives int) {
	t.Helper()
	for lives = 1; lives < 100; lives++ {
		if lives%3 == 0 {
			if res, err := c.live(t, 0, false); err != nil && !c.rests(err, res) {
				t.Fatalf("%s, life=%d: %v", c.doubt, life, err)
			}
			c.resolve(t)
		}
		res, err := c.live(t, life, lives%2 == 0)
		if err == nil {
			if got := asJSON(t, res.State); got != want {
				t.Errorf("%s, life=%d: the state is %s, want %s", c.doubt, life, got, want)
			}
			for key, n := range c.bank.counts() {
				if once[key] == 0 || n > 1 && !strings.Contains(key, "#again") {
					t.Errorf("%s, life=%d: %s is done %d times", c.doubt, life, key, n)
				}
			}
			if len(c.bank.counts()) != len(once) {
				t.Errorf("%s, life=%d: done %v", c.doubt, life, c.bank.counts())
			}
			return lives
		}
		if !c.store.died() && !c.rests(err, res) {
			t.Fatalf("%s, life=%d: %v", c.doubt, life, err)
		}
		if lives%3 != 2 {
			c.resolve(t)
		}
	}
	t.Fatalf("%s, life=%d: not completed in %d lives", c.doubt, life, lives)
	return lives
}

// rests reports whether a run rests as the policy says.
func (c *doubtRun) rests(err error, res *dispatcher.Result[Tale]) bool {
	if c.doubt != dag.DoubtAsks {
		return errors.Is(err, dag.ErrInDoubt) && res.Status == checkpoint.StatusFailed
	}
	return errors.Is(err, dispatcher.ErrInterrupted) &&
		!slices.ContainsFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Kind != dispatcher.KindDoubt })
}
