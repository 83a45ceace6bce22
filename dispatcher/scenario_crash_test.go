package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
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
