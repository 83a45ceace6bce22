package badgerstore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Badger still says by its log what an alarm listens for: its errors are nowhere else.
func TestAlarmKnowsWhatBadgerSays(t *testing.T) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dgraph-io/badger/v4")
	list.Env = append(os.Environ(), "GOWORK=off") // the workspace keeps sums of what is listed
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d sources, %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, call := range []string{`Errorf("` + flushFailed, compactionFailed} {
		if !strings.Contains(all.String(), call) {
			t.Errorf("nothing in Badger says %q", call)
		}
	}
}
