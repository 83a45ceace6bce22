package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// Every promise of docs/promises.md names tests, and each name is that of one test. Where several
// directories have it, that of the one that is meant stands before it.
func TestPromisesAreTested(t *testing.T) {
	tests := map[string]int{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for file, source := range testSources(t) {
		for _, m := range declared.FindAllStringSubmatch(source, -1) {
			tests[m[1]]++
			tests[path.Dir(file)+"."+m[1]]++
		}
	}
	named := regexp.MustCompile("`((?:[a-z/]+\\.)?Test\\w+)`")
	rows := map[byte]int{}
	for line := range strings.Lines(read(t, "docs/promises.md")) {
		if !strings.HasPrefix(line, "| P") && !strings.HasPrefix(line, "| Q") {
			continue
		}
		rows[line[2]]++
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named in %q", line)
		}
		for _, m := range names {
			if n := tests[m[1]]; n != 1 {
				t.Errorf("there are %d tests %s, want one: %q", n, m[1], line)
			}
		}
	}
	if rows['P'] != 14 || rows['Q'] != 19 {
		t.Errorf("%d promises P and %d promises Q, want 14 and 19", rows['P'], rows['Q'])
	}
}
