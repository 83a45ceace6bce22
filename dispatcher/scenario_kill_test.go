//go:build unix

package dispatcher_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
)

// The environment of a process that is to be killed.
const (
	envDir   = "PAWL_TEST_CRASH_DIR"
	envPoint = "PAWL_TEST_CRASH_POINT" // the number of the append at which it dies
	envMode  = "PAWL_TEST_CRASH_MODE"  // before, under or after it
)

// doomed is what the process does that is to be killed: it runs a diamond over Badger.
func doomed(t *testing.T, dir string) {
	inner, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	point, _ := strconv.Atoi(os.Getenv(envPoint))
	mode := os.Getenv(envMode)
	kill := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	store := &tampered{Store: inner,
		before: func(_ context.Context, c call) error {
			switch {
			case c.method != "Append" || c.n != point:
			case mode == "before":
				kill()
				select {}
			case mode == "under":
				go kill() // the append is under way when it strikes, or hardly
			}
			return nil
		},
		after: func(c call, err error) error {
			if c.method == "Append" && c.n == point {
				kill()
				select {}
			}
			return err
		},
	}
	res, err := process(t, diamond(t, begunIn(dir)), store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
}

// begunIn notes the bodies that begin in a file: it outlives the process.
func begunIn(dir string) func(path string) {
	return func(path string) {
		f, err := os.OpenFile(dir+".begun", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		if _, err := f.WriteString(path + "\n"); err != nil {
			panic(err)
		}
	}
}

// killAt lets a process die at append point, and checks what a new one makes of it. It
// reports whether the first process died.
func killAt(t *testing.T, test, mode string, point int) bool {
	dir := filepath.Join(t.TempDir(), "store")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	child.Env = append(os.Environ(), envDir+"="+dir, envMode+"="+mode, envPoint+"="+strconv.Itoa(point))
	out, err := child.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process to be killed ended with %v:\n%s", err, out)
	}

	store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{})
	if err != nil {
		t.Fatalf("append %d: the store can't be opened again: %v", point, err)
	}
	defer store.Close()
	d := process(t, diamond(t, begunIn(dir)), store, dispatcher.Options{})
	var kept []string
	if res, err := d.State(t.Context(), run); err == nil {
		kept = consistent(t, res, readLog(t, store))
		if res.Status != checkpoint.StatusRunning && res.Status != checkpoint.StatusCompleted {
			t.Errorf("append %d: the run that was left behind is %s", point, res.Status)
		}
	} else if point > 1 || !errors.Is(err, dispatcher.ErrNotFound) {
		t.Fatalf("append %d: the run can't be read: %v", point, err)
	}
	if err := os.Rename(dir+".begun", dir+".before"); err != nil && (point > 1 || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, told...)
	again, _ := os.ReadFile(dir + ".begun")
	for _, visit := range strings.Fields(string(again)) {
		if slices.Contains(kept, visit) {
			t.Errorf("append %d, killed %s: %s was durable and ran again", point, mode, visit)
		}
	}
	return true
}

// Scenario 27: whatever was durable when the process was killed does not run again.
func TestScenario27KilledBetweenSupersteps(t *testing.T) {
	if dir := os.Getenv(envDir); dir != "" {
		doomed(t, dir)
		return
	}
	for _, mode := range []string{"before", "after"} {
		point := 1
		for killAt(t, "TestScenario27KilledBetweenSupersteps", mode, point) {
			point++
		}
		if point < 5 {
			t.Errorf("only %d appends were tried", point-1)
		}
	}
}

// Scenario 30 over Badger: a process that is killed in the middle of an append leaves all of
// it or nothing.
func TestScenario30AllOrNothingInBadger(t *testing.T) {
	if dir := os.Getenv(envDir); dir != "" {
		doomed(t, dir)
		return
	}
	point := 1
	for killAt(t, "TestScenario30AllOrNothingInBadger", "under", point) {
		point++
	}
	if point < 5 {
		t.Errorf("only %d appends were tried", point-1)
	}
}
