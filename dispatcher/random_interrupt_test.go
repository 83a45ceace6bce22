package dispatcher_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// choosePauses chooses some visits of the run of c before and after which it pauses, by
// the path of the visit or by that of the node.
func (c *randomCase) choosePauses(r *rand.Rand) (o dispatcher.Options) {
	for range 1 + r.IntN(3) {
		name, _, _ := strings.Cut(c.want.done[r.IntN(len(c.want.done))], "@")
		if in, i := c.spec.place(name); isItem(name) && !in.Nodes[i].Collect && in.Nodes[i].Parallel != 1 {
			continue // which items fail behind one that waits is timing
		}
		if r.IntN(2) == 0 {
			name = iteration.ReplaceAllString(name, "")
		}
		if r.IntN(2) == 0 {
			o.InterruptBefore = append(o.InterruptBefore, name)
		} else {
			o.InterruptAfter = append(o.InterruptAfter, name)
		}
	}
	return o
}

// iteration is what the path of a visit has and that of its node has not.
var iteration = regexp.MustCompile(`/\d+\b`)

// Rule 8: a run that pauses rests where the reference does, each time, and ends as it
// would have.
func TestRandomGraphsPause(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		if len(c.want.done) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(c.seed, 5))
		o := c.choosePauses(r)
		o.Paranoid = r.IntN(2) == 0
		want := c.pausing(o)
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
			if want.status == checkpoint.StatusInterrupted && r.IntN(3) == 0 { // Run ends no interrupt
				res, err = c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
				sameRest(t, what+", run again", res, err, want.rest())
			}
			want.resume()
			res, err = c.newDispatcher(t, store, o).Resume(ctx, runID)
		}
		pausedAlike(t, store, want)
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

// pausedAlike checks that the run has paused where the reference did, and once at each
// visit, unless the frame that the visit is in was voided: then it is another visit.
func pausedAlike(t *testing.T, store *mortal, want *reference) {
	t.Helper()
	var got []string
	for pause, n := range store.pauses {
		if n != 1 && !want.voided {
			t.Errorf("paused %s %d times", pause, n)
		}
		got = append(got, slices.Repeat([]string{pause}, n)...)
	}
	sameList(t, "pauses", got, want.paused)
}

func interrupts(res *dispatcher.Result[cells]) []string {
	var all []string
	for _, i := range res.Interrupts {
		all = append(all, string(i.Kind)+" "+i.Path)
	}
	return all
}

// Pauses survive crashes: each comes once, and the end is the same.
func TestRandomGraphsPauseAndCrash(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, c *randomCase) {
		if len(c.want.done) == 0 {
			return
		}
		r := rand.New(rand.NewPCG(c.seed, 6))
		o := c.choosePauses(r)
		d := drive{c: c, store: new(mortal), opts: o}
		d.next = func(call int) (int, bool) { return 2 + r.IntN(3) + call/8, r.IntN(2) == 0 }
		res, err := d.end(t)
		want := c.pausing(o)
		for c.paused(want.rest(), want.root.interrupts(nil)) {
			want.resume()
		}
		sameRest(t, fmt.Sprintf("before %v, after %v, %d calls", o.InterruptBefore, o.InterruptAfter, d.calls), res, err, want.rest())
		if !want.voided { // else the crashes decide how often it was
			pausedAlike(t, d.store, want)
		}
	})
}

// pausing runs the reference until its first pause.
func (c *randomCase) pausing(o dispatcher.Options) *reference {
	r := newReference(c.spec, c.rules, fill(input, "input", ""))
	r.before, r.after = o.InterruptBefore, o.InterruptAfter
	return r.run()
}
