package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// staleAdvice is what the error says with which a run does not go on, and changes nothing.
func staleAdvice(t *testing.T, d *dispatcher.Dispatcher[Tale], store checkpoint.Store, id string) *dispatcher.StaleError {
	t.Helper()
	var stale *dispatcher.StaleError
	unchanged(t, store, id, func() {
		if _, err := d.Run(t.Context(), id, nil); !errors.As(err, &stale) || stale.Path != "look" || stale.Run != id {
			t.Fatalf("the run of %q returned %v", id, err)
		}
	})
	return stale
}

// staleEnds has a run go on to its end, ending the interrupt before its last visit.
func staleEnds(t *testing.T, d *dispatcher.Dispatcher[Tale], id string) *dispatcher.Result[Tale] {
	t.Helper()
	res, err := d.Run(t.Context(), id, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "last")
	res, err = d.Resume(t.Context(), id)
	completes(t, res, err)
	return res
}

// staleStory has a run rest before its last visit, one superstep behind one that depends on the
// price list, which gets stale by and by.
func staleStory(t *testing.T, story func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store)) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		store := new(memory.Store)
		o := dispatcher.Options{InterruptBefore: []string{"last"}}
		d := process(t, timePrices(t, &w, dag.Invalidate), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		story(t, d, store)
	})
}

// A fork that has inherited what is stale has no checkpoint before it: the error names that of the
// run that it comes from, by way of forks of forks, and a fork of that goes on. If nobody has it
// any more, or another run has its name, the error says so.
func TestStaleAdviceInAForkNamesItsAncestor(t *testing.T) {
	staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
		forkOne(t, d, "", "fork", dispatcher.ReuseOrRefuse)
		if _, err := d.Fork(t.Context(), "fork", "0", dispatcher.ForkOptions[Tale]{Into: []string{"second"}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		for _, id := range []string{"fork", "second"} {
			stale := staleAdvice(t, d, store, id)
			want := `fork run "tale" at checkpoint "` + stale.Ancestor.Address() + `"`
			if stale.Rewind != "" || stale.Ancestor.Run != run || !strings.HasSuffix(stale.Error(), want) {
				t.Fatalf("the advice is %+v: %v", stale, stale)
			}
			ids, err := d.Fork(t.Context(), stale.Ancestor.Run, stale.Ancestor.Address(), dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live})
			if err != nil {
				t.Fatal(err)
			}
			staleEnds(t, d, ids[0])
		}
		if err := store.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		nothing := func(what string) {
			t.Helper()
			stale := staleAdvice(t, d, store, "second")
			if stale.Rewind != "" || stale.Ancestor != (dispatcher.Ancestor{}) || !strings.Contains(stale.Error(), "begin a new run") {
				t.Errorf("%s, and the advice is %v", what, stale)
			}
		}
		nothing("the run is gone")
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("another") })
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		nothing("another run has its name")
	})
}

// A fork that began before what is stale goes back to where it began, and so do its forks.
func TestStaleAdviceInAForkNamesItsBeginning(t *testing.T) {
	staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
		forkOne(t, d, "1", "fork", dispatcher.Live)
		res, err := d.Run(t.Context(), "fork", nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		<-time.After(time.Hour)
		stale := staleAdvice(t, d, store, "fork")
		if stale.Rewind != "fork@1" || stale.Ancestor != (dispatcher.Ancestor{}) || !strings.HasSuffix(stale.Error(), `rewind to checkpoint "fork@1"`) {
			t.Fatalf("the advice is %v", stale)
		}
		ids, err := d.Fork(t.Context(), "fork", stale.Rewind, dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live})
		if err != nil {
			t.Fatal(err)
		}
		staleEnds(t, d, ids[0])
		if err := d.Rewind(t.Context(), "fork", stale.Rewind, dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		staleEnds(t, d, "fork")
		<-time.After(time.Hour)
		res, err = d.Run(t.Context(), "fork", nil) // it has ended, and nothing more depends on it
		completes(t, res, err)
	})
}

// Of a run that was trimmed the error names a checkpoint that was kept for its name, else one of
// the run that it is a fork of, else none.
func TestStaleAdviceInATrimmedRun(t *testing.T) {
	for _, tagged := range []bool{true, false} {
		staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
			forkOne(t, d, "0", "fork", dispatcher.Live)
			res, err := d.Run(t.Context(), "fork", nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "last")
			for _, id := range []string{run, "fork"} {
				if tagged {
					if err := d.Tag(t.Context(), id, "1", "looked"); err != nil {
						t.Fatal(err)
					}
				}
				if err := d.Trim(t.Context(), id, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(time.Hour)
			stale := staleAdvice(t, d, store, "fork")
			if !tagged {
				if stale.Rewind != "" || stale.Ancestor != (dispatcher.Ancestor{}) {
					t.Errorf("the advice is %v", stale) // its origin was trimmed as well
				}
				return
			}
			if stale.Rewind != "1" {
				t.Fatalf("the advice is %v", stale)
			}
			if err := d.Rewind(t.Context(), "fork", stale.Rewind, dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			staleEnds(t, d, "fork")
		})
	}
	staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
		forkOne(t, d, "1", "fork", dispatcher.Live)
		res, err := d.Run(t.Context(), "fork", nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		if err := d.Trim(t.Context(), "fork", dispatcher.Retention{Last: 1}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		stale := staleAdvice(t, d, store, "fork")
		if stale.Rewind != "" || stale.Ancestor.Run != run {
			t.Fatalf("the advice is %v", stale)
		}
		ids, err := d.Fork(t.Context(), stale.Ancestor.Run, stale.Ancestor.Address(), dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live})
		if err != nil {
			t.Fatal(err)
		}
		staleEnds(t, d, ids[0])
	})
}

// The checkpoint that the error names keeps what was done before the stale visit began: an edit,
// and the input of the turn; what was abandoned is not gone back to.
func TestStaleAdviceKeepsWhatWasBefore(t *testing.T) {
	staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("edited") }, dispatcher.EditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"edited", "of the second turn"} {
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "last")
			<-time.After(time.Hour)
			stale := staleAdvice(t, d, store, run)
			if err := d.Rewind(t.Context(), run, stale.Rewind, dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			if res := staleEnds(t, d, run); res.State.Word.Get() != want {
				t.Errorf("behind %q the state is %s", stale.Rewind, asJSON(t, res.State))
			}
			_, err = d.Turn(t.Context(), run, func(s *Tale) { s.Word.Set("of the second turn") })
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
		}
	})
}

// The checkpoint that the error names is before what is stale, and not before what would be for
// getting stale later.
func TestStaleAdviceGoesBackNoFarther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		needs := func(name string, trusted time.Duration) part {
			return func(ctx context.Context, _ *Tale) error {
				return dag.Depends(ctx, dag.Dependency{Name: name, StaleAfter: trusted, OnStale: dag.Invalidate})
			}
		}
		b := dag.New[Tale]("prices")
		rates := dag.Step(b, "rates", needs("rates", 24*time.Hour))
		look := dag.Step(b, "look", needs("prices", time.Minute), rates)
		dag.Step(b, "last", nothing[Tale], look)
		store := new(memory.Store)
		d := process(t, frozen(t, b), store, dispatcher.Options{InterruptBefore: []string{"last"}})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		<-time.After(time.Hour)
		if stale := staleAdvice(t, d, store, run); stale.Rewind != "1" {
			t.Errorf("the advice is %v", stale)
		}
	})
}

// A checkpoint of an earlier turn that is left, and where something stale was merged as well, is
// none to go back to.
func TestStaleAdviceNamesNoCheckpointThatIsStale(t *testing.T) {
	staleStory(t, func(t *testing.T, d *dispatcher.Dispatcher[Tale], store *memory.Store) {
		if err := d.Tag(t.Context(), run, "", "looked"); err != nil {
			t.Fatal(err)
		}
		res, err := d.Resume(t.Context(), run)
		completes(t, res, err)
		res, err = d.Turn(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "last")
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if stale := staleAdvice(t, d, store, run); stale.Rewind != "" || !strings.Contains(stale.Error(), "begin a new run") {
			t.Errorf("the advice is %v", stale)
		}
	})
}
