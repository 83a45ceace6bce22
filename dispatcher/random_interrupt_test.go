package dispatcher_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// pauses chooses some visits of the run of c before and after which it pauses, by the path
// of the visit or by that of the node. It returns them as options, and as the visits meant.
func (c *randomCase) pauses(r *rand.Rand) (o dispatcher.Options, before, after map[string]bool) {
	before, after = map[string]bool{}, map[string]bool{}
	names := []*[]string{&o.InterruptBefore, &o.InterruptAfter}
	for range 1 + r.IntN(3) {
		visit, _, _ := strings.Cut(c.want.done[r.IntN(len(c.want.done))], "@")
		side := r.IntN(2)
		meant := []map[string]bool{before, after}[side]
		if r.IntN(2) == 0 {
			*names[side] = append(*names[side], visit)
			meant[visit] = true
			continue
		}
		node := nodePath(visit)
		*names[side] = append(*names[side], node)
		for _, done := range c.want.done {
			if other, _, _ := strings.Cut(done, "@"); nodePath(other) == node {
				meant[other] = true
			}
		}
	}
	return o, before, after
}

// nodePath is the path of a visit without its iterations.
func nodePath(visit string) string {
	parts := strings.Split(visit, "/")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.Trim(p, "0123456789") == "" }), "/")
}

// Rule 8: a run that pauses rests where the reference does, each time, and ends as it
// would have.
func TestRandomGraphsPause(t *testing.T) {
	eachCase(t, func(t *testing.T, c *randomCase) {
		if len(c.want.done) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(c.seed, 5))
		o, before, after := c.pauses(r)
		o.Paranoid = r.IntN(2) == 0
		want := newReference(c.spec, fill(input, "input", ""))
		want.before, want.after = before, after
		want.run()
		store := new(mortal)
		b := &bench{run: runID}
		ctx := b.context(t.Context())
		res, err := c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
		for rests := 1; ; rests++ {
			what := fmt.Sprintf("before %v, after %v, rest %d", o.InterruptBefore, o.InterruptAfter, rests)
			sameRest(t, what, res, err, want.rest())
			sameList(t, what+": interrupts", interrupts(res), want.root.interrupts(nil))
			if want.status != checkpoint.StatusInterrupted || t.Failed() {
				break
			}
			if r.IntN(3) == 0 { // Run ends no interrupt
				res, err = c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
				sameRest(t, what+", run again", res, err, want.rest())
			}
			want.resume()
			res, err = c.newDispatcher(t, store, o).Resume(ctx, runID)
		}
		c.pausedOnce(t, store, before, after)
	})
}

// pausedOnce checks that each visit meant has paused the run once, and no other.
func (c *randomCase) pausedOnce(t *testing.T, store *mortal, before, after map[string]bool) {
	t.Helper()
	want := map[string]int{}
	for path := range before {
		want["before "+path] = 1
	}
	for path := range after {
		want["after "+path] = 1
	}
	for pause, n := range store.pauses {
		if n != want[pause] {
			t.Errorf("paused %s %d times, want %d", pause, n, want[pause])
		}
	}
	if c.want.status == checkpoint.StatusCompleted {
		sameList(t, "pauses", slices.Collect(maps.Keys(store.pauses)), slices.Collect(maps.Keys(want)))
	}
}

func interrupts(res *dispatcher.Result[cells]) []string {
	var all []string
	for _, i := range res.Interrupts {
		all = append(all, i.Kind+" "+i.Path)
	}
	return all
}

// interrupts lists what waits for a resume.
func (f *refFrame) interrupts(all []string) []string {
	for _, path := range f.held {
		all = append(all, "after "+path)
	}
	for _, t := range f.open {
		switch {
		case t.inner != nil:
			all = t.inner.interrupts(all)
		case t.phase == refWaits:
			all = append(all, "before "+t.path)
		}
	}
	return all
}

// Pauses survive crashes: each comes once, and the end is the same.
func TestRandomGraphsPauseAndCrash(t *testing.T) {
	eachCase(t, func(t *testing.T, c *randomCase) {
		if len(c.want.done) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(c.seed, 6))
		o, before, after := c.pauses(r)
		d := drive{c: c, store: new(mortal), opts: o}
		d.next = func(call int) (int, bool) { return 2 + r.IntN(3) + call/8, r.IntN(2) == 0 }
		res, err := d.end(t)
		sameRest(t, fmt.Sprintf("before %v, after %v, %d calls", o.InterruptBefore, o.InterruptAfter, d.calls), res, err, c.want.rest())
		c.pausedOnce(t, d.store, before, after)
	})
}
