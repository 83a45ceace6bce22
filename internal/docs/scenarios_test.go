package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scenarios are the parts of docs/scenarios.md: the heading, how the tests of its numbers are
// called, and the numbers.
var scenarios = []struct {
	heading, test string
	numbers       []int
}{
	{"## Graphs and their runs", "TestScenario", upTo(44)},
	{"## What runs live through", "TestLife", []int{1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30, 32, 33, 34, 36, 37, 38, 40, 41, 42, 44, 45, 46, 48, 49, 50, 52, 53, 54, 56}},
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

var (
	scenarioRow  = regexp.MustCompile(`^\| (\d+) \| [^|]+ \| (.+) \|$`)
	scenarioTest = regexp.MustCompile("^`(Test[A-Z][a-z]+)(\\d\\d)`$")
	declaration  = regexp.MustCompile(`(?m)^func (Test(?:Scenario|Life)\d\d)\w*\(`)
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
	text := read(t, "docs/scenarios.md")
	for _, part := range scenarios {
		_, rows, found := strings.Cut(text, "\n"+part.heading+"\n")
		if !found {
			t.Fatalf("there is no part %q", part.heading)
		}
		rows, _, _ = strings.Cut(rows, "\n## ")
		var numbers []int
		for line := range strings.Lines(rows) {
			row := scenarioRow.FindStringSubmatch(strings.TrimSpace(line))
			if row == nil {
				continue
			}
			n, _ := strconv.Atoi(row[1])
			numbers = append(numbers, n)
			name := fmt.Sprintf("%s%02d", part.test, n)
			checkScenario(t, name, row[2], tested[name])
			delete(tested, name)
		}
		if !slices.Equal(numbers, part.numbers) {
			t.Errorf("%s has the rows %v, want %v", part.heading, numbers, part.numbers)
		}
	}
	for name := range tested {
		t.Errorf("%s bears a number that has no row", name)
	}
}

// checkScenario checks what a row says shows its number, of which there is a test or not.
func checkScenario(t *testing.T, name, shown string, tested bool) {
	t.Helper()
	test := scenarioTest.FindStringSubmatch(shown)
	switch {
	case test == nil && tested:
		t.Errorf("there is %s, and the table says: %s", name, shown)
	case test == nil && !strings.HasPrefix(shown, "Can't be written") && !strings.HasPrefix(shown, "Not yet"):
		t.Errorf("%s: the row names neither a test nor a reason: %s", name, shown)
	case test != nil && (test[1]+test[2] != name || !tested):
		t.Errorf("%s: no test bears the number of %s", name, shown)
	}
}
