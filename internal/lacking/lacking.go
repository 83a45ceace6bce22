// Package lacking is for tests that need of a machine what it may lack: root, a loop device,
// ptrace.
package lacking

import (
	"os"
	"testing"
)

// Skip skips a test that can't be done here, for want of what the words name. Where PAWL_COMPLETE
// is set the test fails: so it is known that none was left out.
func Skip(t *testing.T, words ...any) {
	t.Helper()
	if os.Getenv("PAWL_COMPLETE") != "" {
		t.Fatal(append([]any{"PAWL_COMPLETE is set, and this machine lacks something:"}, words...)...)
	}
	t.Skip(words...)
}
