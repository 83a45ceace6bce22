package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What differs between two checkpoints is told cell by cell, in the round of a loop as well.
func TestDiff(t *testing.T) {
	store := t.TempDir()
	ask(t, store, "-run", "maze").exits(t, 0)
	o := archivist(t, "-store", store, "-diff", "2", "3").exits(t, 0)
	if lines := strings.Split(o.stdout, "\n"); !slices.Contains(lines, `+ Intent: "search"`) || strings.Contains(o.stdout, "Query") {
		t.Errorf("-diff 2 3 prints\n%s", o.stdout)
	}
	if o := archivist(t, "-store", store, "-run", "maze", "-diff", "3", "3").exits(t, 0); o.stdout != "" {
		t.Errorf("nothing differs and is told as\n%s", o.stdout)
	}
	o = archivist(t, "-store", store, "-json", "-diff", "compose-loop/1@2", "compose-loop/2@2").exits(t, 0)
	var found comparison
	if err := json.Unmarshal([]byte(o.stdout), &found); err != nil {
		t.Fatal(err)
	}
	cells := map[string]bool{}
	for _, c := range found.Cells {
		cells[c.Cell] = true
	}
	if want := map[string]bool{"Draft": true, "Attempts": true, "FailureCause": true, "Approved": true}; !maps.Equal(cells, want) {
		t.Errorf("the drafts differ in %v, want %v", cells, want)
	}
	if found.Run != "maze" || !strings.HasPrefix(found.From, "maze@") || !strings.HasPrefix(found.To, "maze@") || found.From == found.To {
		t.Errorf("compared %s with %s of run %q", found.From, found.To, found.Run)
	}
	for _, at := range []string{"99", "nowhere@1"} {
		archivist(t, "-store", store, "-diff", "1", at).complains(t, 1, at)
	}
	archivist(t, "-store", store, "-run", "other", "-diff", "1", "2").complains(t, 1, "other")
}
