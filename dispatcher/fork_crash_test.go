package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A forkMortal is a run, and a fork of it whose processes die.
type forkMortal struct {
	how   dispatcher.EffectsOfFork
	edit  bool // the fork begins with one that makes p and z ask for something else
	past  memory.Store
	store pawltest.Mortal // over past
	graph *dag.Graph[Tale]

	mu   sync.Mutex
	done map[string]int // effects, by key
}

const forkID = "fork"

// newForkMortal returns a run that has ended. Behind its first superstep it has two effects side by
// side, one for each of two items, and one at the end.
func newForkMortal(t *testing.T, how dispatcher.EffectsOfFork, edit bool) *forkMortal {
	t.Helper()
	c := &forkMortal{how: how, edit: edit}
	c.store.Store = &c.past
	asks := func(about func(*Tale) string) part {
		return func(ctx context.Context, s *Tale) error {
			word, err := dag.Effect(ctx, "ask", visitPath(ctx)+" about "+about(s), c.ask)
			s.Said.Append(word)
			return err
		}
	}
	nothing := func(*Tale) string { return "nothing" }
	word := func(s *Tale) string { return s.Word.Get() }
	b := dag.New[Tale]("crashes")
	a := dag.Step(b, "a", asks(nothing))
	p := dag.Step(b, "p", asks(word), a)
	q := dag.Step(b, "q", asks(nothing), a)
	each := dag.Each(b, "each", func(*Tale) []int { return []int{1, 2} }, func(ctx context.Context, s *Tale, _ int) error {
		return asks(nothing)(ctx, s)
	}, p, q)
	dag.Step(b, "z", asks(word), each)
	c.graph = frozen(t, b)
	res, err := process(t, c.graph, &c.store, dispatcher.Options{}).Run(t.Context(), run, func(s *Tale) { s.Word.Set("w") })
	completes(t, res, err)
	c.done = map[string]int{}
	return c
}

func (c *forkMortal) ask(ctx context.Context, about string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		c.done[dag.Key(ctx)]++
	}
	return "word of " + about, nil
}

// live is one process, which dies at append life, or brings the fork as far as it goes. It does
// what a program would that is run again and again: it makes the fork unless it is there, resolves
// what is in doubt, has it run up to z, edits it there unless that was done, and has it end.
func (c *forkMortal) live(t *testing.T, life int, written bool) (*dispatcher.Result[Tale], error) {
	t.Helper()
	ctx := t.Context()
	if err := c.store.Revive(ctx); err != nil {
		t.Fatal(err)
	}
	if c.store.DieBefore(life); written {
		c.store.DieAfter(life)
	}
	o := dispatcher.Options{InterruptBefore: []string{"z"}}
	if life%2 == 0 {
		o = dispatcher.Eager(o)
	}
	d := process(t, c.graph, &c.store, o)
	w := dispatcher.ForkOptions[Tale]{Into: []string{forkID}, Effects: c.how, Reason: "what if"}
	if c.edit {
		w.Edit = func(s *Tale) { s.Word.Set("v") }
	}
	if _, err := d.Fork(ctx, run, "1", w); err != nil && !errors.Is(err, dispatcher.ErrExists) {
		return nil, err
	}
	if err := c.resolve(ctx, d); err != nil {
		return nil, err
	}
	res, err := d.Run(ctx, forkID, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		return res, err
	}
	if note, _ := res.State.Notes.Get("edit"); note == "" {
		err := d.Edit(ctx, forkID, func(s *Tale) { s.Notes.Put("edit", "before z") }, dispatcher.EditOptions{})
		if err != nil {
			return res, err
		}
	}
	return d.Resume(ctx, forkID)
}

// resolve says of each effect in doubt what the other side tells.
func (c *forkMortal) resolve(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
	opened, err := d.Open(ctx, forkID)
	if err != nil {
		return err
	}
	for _, e := range opened.InDoubt() {
		c.mu.Lock()
		what := dispatcher.NotHappened("nobody knows it")
		if c.done[e.ID] > 0 {
			what = dispatcher.Happened("word of " + string(e.Input[1:len(e.Input)-1]))
		}
		c.mu.Unlock()
		if err := d.Resolve(ctx, forkID, e.Path, e.Key, what); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what came of the fork: how it rests, with what state, and which effects were done.
func (c *forkMortal) outcome(t *testing.T, res *dispatcher.Result[Tale]) string {
	t.Helper()
	if res == nil {
		t.Fatal("there is no result")
	}
	d := process(t, c.graph, &c.store, dispatcher.Options{})
	line, err := d.Lineage(t.Context(), forkID)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s, %s, from %v; done are", res.Status, asJSON(t, res.State), line)
	for _, f := range res.Failures {
		text += fmt.Sprintf(" (%s failed)", f.Path)
	}
	for _, key := range slices.Sorted(maps.Keys(c.done)) {
		text += fmt.Sprintf(" %s×%d", key, c.done[key])
	}
	return text
}

// Promises P2 and P3 in a fork: wherever the processes die that make it, edit it, have it run and
// resolve what is in doubt, once or again and again, before an append is written or behind that,
// it ends as if nothing had happened: each effect was taken, refused, or done once under the fork's
// own key, as its policy says.
func TestForkDiesAtEveryAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how    dispatcher.EffectsOfFork
		edit   bool
		status checkpoint.Status
		done   []string
	}{
		{dispatcher.ReuseOrRefuse, false, checkpoint.StatusCompleted, nil},
		{dispatcher.ReuseOrRefuse, true, checkpoint.StatusFailed, nil},
		{dispatcher.ReuseOrLive, false, checkpoint.StatusCompleted, nil},
		{dispatcher.ReuseOrLive, true, checkpoint.StatusCompleted, []string{"fork/p#ask", "fork/z#ask"}},
		{dispatcher.Live, true, checkpoint.StatusCompleted, []string{
			"fork/each/1#ask", "fork/each/2#ask", "fork/p#ask", "fork/q#ask", "fork/z#ask",
		}},
	} {
		t.Run(fmt.Sprintf("%s, edited: %v", c.how, c.edit), func(t *testing.T) {
			t.Parallel()
			calm := newForkMortal(t, c.how, c.edit)
			res, _ := calm.live(t, 0, false)
			want := calm.outcome(t, res)
			if res.Status != c.status || !slices.Equal(slices.Sorted(maps.Keys(calm.done)), c.done) {
				t.Fatalf("without a crash the fork is %s", want)
			}
			lives := 0
			for life, died := 1, true; died && !t.Failed(); life++ {
				died, lives = false, life
				for _, again := range []bool{false, true} {
					for _, written := range []bool{false, true} {
						died = forkSweep(t, newForkMortal(t, c.how, c.edit), life, written, again, want) || died
					}
				}
			}
			diedOften(t, lives-1, 4)
		})
	}
}

// forkSweep has processes die at append life: the first one, or each. It reports whether one did.
func forkSweep(t *testing.T, c *forkMortal, life int, written, again bool, want string) (died bool) {
	t.Helper()
	for lives := 1; ; lives++ {
		at := life + lives/4 // later ones live longer: a life may be too short to come any further
		if lives > 1 && !again {
			at = 0
		}
		res, err := c.live(t, at, written)
		if c.store.Died() {
			died = true
			continue
		}
		if got := c.outcome(t, res); got != want {
			t.Errorf("life %d, written: %v, again: %v: the fork is %s (%v), want %s", life, written, again, got, err, want)
		}
		sameMachine(t, process(t, c.graph, &c.store, dispatcher.Options{}), forkID)
		forkVerified(t, &c.store, forkID)
		return died
	}
}
