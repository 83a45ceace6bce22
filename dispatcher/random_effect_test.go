package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// effects are what the visits of a random graph do outside: most of them, one or two things,
// under keys that say nothing of the path, so that effects of other visits must not be found.
func (b *effectBank) body(ctx context.Context, visit string) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(visit))
	for i := range h.Sum32() % 3 {
		got, err := dag.Effect(ctx, fmt.Sprint("thing ", i), int(i), b.pay, dag.Replayable)
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%d for %s#thing %d", i, dag.Key(ctx), i); got != want {
			return fmt.Errorf("the effect returned %q, want %q", got, want)
		}
	}
	return nil
}

// Promises P3, P4 and P8, and rule 5: effects change nothing of what a run comes to; over a
// crash at any append, in any graph, one whose end is durable is not done again by any attempt
// of its visit, voided or not.
func TestRandomGraphsKeepTheirEffects(t *testing.T) {
	t.Parallel()
	n := 0
	eachCase(t, func(t *testing.T, c *randomCase) {
		if n++; n%40 != 0 { // a graph has many crashes
			return
		}
		for k := 1; ; k++ {
			written := k%2 == 0
			bank := &effectBank{}
			d := drive{c: c, store: new(mortal), also: bank.body, next: func(call int) (int, bool) {
				if call == 0 {
					return k, written
				}
				return 0, false
			}}
			res, err := d.end(t)
			sameRest(t, fmt.Sprintf("crash at append %d, written=%t", k, written), res, err, c.want.rest())
			c.doneOnce(t, d.store, bank)
			if d.calls == 1 || t.Failed() {
				return
			}
		}
	})
}

// doneOnce checks that an effect was done as often as the log says that it began, or one time
// less for the crash, and ended once. It may not have ended if an item was at work with it in
// the crash and an item before it has failed since: behind that no item begins again.
func (c *randomCase) doneOnce(t *testing.T, store checkpoint.Store, bank *effectBank) {
	t.Helper()
	begun, ended := map[string]int{}, map[string]int{}
	stops, failed := map[string]bool{}, map[string]int{} // of an Each: the first item that failed
	for e, err := range store.Read(t.Context(), runID, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		key := runID + "/" + e.Path + "#" + e.ID
		switch e.Kind {
		case checkpoint.EffectBegun:
			begun[key]++
		case checkpoint.EffectEnded:
			ended[key]++
		case checkpoint.Entered:
			var items checkpoint.Items
			if len(e.Data) > 0 && json.Unmarshal(e.Data, &items) == nil {
				stops[e.Path] = !items.Collect
			}
		case checkpoint.AttemptFailed:
			var a checkpoint.FailedAttempt
			if err := json.Unmarshal(e.Data, &a); err != nil {
				t.Fatal(err)
			}
			if each, n := itemOf(e.Path); a.Final && stops[each] && (failed[each] == 0 || n < failed[each]) {
				failed[each] = n
			}
		}
	}
	for key := range begun {
		visit, _, _ := strings.Cut(strings.TrimPrefix(key, runID+"/"), "#")
		if each, n := itemOf(visit); begun[key] == 1 && ended[key] == 0 && failed[each] > 0 && failed[each] < n {
			ended[key] = 1
		}
	}
	for key, n := range bank.counts() {
		if ended[key] != 1 || n > begun[key] || n < begun[key]-1 || begun[key] > 2 {
			t.Errorf("%s was done %d times, began %d and ended %d", key, n, begun[key], ended[key])
		}
	}
	for key := range begun {
		if ended[key] != 1 {
			t.Errorf("%s began %d times and ended %d", key, begun[key], ended[key])
		}
	}
}

// itemOf splits the path of a visit of an item.
func itemOf(visit string) (each string, item int) {
	item, _ = strconv.Atoi(path.Base(visit))
	return path.Dir(visit), item
}
