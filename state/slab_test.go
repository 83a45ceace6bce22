package state_test

import (
	"testing"

	"github.com/pawlgo/pawl/state"
)

// Drafts of a slab are what Draft returns, and no two of them share memory.
func TestSlabDrafts(t *testing.T) {
	s := schemaOf[every](t)
	view := filled(t, s)
	want := string(view.AppendJSON(nil))
	slab := state.Slab{Most: 16}
	seen := map[any]bool{}
	for range 100 {
		d := slab.Draft(view)
		v := d.Value().(*every)
		if seen[v] {
			t.Fatal("two drafts have the same memory")
		}
		seen[v] = true
		if delta, err := d.Delta(); err != nil || !delta.IsZero() {
			t.Fatalf("a draft that nobody wrote to has the delta %s, %v", delta.AppendJSON(nil), err)
		}
		v.Sum.Add(1)
		v.List.Append("x")
		if got := string(d.AppendJSON(nil)); got != want {
			t.Fatalf("the draft is of %s, want %s", got, want)
		}
	}
	if got := string(view.AppendJSON(nil)); got != want {
		t.Errorf("the state has become %s, want %s", got, want)
	}
}
