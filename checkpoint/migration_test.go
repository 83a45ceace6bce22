package checkpoint_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Behind a migration a path has the new names of the nodes that it goes through, and the old
// numbers.
func TestPathsBehindAMigration(t *testing.T) {
	m := checkpoint.Migration{Nodes: map[string]string{
		"loop": "lap", "loop/draft": "lap/write", "loop/note": "", "gone": "", "a": "b", "b": "a",
	}}
	for path, want := range map[string]string{
		"":                   "",
		"end":                "end",
		"loop":               "lap",
		"loop/2":             "lap/2",
		"loop/2/draft":       "lap/2/write",
		"loop/12/check/3/in": "lap/12/check/3/in",
		"loop/2/note":        "",
		"draft":              "draft",
		"gone":               "",
		"gone/1/loop":        "",
		"goner":              "goner",
		"a":                  "b",
		"b/1":                "a/1",
	} {
		is, there := m.Renamed(path)
		if gone := want == "" && path != ""; there == gone || there && is != want {
			t.Errorf("%q is %q, and there: %v; want %q", path, is, there, want)
		}
	}
	if is, there := new(checkpoint.Migration).Renamed("loop/2/draft"); is != "loop/2/draft" || !there {
		t.Errorf("without names it is %q, %v", is, there)
	}
}
