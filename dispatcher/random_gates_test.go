package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// gated reports whether it is gates, and not an interceptor, that want the approval of a visit.
func (c *randomCase) gated(path string) bool {
	in, i := c.spec.place(path)
	if i < 0 || c.rules(path) != ruleAsk || chance(2, "gated", path) == 0 {
		return false
	}
	n := in.Nodes[i]
	return n.Body == nil && (n.Kind != dag.KindEach || isItem(path))
}

// waitsTwice reports whether several interceptors, beside the gates, want the approval of a visit
// at once. All are answered alike.
func (c *randomCase) waitsTwice(path string) bool { return chance(2, "waits twice", path) == 0 }

// pauses lets runs that ask pause before some visits as well, of which others wait again, for an
// approval or an answer.
func (c *randomCase) pauses(b dispatcher.Boundary) bool {
	return !b.After && chance(6, "pauses", strconv.FormatUint(c.seed, 10), b.Path) == 0
}

// gates want approvals of those visits, and of most effects.
func (c *randomCase) gates() dispatcher.Gates {
	return dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) {
		if a.Effect == "" {
			return c.gated(a.Path), nil
		}
		return chance(4, "gated", a.Path, a.Effect) > 0, nil
	}}
}

// gatedBody does, in some visits, one or two effects that may need an approval, and goes on
// without those that are rejected.
func (b *effectBank) gatedBody(t *testing.T, c *randomCase) func(context.Context, string) error {
	return func(ctx context.Context, visit string) error {
		for i := range max(0, chance(8, "effects", strconv.FormatUint(c.seed, 10), visit)-5) {
			key := fmt.Sprint("thing ", i)
			_, err := dag.Effect(ctx, key, i, func(ctx context.Context, i int) (string, error) {
				if asks, _ := c.gates().If(dispatcher.Action{Path: visit, Effect: key}); asks && !approves(visit+"#"+key) {
					t.Errorf("%s#%s is done, and was rejected", visit, key)
				}
				return b.pay(ctx, i)
			}, dag.Replayable)
			if err != nil && !errors.Is(err, dag.ErrDenied) {
				return err
			}
		}
		return nil
	}
}

// approvedFirst checks in the log that no effect that needs an approval began before it was given,
// and that each approval was spent by one effect, which goes on under it until it ends. It counts
// them.
func (c *randomCase) approvedFirst(t *testing.T, store checkpoint.Store) (approvals int) {
	t.Helper()
	asked, approved, spent := map[string]string{}, map[string]bool{}, map[string]bool{}
	under := map[string]string{} // of effects that have begun and not ended
	for e, err := range store.Read(t.Context(), runID, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		effect := e.Path + "#" + e.ID
		switch e.Kind {
		case checkpoint.Interrupted:
			var i checkpoint.Interrupt
			if err := json.Unmarshal(e.Data, &i); err != nil {
				t.Fatal(err)
			}
			if i.Kind == "effect" {
				asked[e.ID] = e.Path + "#" + i.Key
			}
		case checkpoint.Answered:
			var a checkpoint.Answer
			if err := json.Unmarshal(e.Data, &a); err != nil {
				t.Fatal(err)
			}
			approved[e.ID] = string(a.Value) == `"approve"`
		case checkpoint.EffectBegun:
			var b checkpoint.BegunEffect
			if err := json.Unmarshal(e.Data, &b); err != nil {
				t.Fatal(err)
			}
			asks, _ := c.gates().If(dispatcher.Action{Path: e.Path, Effect: e.ID})
			switch goesOn := under[effect] == b.Approval; {
			case asks != (b.Approval != ""):
				t.Errorf("entry %d: %s begins under the approval %q, needed=%t", e.Seq, effect, b.Approval, asks)
			case asks && (asked[b.Approval] != effect || !approved[b.Approval] || spent[b.Approval] && !goesOn):
				t.Errorf("entry %d: %s begins under the approval of %q, approved=%t, spent=%t",
					e.Seq, effect, asked[b.Approval], approved[b.Approval], spent[b.Approval])
			}
			spent[b.Approval], under[effect] = true, b.Approval
		case checkpoint.EffectEnded:
			delete(under, effect)
		}
	}
	delete(spent, "")
	return len(spent)
}
