package pawltest

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Beside a failure are the entries of the other items of an Each, behind an attempt that failed of
// one of them; when several have failed, of all of them. An Each that begins anew has no failure
// yet, and what is in no Each that has begun is beside none.
func TestBesideFailed(t *testing.T) {
	log := []struct {
		kind   checkpoint.Kind
		path   string
		beside bool
	}{
		{checkpoint.AttemptFailed, "each/1", false}, // of an Each whose beginning the log has lost
		{checkpoint.Done, "each/2", false},
		{checkpoint.Entered, "each", false},
		{checkpoint.Entered, "each/1/inside", false},
		{checkpoint.Done, "each/1", false},
		{checkpoint.AttemptFailed, "each/2", false},
		{checkpoint.Done, "each/2/inside", false},
		{checkpoint.AttemptFailed, "each/2", false},
		{checkpoint.Done, "each/3", true},
		{checkpoint.Done, "each/20", true}, // whose name begins as that of the one that failed
		{checkpoint.Done, "other", false},
		{checkpoint.Done, "each", false},
		{checkpoint.AttemptFailed, "each/3", true},
		{checkpoint.Done, "each/2", true}, // another one has failed by now
		{checkpoint.Done, "each/3", true}, // and it is beside the first one
		{checkpoint.Entered, "each", false},
		{checkpoint.Done, "each/3", false},

		{checkpoint.Entered, "embed", false},
		{checkpoint.AttemptFailed, "embed/a", false}, // no item
		{checkpoint.Done, "embed/b", false},

		{checkpoint.Entered, "each/4/each", false},
		{checkpoint.AttemptFailed, "each/4/each/1", false}, // an attempt of item 4 as well
		{checkpoint.Done, "each/4/each/2", true},
		{checkpoint.Done, "each/5", true},
		{checkpoint.Entered, "each/5/each", true},
		{checkpoint.Done, "each/5/each/1", true}, // beside what failed in the outer Each
	}
	entries := make([]checkpoint.Entry, len(log))
	for i, e := range log {
		entries[i] = checkpoint.Entry{Kind: e.kind, Path: e.path}
	}
	for i, beside := range besideFailed(entries) {
		if e := log[i]; beside != e.beside {
			t.Errorf("entry %d, %s of %s: beside a failure: %t, want %t", i+1, e.kind, e.path, beside, e.beside)
		}
	}
}
