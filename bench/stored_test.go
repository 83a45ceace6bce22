package main

import (
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Who reads something else than what was written has no figure.
func TestReadsFindWhatWasWritten(t *testing.T) {
	g := chain(3, collect)
	b, err := collected(session{dir: t.TempDir()}, g, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.discard()
	median := func(entries int) error {
		_, err := medianRead(t.Context(), b.store, session{}, entries)
		return err
	}
	w := &writer{store: b.store, run: "read"}
	for range 5 {
		if err := w.append(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		err  error
		want string // "" is none
	}{
		{"entries", readAll(3)(t.Context(), b.store), ""},
		{"entries of one more", readAll(4)(t.Context(), b.store), "run-0 has 9 entries, not 11"},
		{"entries of no run", readEntries(t.Context(), checkpoint.Store(b.store), "none", 9), "none"},
		{"state", stateOf(g, 3)(t.Context(), b.store), ""},
		{"state of one more", stateOf(g, 4)(t.Context(), b.store), "run-0 has ended 3 supersteps, not 4"},
		{"median", median(5), ""},
		{"median of one more", median(6), "read has 5 entries, not 6"},
	} {
		if (test.err == nil) != (test.want == "") || test.err != nil && !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, test.err, test.want)
		}
	}
}
