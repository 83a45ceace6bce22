package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An effectBank is the other side of effects. It outlives processes, and counts what it was
// asked to do, by the idempotency key that it was given.
type effectBank struct {
	mu   sync.Mutex
	done map[string]int
}

// pay does it, and returns a receipt that tells how often it was done.
func (b *effectBank) pay(ctx context.Context, cents int) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = map[string]int{}
	}
	b.done[dag.Key(ctx)]++
	return fmt.Sprintf("%d for %s", cents, dag.Key(ctx)), nil
}

func (b *effectBank) counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.done)
}

// effectful is a graph with effects everywhere: in a row, from goroutines, in attempts that
// fail, refused at first, beside others and inside loops of embedded graphs. Effects named
// again… are replayable; all have the options given.
func effectful(t testing.TB, bank *effectBank, all ...dag.EffectOption) *dag.Graph[Tale] {
	t.Helper()
	do := func(ctx context.Context, s *Tale, key string, cents int) error {
		options := slices.Clone(all)
		if strings.HasPrefix(key, "again") {
			options = append(options, dag.Replayable)
		}
		receipt, err := dag.Effect(ctx, key, cents, bank.pay, options...)
		if err == nil {
			s.Notes.Put(visitPath(ctx)+"#"+key, receipt)
		}
		return err
	}
	row := func(keys ...string) part {
		return func(ctx context.Context, s *Tale) error {
			for i, key := range keys {
				if err := do(ctx, s, key, i); err != nil {
					return err
				}
			}
			s.Said.Append(visitPath(ctx))
			return nil
		}
	}
	round := dag.New[Tale]("round")
	hop := dag.Step(round, "hop", row("again"))
	dag.Step(round, "skip", row("once"), hop)
	body := frozen(t, round)
	nest := dag.New[Tale]("nest")
	dag.Loop(nest, "loop", body, func(*Tale) bool { return false }, 2)
	inner := frozen(t, nest)

	b := dag.New[Tale]("effects")
	first := dag.Step(b, "first", row("one", "again", "two"))
	side := dag.Step(b, "side", func(ctx context.Context, s *Tale) error {
		var errs [2]error
		var drafts [2]Tale
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() { errs[i] = do(ctx, &drafts[i], fmt.Sprintf("lane %d", i), i) })
		}
		all.Wait()
		for i := range 2 {
			for path, note := range drafts[i].Notes.All() {
				s.Notes.Put(path, note)
			}
		}
		return errors.Join(errs[:]...)
	}, first)
	flaky := dag.Step(b, "flaky", func(ctx context.Context, s *Tale) error {
		if err := do(ctx, s, "kept", 1); err != nil {
			return err
		}
		if dag.Attempt(ctx) == 1 {
			return errors.New("not yet")
		}
		return do(ctx, s, "second", 2)
	}, first).With(dag.Policy{Attempts: 2})
	into := dag.Embed(b, "into", inner, func(*Tale, *Tale) {}, func(from, to *Tale) {
		for path, note := range from.Notes.All() {
			to.Notes.Put(path, note)
		}
	}, first)
	dag.Step(b, "last", row("again last"), side, flaky, into)
	return frozen(t, b)
}

// Promises P2, P4, P8 and rule 7: over a crash at every append, an effect that is not
// replayable is done at most once, under one key; one whose end is durable is never done
// again; only one that was under way is in doubt. What is not in doubt ends as if nothing
// had happened.
func TestEffectsSurviveCrashes(t *testing.T) {
	t.Parallel()
	var calm effectBank
	res, err := process(t, effectful(t, &calm), new(mortal), dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	want, once := asJSON(t, res.State), calm.counts()
	if len(once) != 12 {
		t.Fatalf("the graph has %d effects: %v", len(once), once)
	}
	for _, written := range []bool{false, true} {
		doubts := 0
		for k := 1; ; k++ {
			c := effectCrash{store: new(mortal), k: k, written: written}
			crashed, doubt := c.run(t)
			if doubt {
				doubts++
			} else if got := asJSON(t, c.res.State); got != want {
				t.Errorf("crash at append %d, written=%t: the state is %s, want %s", k, written, got, want)
			}
			for key, n := range c.bank.counts() {
				if n > 1 && !strings.Contains(key, "#again") || n > 2 || once[key] == 0 {
					t.Errorf("crash at append %d, written=%t: %s is done %d times", k, written, key, n)
				}
			}
			if !doubt && len(c.bank.counts()) != len(once) {
				t.Errorf("crash at append %d, written=%t: done %v", k, written, c.bank.counts())
			}
			if !crashed || t.Failed() {
				break
			}
		}
		if doubts == 0 {
			t.Errorf("written=%t: no effect was ever in doubt", written)
		}
	}
}

// An effectCrash is a run of effectful whose first process dies at append k.
type effectCrash struct {
	bank    effectBank
	store   *mortal
	k       int
	written bool
	res     *dispatcher.Result[Tale]
}

// run brings the run to its end, or as far as it goes with an effect in doubt.
func (c *effectCrash) run(t *testing.T) (crashed, doubt bool) {
	t.Helper()
	g := effectful(t, &c.bank)
	if err := c.store.revive(t.Context(), c.k, c.written); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.res, err = process(t, g, c.store, dispatcher.Options{}).Run(t.Context(), run, nil); !c.store.died() {
		completes(t, c.res, err)
		return false, false
	}
	if !errors.Is(err, errDead) {
		t.Fatalf("crash at append %d: the store died, and the call returns %v", c.k, err)
	}
	before := c.bank.counts()
	if err := c.store.revive(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	open, ended := effectsOpen(t, c.store)
	c.res, err = process(t, g, c.store, dispatcher.Options{}).Run(t.Context(), run, nil)
	for key, n := range c.bank.counts() {
		if slices.Contains(ended, key) && n != before[key] {
			t.Errorf("crash at append %d: %s is done again, and its end is durable", c.k, key)
		}
	}
	if err == nil {
		completes(t, c.res, err)
		return true, false
	}
	c.doubted(t, err, open)
	return true, true
}

// doubted checks that the run failed because of effects that were under way, and that it
// stays so.
func (c *effectCrash) doubted(t *testing.T, err error, open []string) {
	t.Helper()
	var doubt *dag.InDoubtError
	if !errors.Is(err, dag.ErrInDoubt) || !errors.As(err, &doubt) {
		t.Fatalf("crash at append %d: %v", c.k, err)
	}
	if !slices.Contains(open, doubt.ID) || strings.Contains(doubt.ID, "#again") {
		t.Errorf("crash at append %d: in doubt is %s, under way were %q", c.k, doubt.ID, open)
	}
	before := c.bank.counts()
	_, err = process(t, effectful(t, &c.bank), c.store, dispatcher.Options{}).Resume(t.Context(), run)
	if !errors.Is(err, dag.ErrInDoubt) || !maps.Equal(c.bank.counts(), before) {
		t.Errorf("crash at append %d: the resume returns %v, and has done %v", c.k, err, c.bank.counts())
	}
}

// effectsOpen lists, by idempotency key, which effects are begun and not ended in the log,
// and which have ended.
func effectsOpen(t *testing.T, store checkpoint.Store) (open, ended []string) {
	t.Helper()
	if _, err := store.Stat(t.Context(), run); errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	for _, e := range readLog(t, store) {
		key := run + "/" + e.Path + "#" + e.ID
		switch e.Kind {
		case checkpoint.EffectBegun:
			open = append(open, key)
		case checkpoint.EffectEnded:
			open = slices.DeleteFunc(open, func(k string) bool { return k == key })
			ended = append(ended, key)
		}
	}
	return open, ended
}
