package checkpoint_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// However deep a node is, behind a migration each part of its path is what the node of that part is
// called from then on: of the new path of a node the path takes the last part alone.
func TestDeepPathsBehindAMigration(t *testing.T) {
	m := checkpoint.Migration{Nodes: map[string]string{
		"day": "date", "day/round": "date/lap", "day/round/draft": "date/lap/write",
		"day/round/draft/line": "date/lap/write/row", "night/round/draft": "night/round/sleep", "night/round/note": "",
	}}
	for path, want := range map[string]string{
		"day/round":                "date/lap",
		"day/1/round/2":            "date/1/lap/2",
		"day/1/round/2/draft":      "date/1/lap/2/write",
		"day/1/round/draft/3/line": "date/1/lap/write/3/row",
		"day/1/round/2/check":      "date/1/lap/2/check",
		"night/1/round/2/draft/3":  "night/1/round/2/sleep/3",
		"night/1/round/2/note/3":   "",
	} {
		is, there := m.Renamed(path)
		if there != (want != "") || there && is != want {
			t.Errorf("%q is %q, and there: %v; want %q", path, is, there, want)
		}
	}
}
