package dispatcher_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
)

// A run that is trimmed at every rest, and whose processes die after a few appends, comes to the
// end that it has undisturbed, and runs nothing again that was durable.
func TestRandomGraphsTrimmed(t *testing.T) {
	t.Parallel()
	n := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%20 != 3 {
			return
		}
		r := rand.New(rand.NewPCG(c.seed, 11))
		d := drive{c: c, store: &mortal{snapshots: map[uint64][]byte{}}}
		d.opts = dispatcher.Eager(dispatcher.Options{Retention: dispatcher.Retention{Last: 1 + r.IntN(2)}})
		d.next = func(call int) (int, bool) {
			if call%2 == 1 {
				return 0, false
			}
			return 2 + r.IntN(6) + call, r.IntN(2) == 0
		}
		res, err := d.end(t)
		sameRest(t, fmt.Sprintf("%d calls", d.calls), res, err, c.want.rest())
		trimVerified(t, d.store, runID)
		if err := d.store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		p := c.newDispatcher(t, d.store, dispatcher.Options{})
		sameSnapshots(t, p, runID, d.store)
		samePast(t, runID, d.store, 3, func() *dispatcher.Dispatcher[cells] { return c.newDispatcher(t, d.store, dispatcher.Options{}) })
		if err := p.Trim(t.Context(), runID, dispatcher.Retention{Last: 1}); err != nil {
			t.Fatal(err)
		}
		if err := p.Tag(t.Context(), runID, "", "last"); err != nil {
			t.Fatal(err)
		}
		left := 0
		for at, err := range p.History(t.Context(), runID) {
			if err != nil {
				t.Fatal(err)
			}
			if !at.Abandoned { // what was voided stays behind the last one
				left++
			}
		}
		last, err := p.HistoryOf(t.Context(), runID, dispatcher.HistoryFilter{Tags: []string{"last"}})
		if err != nil || len(last) != 1 || last[0].Abandoned {
			t.Errorf("the last checkpoint is %+v, %v", last, err)
		}
		then, err := p.State(t.Context(), runID)
		if err != nil || restOf(then) != c.want.rest() || left > 1 {
			t.Errorf("the trimmed run is %v, %v", restOf(then), err)
		}
		trimVerified(t, d.store, runID)
	})
}
