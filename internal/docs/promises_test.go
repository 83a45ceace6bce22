package docs

import (
	"regexp"
	"strings"
	"testing"
)

// Every promise of docs/promises.md names tests, and each of them exists.
func TestPromisesAreTested(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, source := range testSources(t) {
		for _, m := range declared.FindAllStringSubmatch(source, -1) {
			tests[m[1]] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	rows := 0
	for line := range strings.Lines(read(t, "docs/promises.md")) {
		if !strings.HasPrefix(line, "| P") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named in %q", line)
		}
		for _, m := range names {
			if !tests[m[1]] {
				t.Errorf("there is no %s: %q", m[1], line)
			}
		}
	}
	if rows != 14 {
		t.Errorf("%d promises, want 14", rows)
	}
}
