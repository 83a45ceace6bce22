package record_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/record"
)

// A record that is too damaged to be read hides no version of another, older or newer; of a version that is in no other
// it is not said that there is none.
func TestVersionsAreFoundBesideADamagedRecord(t *testing.T) {
	var s memory.Faulty
	l := ledgerOver(t, &s, nil)
	versions := map[string]*record.Version{}
	for _, id := range []string{"a", "b", "c"} {
		r := draft(id)
		r.Task.Goal = "walk to " + id
		v, err := l.Create(t.Context(), r, bot)
		done(t, err)
		versions[id] = v
	}
	merged, err := l.Merge(t.Context(), "c", "b", record.PreferA, ann)
	done(t, err)
	all, err := l.Ancestors(t.Context(), merged.Record.ContentHash)
	if err != nil || len(all) != 2 {
		t.Fatalf("the ancestors of the merge are %v, %v, want those in b and c", all, err)
	}

	s.Spoil("pawl.record/b", checkpoint.PartInfo)
	for _, want := range []*record.Version{versions["a"], versions["c"], merged} {
		v, err := l.GetByHash(t.Context(), want.Record.ContentHash)
		if err != nil || v.Record.ID != want.Record.ID || v.Number != want.Number {
			t.Errorf("version %d of %s: %+v, %v", want.Number, want.Record.ID, v, err)
		}
	}
	for _, hash := range []string{versions["b"].Record.ContentHash, "another"} {
		if _, err := l.GetByHash(t.Context(), hash); !errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, record.ErrNotFound) {
			t.Errorf("the version of %q: %v, want that b is damaged", hash, err)
		}
	}
	if all, err := l.Ancestors(t.Context(), merged.Record.ContentHash); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("the ancestors of the merge are %v, %v, want that b is damaged", all, err)
	}
	if all, err := l.Ancestors(t.Context(), versions["c"].Record.ContentHash); err != nil || len(all) > 0 {
		t.Errorf("the first version of c has the ancestors %v, %v", all, err)
	}
}
