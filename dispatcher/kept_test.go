package dispatcher_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// keptAsks is a chain of three, of which the one in the middle asks twice.
func keptAsks(t testing.TB) *dag.Graph[Tale] {
	return chainOf(t, 3, func(ctx context.Context, i int, s *Tale) error {
		if i == 1 {
			for _, key := range []string{"first", "second"} {
				n, err := dag.Ask[int](ctx, key, "how many?")
				if err != nil {
					return err
				}
				s.Count.Add(n)
			}
		}
		s.Said.Append(fmt.Sprint(i))
		return nil
	})
}

// readsLogs counts who reads logs and snapshots.
func readsLogs(inner checkpoint.Store) (*tampered, *int) {
	reads := 0
	return &tampered{Store: inner, before: func(_ context.Context, c call) error {
		if c.method == "Read" || c.method == "Snapshot" {
			reads++
		}
		return nil
	}}, &reads
}

func keptAnswer(t testing.TB, d *dispatcher.Dispatcher[Tale], res *dispatcher.Result[Tale], n int) *dispatcher.Result[Tale] {
	t.Helper()
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, n); err != nil {
		t.Fatal(err)
	}
	next, _ := d.Run(t.Context(), run, nil)
	return next
}

// A dispatcher that has run a run until it waits answers it and goes on with it without reading its log.
func TestKeptMachinesReadNoLog(t *testing.T) {
	t.Parallel()
	store, reads := readsLogs(new(memory.Store))
	d, err := dispatcher.New(keptAsks(t), checkpoint.Store(store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	*reads = 0
	res = keptAnswer(t, d, res, 3)
	res = keptAnswer(t, d, res, 4)
	if res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 7 || res.State.Said.Len() != 3 {
		t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
	}
	if *reads != 0 {
		t.Errorf("logs were read %d times", *reads)
	}
}

// What others have done to a run meanwhile is seen: a machine is kept for its head alone.
func TestKeptMachinesGiveWayToTheLog(t *testing.T) {
	t.Parallel()
	var store memory.Store
	g := keptAsks(t)
	one, other := process(t, g, &store, dispatcher.Options{}), process(t, g, &store, dispatcher.Options{})
	res, err := one.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	res = keptAnswer(t, other, res, 3)
	res = keptAnswer(t, one, res, 4) // has kept the run as it was before 3
	if res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 7 {
		t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
	}

	res, err = one.Run(t.Context(), "again", nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	if err := store.Delete(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	res, err = other.Run(t.Context(), "again", func(s *Tale) { s.Count.Set(100) })
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	if res, err = one.State(t.Context(), "again"); err != nil || res.State.Count.Get() != 100 {
		t.Errorf("a run that was made again is %s: %v", asJSON(t, res.State), err)
	}
	if err := one.Answer(t.Context(), "again", res.Interrupts[0].ID, 1); err != nil {
		t.Error(err)
	}
}

// What a dispatcher keeps is bounded, and what ends is not kept.
func TestKeptMachinesAreFew(t *testing.T) {
	t.Parallel()
	d := process(t, keptAsks(t), new(memory.Store), dispatcher.Options{})
	for i := range 300 {
		_, _ = d.Run(t.Context(), fmt.Sprint("run", i), nil)
	}
	if n := dispatcher.Kept(d); n != 256 {
		t.Errorf("%d machines are kept of 300 runs that wait, want 256", n)
	}
	d = process(t, keptAsks(t), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	res = keptAnswer(t, d, res, 3)
	if n := dispatcher.Kept(d); n != 1 {
		t.Errorf("%d machines are kept of a run that waits again", n)
	}
	keptAnswer(t, d, res, 3)
	if n := dispatcher.Kept(d); n != 0 {
		t.Errorf("%d machines are kept of a completed run", n)
	}
}
