package state_test

import (
	"fmt"
	"slices"
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

// A draft of an image in which something is pending is of what is clean there, as that of Draft.
func TestSlabDraftOfADraft(t *testing.T) {
	view := filled(t, schemaOf[every](t))
	want := view.Draft().Value().(*every)
	img := view.Draft()
	v := img.Value().(*every)
	v.Value.Set("pending")
	v.List.Append("pending")
	v.Map.Put("pending", 1)
	v.Sum.Add(1)
	v.Fold.Merge(trail{"pending"})
	var slab state.Slab
	d := slab.Draft(img)
	if delta, err := d.Delta(); err != nil || !delta.IsZero() {
		t.Errorf("a draft that nobody wrote to has the delta %s, %v", delta.AppendJSON(nil), err)
	}
	if got := d.Value().(*every); !slices.Equal(got.List.Slice(), want.List.Slice()) || got.Sum.Get() != want.Sum.Get() || got.Map.Has("pending") {
		t.Errorf("the draft shows what is pending: %v, %d", got.List.Slice(), got.Sum.Get())
	}
}

type two struct{ A, B state.Value[int] }

// Drafts of states of several types, as frames inside have them, are each what Draft returns, and
// stay so whatever is written to the others.
func TestSlabOfSeveralTypes(t *testing.T) {
	large, small, none := schemaOf[every](t), schemaOf[two](t), schemaOf[struct{}](t)
	slab := state.Slab{Most: 16}
	var drafts []state.Image
	for i := range 300 {
		for _, s := range []*state.Schema{large, small, none, none, large}[i%3:] {
			d := slab.Draft(s.New())
			switch v := d.Value().(type) {
			case *every:
				v.Sum.Add(len(drafts) + 1)
			case *two:
				v.B.Set(len(drafts) + 1)
			}
			drafts = append(drafts, d)
		}
	}
	for i, d := range drafts {
		delta, err := d.Delta()
		if err != nil {
			t.Fatal(err)
		}
		want := map[*state.Schema]string{
			large: fmt.Sprintf(`{"Sum":{"add":%d}}`, i+1), small: fmt.Sprintf(`{"B":{"set":%d}}`, i+1), none: `{}`,
		}[d.Schema()]
		if got := string(delta.AppendJSON(nil)); got != want {
			t.Fatalf("draft %d has written %s, should have %s", i, got, want)
		}
	}
}
