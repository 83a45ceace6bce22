package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A resume is counted in the log, and leaves what was there: all checkpoints, and what was forked.
func TestLife08ResumesAreCountedAndKeepCheckpoints(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		o.InterruptBefore = []string{"b", "c"}
		d := callsDispatcher(t, rewindLine(t, &w, "a", "b", "c"), store, o)
		resumes := func() (n int) {
			return len(kinds(readLog(t, store), checkpoint.Resumed))
		}
		var listed []string
		res, err := d.Run(t.Context(), run, nil)
		forkOne(t, d, "", "fork", dispatcher.ReuseOrRefuse)
		before := kept(t, store, "fork")
		for r := range 2 {
			rests(t, res, err, checkpoint.StatusInterrupted, []string{"b", "c"}[r])
			if n := resumes(); n != r {
				t.Errorf("%d resumes are counted, want %d", n, r)
			}
			for p, err := range d.History(t.Context(), run) {
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(listed, p.Address()) {
					listed = append(listed, p.Address())
				}
			}
			res, err = d.Resume(t.Context(), run)
		}
		completes(t, res, err)
		var now []string
		for p, err := range d.History(t.Context(), run) {
			if err != nil {
				t.Fatal(err)
			}
			now = append(now, p.Address())
		}
		if resumes() != 2 || len(now) != 3 || !slices.Equal(now[:2], listed) {
			t.Errorf("behind %d resumes the checkpoints are %q, and were %q", resumes(), now, listed)
		}
		if !slices.Equal(before, kept(t, store, "fork")) {
			t.Error("the resumes changed the fork")
		}
	})
}

// A run that is at work is forked: the fork begins at the last checkpoint, and has nothing of
// what is under way, neither the effect nor the visit that is at it.
func TestLife45ForkOfALiveRun(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		under, free := make(chan struct{}), make(chan struct{})
		b := dag.New[Tale]("live")
		a := dag.Step(b, "a", func(_ context.Context, s *Tale) error { s.Word.Set("a"); return nil })
		dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "pay", 1, func(ctx context.Context, _ int) (int, error) {
				if dag.Key(ctx) == run+"/pay#pay" {
					close(under)
					<-free
				}
				return 1, nil
			})
			return err
		}, a)
		d := callsDispatcher(t, frozen(t, b), store, o)
		ended := make(chan error, 1)
		go func() { // the test waits for it
			_, err := d.Run(context.WithoutCancel(t.Context()), run, nil)
			ended <- err
		}()
		<-under
		ids, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{Effects: dispatcher.ReuseOrLive})
		if err != nil {
			t.Fatal(err)
		}
		then, err := d.State(t.Context(), ids[0])
		if err != nil || then.Superstep != 1 || then.State.Word.Get() != "a" || !slices.Equal(then.Cursor.Visits, []string{"pay"}) {
			t.Errorf("the fork stands at %v behind superstep %d, %v", then.Cursor, then.Superstep, err)
		}
		res, err := d.Run(t.Context(), ids[0], nil) // nothing is in doubt there
		completes(t, res, err)
		unchanged(t, store, "none", func() {
			_, err := d.Fork(t.Context(), run, run+"@99", dispatcher.ForkOptions[Tale]{Into: []string{"none"}})
			if !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("the fork at no checkpoint returned %v", err)
			}
		})
		close(free)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A fork and the run that it comes from go on without each other, whichever is deleted: neither
// sees what the other writes, waits for, does or tells.
func TestLife46ForkAndOriginDiverge(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		b := dag.New[Tale]("asks")
		a := dag.Step(b, "a", func(_ context.Context, s *Tale) error { s.Notes.Put("k", "shared"); return nil })
		dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			word, err := dag.Ask[string](ctx, "word", "which?")
			s.Word.Set(word)
			s.Notes.Put("k", word)
			return err
		}, a)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		ids, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{N: 2})
		if err != nil || ids[0] == ids[1] {
			t.Fatalf("the forks are %q, %v", ids, err)
		}
		before := kept(t, store, ids[0])
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "origin"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if !slices.Equal(before, kept(t, store, ids[0])) {
			t.Error("what the run did changed its fork")
		}
		if err := store.Delete(t.Context(), ids[1]); err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), ids[0], nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		if res.State.Notes.Len() != 1 {
			t.Errorf("the fork's state is %s", asJSON(t, res.State))
		}
		if err := d.Answer(t.Context(), ids[0], res.Interrupts[0].ID, "fork"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), ids[0], nil)
		completes(t, res, err)
		if got := res.State.Word.Get(); got != "fork" {
			t.Errorf("the fork ends with %q", got)
		}
		line, err := d.Lineage(t.Context(), ids[0])
		if err != nil || len(line) != 1 || line[0].Run != run {
			t.Errorf("the lineage is %v, %v", line, err)
		}
		for f, err := range checkpoint.Verify(t.Context(), store, ids[0]) {
			t.Errorf("the fork has %v, %v", f, err)
		}
	})
}
