package dispatcher_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// pauses chooses some visits of the run of c before and after which it pauses, by the path
// of the visit or by that of the node. It returns them as options, and as the visits meant.
func (c *randomCase) choosePauses(r *rand.Rand) (o dispatcher.Options, before, after map[string]bool) {
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
		o, before, after := c.choosePauses(r)
		o.Paranoid = r.IntN(2) == 0
		want := c.pausing(before, after)
		store := new(mortal)
		b := &bench{run: runID}
		ctx := b.context(t.Context())
		res, err := c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
		for rests := 1; ; rests++ {
			what := fmt.Sprintf("before %v, after %v, rest %d", o.InterruptBefore, o.InterruptAfter, rests)
			sameRest(t, what, res, err, want.rest())
			sameList(t, what+": interrupts", interrupts(res), want.root.interrupts(nil))
			if !c.paused(want.rest(), want.root.interrupts(nil)) || t.Failed() {
				break
			}
			if r.IntN(3) == 0 { // Run ends no interrupt
				res, err = c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
				sameRest(t, what+", run again", res, err, want.rest())
			}
			want.resume()
			res, err = c.newDispatcher(t, store, o).Resume(ctx, runID)
		}
		pausedOnce(t, store, want)
	})
}

// paused reports whether a resume may go on from this rest: something waits, and the run
// has not failed at a dag.Fail, where it would fail again.
func (c *randomCase) paused(at rest, interrupts []string) bool {
	if at.status == checkpoint.StatusFailed {
		for path := range strings.SplitSeq(at.cursor, ",") {
			if c.spec.at(path).Kind == dag.KindFail {
				return false
			}
		}
	}
	return len(interrupts) > 0
}

// pausedOnce checks that the run has paused where the reference did, and each time once.
func pausedOnce(t *testing.T, store *mortal, want *reference) {
	t.Helper()
	for pause, n := range store.pauses {
		if n != 1 {
			t.Errorf("paused %s %d times", pause, n)
		}
	}
	sameList(t, "pauses", slices.Collect(maps.Keys(store.pauses)), want.paused)
}

func interrupts(res *dispatcher.Result[cells]) []string {
	var all []string
	for _, i := range res.Interrupts {
		all = append(all, i.Kind+" "+i.Path)
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
		o, before, after := c.choosePauses(r)
		d := drive{c: c, store: new(mortal), opts: o}
		d.next = func(call int) (int, bool) { return 2 + r.IntN(3) + call/8, r.IntN(2) == 0 }
		res, err := d.end(t)
		want := c.pausing(before, after)
		for c.paused(want.rest(), want.root.interrupts(nil)) {
			want.resume()
		}
		sameRest(t, fmt.Sprintf("before %v, after %v, %d calls", o.InterruptBefore, o.InterruptAfter, d.calls), res, err, want.rest())
		if !want.fault { // else what was voided inside of frames is visited again, and pauses
			pausedOnce(t, d.store, want)
		}
	})
}

// pausing runs the reference until its first pause.
func (c *randomCase) pausing(before, after map[string]bool) *reference {
	r := newReference(c.spec, fill(input, "input", ""))
	r.before, r.after = before, after
	return r.run()
}
