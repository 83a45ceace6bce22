package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every promise of docs/promises.md names tests, and each of them exists.
func TestPromisesAreTested(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, pattern := range []string{"dispatcher/*_test.go", "checkpoint/*_test.go", "checkpoint/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(read(t, name), -1) {
				tests[m[1]] = true
			}
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
