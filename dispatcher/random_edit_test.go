package dispatcher_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// An edit at every rest of a run that pauses is seen at once, and has nothing run again that
// had finished. What it leads to depends on neither snapshots nor on how deltas are folded; a
// refused one changes nothing.
func TestRandomGraphsEdited(t *testing.T) {
	t.Parallel()
	n, edits, hidden := 0, 0, 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%5 != 0 || len(c.want.done) == 0 {
			return
		}
		pauses := c.choosePauses(rand.New(rand.NewPCG(c.seed, 9)))
		paranoid := pauses
		paranoid.Paranoid = true
		plain, e, h := c.edited(t, pauses)
		eager, _, _ := c.edited(t, dispatcher.Eager(paranoid))
		edits, hidden = edits+e, hidden+h
		sameList(t, fmt.Sprintf("before %v, after %v", pauses.InterruptBefore, pauses.InterruptAfter), eager, plain)
	})
	if !t.Failed() && n > 100 && (edits == 0 || hidden == 0) {
		t.Errorf("%d edits were made, and %d were refused", edits, hidden)
	}
}

// edited runs c, with an edit at every rest, and tells all rests.
func (c *randomCase) edited(t *testing.T, o dispatcher.Options) (rests []string, edits, hidden int) {
	t.Helper()
	store := &mortal{snapshots: map[uint64][]byte{}}
	r := rand.New(rand.NewPCG(c.seed, 10))
	b := &bench{run: runID}
	ctx := b.context(t.Context())
	d := c.newDispatcher(t, store, o)
	res, err := d.Run(ctx, runID, inputs)
	for calls := 0; ; calls++ {
		at := restOf(res)
		rests = append(rests, fmt.Sprintf("%s at %s: %s %s", at.status, at.cursor, at.state, strings.Join(interrupts(res), " ")))
		if !c.paused(at, interrupts(res)) || calls > 50 || t.Failed() {
			sameSnapshots(t, d, runID, store)
			samePast(t, runID, store, 11, func() *dispatcher.Dispatcher[cells] { return c.newDispatcher(t, store, o) })
			return rests, edits, hidden
		}
		if err != nil && isRefusal(err) {
			t.Fatal(err)
		}
		mark := fmt.Sprintf("edit %d ", calls)
		sets := r.IntN(2) == 0
		edit := func() (err error) {
			return d.Edit(ctx, runID, func(s *cells) {
				s.L.Append(mark)
				s.N.Add(1)
				s.F.Merge(joined{mark})
				s.E.Add(mark)
				if sets {
					s.V.Set(mark)
				}
			}, dispatcher.EditOptions{})
		}
		var conflict *state.ConflictError
		var items *dispatcher.ItemsChangedError
		if err = edit(); errors.As(err, &conflict) || errors.As(err, &items) {
			hidden++
			rests = append(rests, err.Error())
			unchanged(t, store, runID, func() { _ = edit() })
		} else if err != nil {
			t.Fatalf("%s: %v", mark, err)
		} else {
			edits++
			now, err := d.State(ctx, runID)
			if err != nil || !slices.Contains(now.State.L.Slice(), mark) || sets && now.State.V.Get() != mark || now.Status == checkpoint.StatusRunning {
				t.Errorf("after %sthe run is %s: %s, %v", mark, now.Status, now.State.json(), err)
			}
			if !slices.Equal(now.Finished, res.Finished) || !slices.Equal(now.Cursor.Visits, res.Cursor.Visits) {
				t.Errorf("after %sthe run stands at %v with %v, and stood at %v with %v", mark, now.Cursor.Visits, now.Finished, res.Cursor.Visits, res.Finished)
			}
			sameMachine(t, d, runID)
		}
		res, err = d.Resume(ctx, runID)
	}
}
