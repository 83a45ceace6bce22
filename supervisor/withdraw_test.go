package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that waits can be withdrawn, from any place of the queue: the store is as it was,
// who waits is told so, the others keep their order, and the id is free again.
func TestSupersWithdrawnRunLeavesNothing(t *testing.T) {
	for out := range 4 {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			var told, order diary
			hold := make(chan struct{})
			d := process(t, line(t, "line", 1, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
			s := supervise(t, &store, supervisor.Options{Cap: 1, Queue: 4, Observe: func(e supervisor.Event) {
				switch e.Kind {
				case supervisor.Dropped:
					told.note(e.String())
				case supervisor.Began:
					order.note(e.Run)
				}
			}}, d)
			first := submit(t, s, d, "a", "first")
			synctest.Wait()
			keys := []string{"a", "a", "b", "c"}
			var tasks []*supervisor.Task[parcel]
			for i, key := range keys {
				tasks = append(tasks, submit(t, s, d, key, fmt.Sprint("run-", i)))
			}
			gone := tasks[out]
			joined := submit(t, s, d, "other", gone.Run())
			if first.Withdraw() {
				t.Error("a run at work was withdrawn")
			}
			if !joined.Withdraw() || gone.Withdraw() {
				t.Error("the run was not withdrawn exactly once")
			}
			for _, task := range []*supervisor.Task[parcel]{gone, joined} {
				res, err := task.Wait(t.Context())
				if !errors.Is(err, supervisor.ErrWithdrawn) || res == nil || res.Status != "" {
					t.Errorf("Wait returns %+v, %v", res, err)
				}
			}
			told.expect(t, fmt.Sprintf(`%s: dropped of line for %s: supervisor: withdrawn: run %q has not begun`,
				gone.Run(), keys[out], gone.Run()))
			if _, working := s.Load(); working != 3 {
				t.Errorf("%d runs wait", working)
			}
			if _, err := store.Stat(t.Context(), gone.Run()); !errors.Is(err, checkpoint.ErrNotFound) {
				t.Errorf("the store has the run: %v", err)
			}
			again := submit(t, s, d, "d", gone.Run()) // there is room, and the id is free
			close(hold)
			completes(t, again)
			for i, task := range tasks {
				if i != out {
					completes(t, task)
				}
			}
			order.expect(t, [][]string{
				{"first", "run-1", "run-2", "run-3", "run-0"},
				{"first", "run-0", "run-2", "run-3", "run-1"},
				{"first", "run-0", "run-3", "run-2", "run-1"},
				{"first", "run-0", "run-2", "run-3", "run-1"},
			}[out]...)
		})
	}
}

// A recovered run that is withdrawn is left, as it stood, for the next recovery.
func TestSupersWithdrawnFromARecovery(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		d := process(t, line(t, "line", 2, func(context.Context, int) error { <-hold; return nil }), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		first := submit(t, s, d, "", "first")
		synctest.Wait()
		recovered := recovering(t, s)
		synctest.Wait()
		before, err := store.Stat(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		if task := submit(t, s, d, "", "run"); !task.Withdraw() {
			t.Error("the run was not withdrawn")
		}
		close(hold)
		completes(t, first)
		if r := <-recovered; len(r.Rested)+len(r.Failed) > 0 || !slices.Contains(r.Left, "run") {
			t.Errorf("Recover = %+v", r)
		}
		if after, err := store.Stat(t.Context(), "run"); err != nil || after.Head != before.Head || after.Status != before.Status {
			t.Errorf("the run is %+v, was %+v: %v", after, before, err)
		}
	})
}

// Who joins a run has all that its call returned, whichever of them has the state: cursor,
// interrupts, labels and warnings.
func TestSupersJoinedResultIsWhole(t *testing.T) {
	for _, continues := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			b := dag.New[parcel]("asks")
			lost := true // the first time, so that the next call has work
			dag.Step(b, "ask", func(ctx context.Context, p *parcel) error {
				if lost {
					lost = false
					return errLost
				}
				_, err := dag.Ask[string](ctx, "who", "who is it?")
				return err
			})
			g, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			hold := make(chan struct{})
			hooks := dispatcher.Hooks{
				OnEnd: func(context.Context, dispatcher.End) error { return errLost },
			}
			d := process(t, g, &store, dispatcher.Options{Hooks: hooks})
			plain := process(t, g, &store, dispatcher.Options{})
			labels := dispatcher.Labels(map[string]string{"tenant": "ada"})
			if _, err := plain.Run(t.Context(), "run", func(p *parcel) { p.Name.Set("run") }, labels); !errors.Is(err, errLost) {
				t.Fatal(err)
			}
			s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
			gate, err := supervisor.Go(t.Context(), s, d, "", "gate",
				func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
					<-hold
					return nil, errLost
				})
			if err != nil {
				t.Fatal(err)
			}
			var typed *supervisor.Task[parcel]
			var untyped *supervisor.Task[struct{}]
			if continues {
				typed = submit(t, s, d, "", "run")
			}
			if untyped, err = s.Continue(t.Context(), "", "run"); err != nil {
				t.Fatal(err)
			}
			if !continues {
				typed = submit(t, s, d, "", "run")
			}
			close(hold)
			<-gate.Done()
			a, errA := typed.Wait(t.Context())
			z, errZ := untyped.Wait(t.Context())
			if !errors.Is(errA, dispatcher.ErrInterrupted) || !errors.Is(errZ, dispatcher.ErrInterrupted) {
				t.Errorf("Wait returns %v and %v", errA, errZ)
			}
			if a.State.Name.Get() != "run" {
				t.Errorf("the state is %v", a.State)
			}
			for _, r := range []string{supersWhole(a), supersWhole(z)} {
				if want := "run interrupted at [ask], asks [ask], labels map[tenant:ada], 1 warnings"; r != want {
					t.Errorf("the result is %s\nwant %s", r, want)
				}
			}
		})
	}
}

// supersWhole is what a result tells beside its state.
func supersWhole[S any](r *dispatcher.Result[S]) string {
	var asks []string
	for _, i := range r.Interrupts {
		asks = append(asks, i.Path)
	}
	return fmt.Sprintf("%s %s at %v, asks %v, labels %v, %d warnings", r.Run, r.Status, r.Cursor.Visits, asks, r.Labels, len(r.Warnings))
}

// No field of a result is lost to who joins a run without its state.
func TestSupersJoinedResultHasEachField(t *testing.T) {
	var store memory.Store
	d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
	if _, err := d.Start(t.Context(), "run", nil); err != nil {
		t.Fatal(err)
	}
	whole := reflect.ValueOf(dispatcher.Result[parcel]{
		Run: "run", Status: checkpoint.StatusFailed, State: new(parcel), Frame: "frame", Superstep: 1, Turn: 2,
		Cursor:     checkpoint.Cursor{Run: "run", Seq: 3},
		Interrupts: []dispatcher.Interrupt{{ID: "ask"}}, Finished: []string{"step"},
		Failures: []dag.Failure{{Path: "step"}}, Fault: &dispatcher.FaultError{Kind: "limit"}, Abandoned: []string{"node"},
		Settings: json.RawMessage("{}"), Labels: map[string]string{"tenant": "ada"}, Correlation: "that", Warnings: []string{"warned"},
	})
	s := supervise(t, &store, supervisor.Options{}, d)
	hold := make(chan struct{})
	_, err := supervisor.Go(t.Context(), s, d, "", "run",
		func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			<-hold
			res := whole.Interface().(dispatcher.Result[parcel])
			return &res, errLost
		})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.Continue(t.Context(), "", "run")
	if err != nil {
		t.Fatal(err)
	}
	close(hold)
	res, err := task.Wait(t.Context())
	if !errors.Is(err, errLost) {
		t.Error(err)
	}
	for i := range whole.NumField() {
		name, want, got := whole.Type().Field(i).Name, whole.Field(i), reflect.ValueOf(*res).Field(i).Interface()
		if want.IsZero() {
			t.Errorf("this test gives %s no value", name)
		}
		if name != "State" && !reflect.DeepEqual(got, want.Interface()) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A key of which all that waited was withdrawn has its turn again with what is submitted for it
// next.
func TestKeyOfWhichAllWasWithdrawnWaitsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1}, d)
		hold := make(chan struct{})
		gated(t, s, d, hold)
		if !submit(t, s, d, "a", "first").Withdraw() {
			t.Error("the run was not withdrawn")
		}
		next := submit(t, s, d, "a", "next")
		close(hold)
		completes(t, next)
	})
}
