package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// buryGraph has an Each of these items beside a step, in whose body beside is called, in the run's
// own graph or in a Loop.
func buryGraph(t *testing.T, w *witness, followed, inLoop bool, item func(*Tale, string), beside func(), items ...string) *dag.Graph[Tale] {
	t.Helper()
	add := func(b *dag.Builder[Tale]) (review, slow dag.Edge[Tale]) {
		each := dag.Each(b, "review", eachList(items...), func(ctx context.Context, s *Tale, is string) error {
			w.note(ctx)
			item(s, is)
			return nil
		})
		if followed {
			dag.Step(b, "rescue", w.sees(nil), each.Failed())
		}
		return each, dag.Step(b, "slow", w.sees(func(context.Context, *Tale) error { beside(); return nil }))
	}
	b := dag.New[Tale]("top")
	if !inLoop {
		review, slow := add(b)
		dag.Step(b, "last", w.sees(nil), dag.All[Tale](review, slow))
		return frozen(t, b)
	}
	body := dag.New[Tale]("body")
	review, slow := add(body)
	dag.Step(body, "last", w.sees(nil), dag.All[Tale](review, slow))
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return true }, 1)
	return frozen(t, b)
}

// Several items that are rejected while something else runs are one failure of the Each, whether in
// one message or one after the other; the run goes on from it, and another process reads the same.
func TestEachIsBuriedOnce(t *testing.T) {
	for _, followed := range []bool{true, false} {
		for _, inLoop := range []bool{false, true} {
			for _, together := range []bool{true, false} {
				for _, o := range []dispatcher.Options{
					{InterruptBefore: []string{"review/1", "review/2", "review/3"}},
					dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"review/1", "review/2", "review/3"}}),
				} {
					synctest.Test(t, func(t *testing.T) { buriedOnce(t, o, followed, inLoop, together) })
				}
			}
		}
	}
}

func buriedOnce(t *testing.T, o dispatcher.Options, followed, inLoop, together bool) {
	var w witness
	var d *dispatcher.Dispatcher[Tale]
	store, path := new(memory.Store), "review"
	if inLoop {
		path, o.InterruptBefore = "loop/1/review", slices.Clone(o.InterruptBefore)
		for i, is := range o.InterruptBefore {
			o.InterruptBefore[i] = "loop/1/" + is
		}
	}
	first := true
	g := buryGraph(t, &w, followed, inLoop, func(s *Tale, is string) { s.Said.Append(is) }, func() {
		if first {
			first = false
			buryRejects(t, d, together, followed)
		}
	}, "a", "b", "c", "d")
	d = process(t, g, store, o)
	res, err := d.Run(t.Context(), run, nil)
	if followed {
		if completes(t, res, err); !slices.Contains(res.State.Said.Slice(), path[:len(path)-len("review")]+"rescue") {
			t.Errorf("the state says %q", res.State.Said.Slice())
		}
	} else {
		var failed *dispatcher.NodeError
		if !errors.As(err, &failed) || failed.Path != path+"/1" {
			t.Fatalf("the run is %s: %v", res.Status, err)
		}
	}
	said := kinds(readLog(t, store), checkpoint.AttemptFailed)
	if n := len(slices.DeleteFunc(said, func(s string) bool { return s != checkpoint.AttemptFailed.String()+" "+path })); n != 1 {
		t.Errorf("the Each has failed %d times", n)
	}
	sameMachine(t, d, run)
	stores := []*memory.Store{store}
	if !followed {
		stores = append(stores, buriedTwice(t, readLog(t, store), path))
	}
	for _, store := range stores {
		res, err := process(t, g, store, o).Run(t.Context(), run, nil)
		for range 3 {
			if errors.Is(err, dispatcher.ErrInterrupted) {
				res, err = process(t, g, store, o).Resume(t.Context(), run)
			}
		}
		completes(t, res, err)
	}
}

// buriedTwice has the log as versions wrote it that told of the failure of the Each once more.
func buriedTwice(t *testing.T, log []checkpoint.Entry, path string) *memory.Store {
	t.Helper()
	k := slices.IndexFunc(log, func(e checkpoint.Entry) bool { return e.Kind == checkpoint.AttemptFailed && e.Path == path })
	if k < 0 {
		t.Fatal("the Each has not failed")
	}
	store := new(memory.Store)
	l, err := store.Acquire(t.Context(), run, "before")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = store.Append(t.Context(), l, checkpoint.Head{}, slices.Insert(log, k, log[k])); err == nil {
		err = store.Release(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// buryRejects rejects all items that wait.
func buryRejects(t *testing.T, d *dispatcher.Dispatcher[Tale], together, followed bool) {
	synctest.Wait()
	open, err := d.Open(t.Context(), run)
	if err != nil || len(open.Interrupts) != 3 {
		t.Errorf("%v wait, %v", open.Interrupts, err)
		return
	}
	all := map[string]any{}
	for i, waits := range open.Interrupts {
		if all[waits.ID] = dispatcher.Reject; together {
			continue
		}
		err := d.Answer(t.Context(), run, waits.ID, dispatcher.Reject)
		if gone := followed && i > 0; errors.Is(err, dispatcher.ErrNotAwaited) != gone || err != nil && !gone {
			t.Error(waits.Path, err)
		}
		synctest.Wait()
	}
	if together {
		if err := d.Answers(t.Context(), run, all); err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
}

// What such an Each has finished may conflict: that is one failure of the run as well, and the
// items run again once.
func TestEachThatConflictsIsBuriedOnce(t *testing.T) {
	for _, together := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var d *dispatcher.Dispatcher[Tale]
			mended, store := false, new(memory.Store)
			o := dispatcher.Eager(dispatcher.Options{InterruptBefore: []string{"review/3", "review/4", "review/5"}})
			g := buryGraph(t, &w, true, false, func(s *Tale, is string) {
				if s.Said.Append(is); !mended {
					s.Word.Set(is)
				}
			}, func() { buryRejects(t, d, together, false) }, "a", "b", "c", "d", "e")
			d = process(t, g, store, o)
			res, err := d.Run(t.Context(), run, nil)
			var conflict *state.ConflictError
			if res.Status != checkpoint.StatusFailed || !errors.As(err, &conflict) {
				t.Fatalf("the run is %s: %v", res.Status, err)
			}
			w.expect(t, "review/1", "review/2", "slow")
			sameMachine(t, d, run)
			mended = true
			res, err = process(t, g, store, o).Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "review/1", "review/2", "rescue")
			says(t, res.State, "a", "b", "slow", "rescue")
		})
	}
}
