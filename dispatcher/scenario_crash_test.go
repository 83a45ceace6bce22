package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// errPower is how a store in memory tells that its process is gone.
var errPower = errors.New("the process died")

// diamond returns a → (b, c) → d, which write to all kinds of cells. Every body that begins
// is told to begun first.
func diamond(t testing.TB, begun func(path string)) *dag.Graph[Tale] {
	body := func(ctx context.Context, s *Tale) error {
		path := visitPath(ctx)
		begun(path)
		s.Said.Append(path)
		s.Count.Add(1)
		s.Notes.Put(path, "was here")
		return nil
	}
	b := dag.New[Tale]("diamond")
	first := dag.Step(b, "a", body)
	left, right := dag.Step(b, "b", body, first), dag.Step(b, "c", body, first)
	dag.Step(b, "d", body, left, right)
	return frozen(t, b)
}

// told is what a diamond's state says at the end.
var told = []string{"a", "b", "c", "d"}

// consistent checks that a run is all before or all after each of its transitions: what the
// state says was run is what the log says was run, and the rest is in the cursor.
func consistent(t *testing.T, res *dispatcher.Result[Tale], log []checkpoint.Entry) (durable []string) {
	t.Helper()
	done := kinds(log, checkpoint.Done)
	supersteps := kinds(log, checkpoint.Superstep)
	merged := []int{0, 1, 3, 4}[len(supersteps)]
	if res.Superstep != len(supersteps) || res.State.Count.Get() != merged || res.State.Notes.Len() != merged {
		t.Errorf("after %d supersteps the state is %s", len(supersteps), asJSON(t, res.State))
	}
	says(t, res.State, told[:merged]...)
	for _, visit := range told {
		finished := slices.Contains(done, "done "+visit)
		if finished {
			durable = append(durable, visit)
		}
		if slices.Contains(res.Cursor.Visits, visit) && finished {
			t.Errorf("%s is done and in the cursor %q", visit, res.Cursor.Visits)
		}
	}
	return durable
}

// crashAt runs a diamond in a process that dies at append k, before or after the append is
// durable, and then in a new one. It reports whether the first one died.
func crashAt(t *testing.T, k int, durable bool) bool {
	var inner memory.Store
	store := &tampered{Store: &inner}
	if durable {
		store.after = func(c call, err error) error {
			if c.method == "Append" && c.n == k {
				return errors.Join(err, fmt.Errorf("%w: %w", checkpoint.ErrCommitUnknown, errPower))
			}
			return err
		}
	} else {
		store.before = fails("Append", k, errPower)
	}
	var w witness
	g := diamond(t, func(path string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.began = append(w.began, path)
	})
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
	if err == nil {
		completes(t, res, err)
		return false
	}
	if !errors.Is(err, errPower) || durable != errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Fatalf("append %d: the run returned %v", k, err)
	}
	w.took()

	d := process(t, g, &inner, dispatcher.Options{})
	var kept []string
	if res, err = d.State(t.Context(), run); err == nil {
		kept = consistent(t, res, readLog(t, &inner))
	} else if k > 1 || durable || !errors.Is(err, dispatcher.ErrNotFound) {
		t.Fatalf("append %d: the run can't be read: %v", k, err)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, told...)
	for _, visit := range w.took() {
		if slices.Contains(kept, visit) {
			t.Errorf("append %d: %s was durable and ran again", k, visit)
		}
	}
	return true
}

func TestScenario30AllOrNothingInMemory(t *testing.T) {
	quiet(t)
	for _, durable := range []bool{false, true} {
		k := 1
		for crashAt(t, k, durable) {
			k++
		}
		if k < 5 {
			t.Errorf("only %d appends were tried", k-1)
		}
	}
}

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
