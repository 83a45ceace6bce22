package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// amends counts what edits came to.
type amends struct{ made, inside, hidden, items atomic.Int32 }

// An edit of any frame at work, the run's own, an iteration's, an item's or an Embed's, at every
// rest of a run, leads to what the reference comes to with it: at every further rest and at the
// end. It is refused where the reference says so, and changes nothing then.
func TestRandomGraphsEditedAgreeWithReference(t *testing.T) {
	t.Parallel()
	var count amends
	t.Run("seeds", func(t *testing.T) {
		n := 0
		eachCase(t, func(t *testing.T, c *randomCase) {
			if n++; n%4 != 0 || len(c.want.done) == 0 {
				return
			}
			c.amended(t, &count)
		})
	})
	cases, _ := randomCases()
	t.Logf("%d edits, %d of them inside; %d would be hidden, %d change items",
		count.made.Load(), count.inside.Load(), count.hidden.Load(), count.items.Load())
	if len(cases) >= 1000 && (count.inside.Load() == 0 || count.hidden.Load() == 0 || count.items.Load() == 0) {
		t.Error("some of this was never tried")
	}
}

// amended runs c beside the reference, with an edit at every rest.
func (c *randomCase) amended(t *testing.T, count *amends) {
	t.Helper()
	r := rand.New(rand.NewPCG(c.seed, 12))
	o := c.choosePauses(r)
	o.Paranoid = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		o = dispatcher.Eager(o)
	}
	want := c.pausing(o)
	store := &mortal{snapshots: map[uint64][]byte{}}
	b := &bench{run: runID}
	ctx := b.context(t.Context())
	res, err := c.newDispatcher(t, store, o).Run(ctx, runID, inputs)
	for rests := 1; ; rests++ {
		what := fmt.Sprintf("before %v, after %v, rest %d", o.InterruptBefore, o.InterruptAfter, rests)
		sameRest(t, what, res, err, want.rest())
		if !c.paused(want.rest(), want.root.interrupts(nil)) || t.Failed() {
			break
		}
		for number := range 1 + r.IntN(2) {
			frames := want.root.frames(nil)
			f := frames[r.IntN(len(frames))]
			if writes := editOf(100*rests+number, r.IntN); len(writes) > 0 {
				c.amend(t, ctx, store, o, want.root, f, writes, count)
			}
		}
		now, err2 := c.newDispatcher(t, store, o).State(ctx, runID)
		if err2 != nil || restOf(now) != want.rest() {
			t.Fatalf("%s, edited: the run is %v, %v\nthe reference is %v", what, restOf(now), err2, want.rest())
		}
		want.resume()
		res, err = c.newDispatcher(t, store, o).Resume(ctx, runID)
	}
	sameSnapshots(t, c.newDispatcher(t, store, o), runID, store)
}

// amend edits a frame of the run and of the reference.
func (c *randomCase) amend(
	t *testing.T, ctx context.Context, store *mortal, o dispatcher.Options, root, f *refFrame, writes []cellOp, count *amends,
) {
	t.Helper()
	d := c.newDispatcher(t, store, o)
	edit := func() error {
		if c.spec.grouped(f.path) {
			return dispatcher.EditOf(ctx, d, runID, func(g *grouped) { g.Group.write(writes) }, dispatcher.EditOptions{Frame: f.path})
		}
		return d.Edit(ctx, runID, func(s *cells) { s.write(writes) }, dispatcher.EditOptions{Frame: f.path})
	}
	wrong := f.edit(writes, root.over(false, map[*refTask]bool{}))
	var err error
	if wrong != "" {
		unchanged(t, store, runID, func() { err = edit() })
	} else {
		err = edit()
	}
	var conflict *state.ConflictError
	var items *dispatcher.ItemsChangedError
	got := ""
	switch {
	case errors.As(err, &conflict):
		got = "hidden"
		count.hidden.Add(1)
	case errors.As(err, &items):
		got = "items"
		count.items.Add(1)
	case err == nil && f.path != "":
		count.inside.Add(1)
	}
	if err == nil {
		count.made.Add(1)
	}
	if got != wrong || got == "" && err != nil {
		t.Fatalf("edit %v of frame %q: %v; the reference says %q", writes, f.path, err, wrong)
	}
	c.sameFrame(t, d, f)
}

// sameFrame compares the state of a frame with that of the reference.
func (c *randomCase) sameFrame(t *testing.T, d *dispatcher.Dispatcher[cells], f *refFrame) {
	t.Helper()
	var got string
	var err error
	if c.spec.grouped(f.path) {
		var res *dispatcher.Result[grouped]
		if res, err = dispatcher.StateOf[grouped](t.Context(), d, runID, f.path); err == nil {
			got = res.State.Group.json()
		}
	} else {
		var res *dispatcher.Result[cells]
		if res, err = dispatcher.StateOf[cells](t.Context(), d, runID, f.path); err == nil {
			got = res.State.json()
		}
	}
	if err != nil || got != f.state.json() {
		t.Fatalf("frame %q is %s, %v\nthe reference: %s", f.path, got, err, f.state.json())
	}
}
