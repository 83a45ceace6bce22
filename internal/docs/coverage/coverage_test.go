package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// docs/coverage.md is what is generated, and each of its rows is proven by tests that exist.
func TestCoverageIsProven(t *testing.T) {
	all, err := testsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 1000 {
		t.Errorf("only %d names of tests were found", len(all))
	}
	want, err := page(source, all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/coverage.md is not what coverage.txt says: go generate ./internal/docs")
	}
}

// Text stays as it is, and rows become a table, with a link to the file of each test.
func TestCoverageIsATable(t *testing.T) {
	all := tests{"TestOne": {"dag/one_test.go"}, "dag.TestTwo": {"dag/two_test.go"}}
	got, err := page(`# Title

A1 It does
    one thing.
  pawl: Yes.
  tests: TestOne
    dag.TestTwo
A2 And another.
  pawl: Too.
  seen: It was late.
  tests: TestOne

The end.

A3 Later.
  pawl: As well.
  tests: TestOne
`, all)
	if err != nil {
		t.Fatal(err)
	}
	want := notice + `# Title

| | capability | in pawl | seen in the original | proven by |
|---|---|---|---|---|
| A1 | It does one thing. | Yes. |  | [TestOne](../dag/one_test.go), [TestTwo](../dag/two_test.go) |
| A2 | And another. | Too. | It was late. | [TestOne](../dag/one_test.go) |

The end.

| | capability | in pawl | proven by |
|---|---|---|---|
| A3 | Later. | As well. | [TestOne](../dag/one_test.go) |
`
	if got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}

// A row that nothing proves, or that says less than a row has to, is refused by line and name.
func TestCoverageRefused(t *testing.T) {
	all := tests{"TestOne": {"dag/one_test.go"}, "TestStore": {"b/store_test.go", "a/store_test.go"}}
	for source, want := range map[string]string{
		"A1 It.\n  pawl: Yes.\n":                                   "coverage.txt:1: no test proves A1",
		"A1 It.\n  pawl: Yes.\n  tests: TestTwo\n":                 "A1: there is no test TestTwo",
		"A1 It.\n  pawl: Yes.\n  tests: TestStore\n":               "TestStore may be any of a.TestStore, b.TestStore",
		"A1 It.\n  tests: TestOne\n":                               "A1 does not say what pawl has",
		"\nA2 It.\n  pawl: Yes.\n  tests: TestOne\n":               "coverage.txt:2: row A2 stands where A1 is expected",
		"A1 It.\n  pawl: Yes.\n  pawl: Yes.\n  tests: TestOne\n":   "coverage.txt:3: A1 has pawl twice",
		"A1 It.\n  pawl: Yes.\n  proof: None.\n  tests: TestOne\n": `A1 has a field "proof"`,
	} {
		if _, err := page(source, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, want %q", source, err, want)
		}
	}
}
