package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// lastScenario is the highest number in docs/scenarios.md.
const lastScenario = 44

var (
	scenarioRow  = regexp.MustCompile(`^\| (\d+) \| [^|]+ \| (.+) \|$`)
	scenarioTest = regexp.MustCompile("^`TestScenario(\\d\\d)`$")
	declaration  = regexp.MustCompile(`(?m)^func TestScenario(\d\d)\w*\(`)
)

// Every number of docs/scenarios.md has a test that bears it, or a sentence that says why
// there is none; and every test that bears a number has its row.
func TestScenariosHaveTests(t *testing.T) {
	tested := map[string]bool{}
	for _, source := range testSources(t) {
		for _, m := range declaration.FindAllStringSubmatch(source, -1) {
			tested[m[1]] = true
		}
	}
	rows := 0
	for line := range strings.Lines(read(t, "docs/scenarios.md")) {
		row := scenarioRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		rows++
		number := fmt.Sprintf("%02d", rows)
		if want := fmt.Sprint(rows); row[1] != want {
			t.Fatalf("row %s stands where %s should", row[1], want)
		}
		test := scenarioTest.FindStringSubmatch(row[2])
		switch {
		case test == nil && tested[number]:
			t.Errorf("scenario %d has a test, and the table says: %s", rows, row[2])
		case test == nil && !strings.HasPrefix(row[2], "Can't be written") && !strings.HasPrefix(row[2], "Not yet"):
			t.Errorf("scenario %d names neither a test nor a reason: %s", rows, row[2])
		case test != nil && (test[1] != number || !tested[number]):
			t.Errorf("scenario %d: no test bears the number of %s", rows, row[2])
		}
	}
	if rows != lastScenario {
		t.Errorf("%d rows, want %d", rows, lastScenario)
	}
}
