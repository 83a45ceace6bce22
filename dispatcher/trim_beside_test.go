package dispatcher_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A trimmedLate is a store in which something happens when a Trim has been decided on and is not
// made yet.
type trimmedLate struct {
	memory.Store
	meanwhile func()
}

func (s *trimmedLate) Trim(ctx context.Context, l checkpoint.Lease, at checkpoint.Head, e checkpoint.Entry, bases ...[]byte) (checkpoint.Head, error) {
	s.meanwhile()
	return s.Store.Trim(ctx, l, at, e, bases...)
}

// A checkpoint that has got its name is kept by a Trim that keeps what has one, also if it was
// under way: else Tag says that it is gone.
func TestTagBesideATrim(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			store := new(trimmedLate)
			d := process(t, rewindLine(t, &w, "a", "b", "c", "d"), store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			var tagged error
			var all sync.WaitGroup
			store.meanwhile = func() {
				tags := func() { tagged = d.Tag(t.Context(), run, "1", "good") }
				if again { // one that nobody has heard of yet
					ctx, gone := context.WithTimeout(t.Context(), time.Second)
					defer gone()
					if err := d.Tag(ctx, run, "1", "good"); !errors.Is(err, checkpoint.ErrBusy) {
						t.Errorf("beside the trim Tag returns %v, want ErrBusy", err)
					}
				}
				all.Go(tags)
				lasts(time.Second)
			}
			if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			if !errors.Is(tagged, checkpoint.ErrCursor) {
				t.Errorf("again %t: Tag returns %v of a checkpoint that was dropped meanwhile, want ErrCursor", again, tagged)
			}
			if err := d.Tag(t.Context(), run, "", "last"); err != nil {
				t.Errorf("behind the trim: %v", err)
			}
		})
	}
}

// A Trim that takes longer than Grace is not waited for.
func TestTagBesideALongTrim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w witness
		store := new(trimmedLate)
		d := process(t, rewindLine(t, &w, "a", "b", "c", "d"), store, dispatcher.Options{Grace: time.Minute})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		store.meanwhile = func() {
			began := time.Now()
			if err := d.Tag(t.Context(), run, "1", "good"); !errors.Is(err, checkpoint.ErrBusy) {
				t.Errorf("beside a trim Tag returns %v, want ErrBusy", err)
			}
			if took := time.Since(began); took < time.Minute || took > 61*time.Second {
				t.Errorf("it has waited %v", took)
			}
		}
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// Who tags a run because of what was said of it, under the lease of who says it, does not wait for
// that.
func TestTagFromTheObserverOfAnEdit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d *dispatcher.Dispatcher[Tale]
		var tagged error
		d = process(t, asksTwo(t), new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.StateEdited {
				tagged = d.Tag(t.Context(), run, "", "edited")
			}
		}})
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("edited") }, dispatcher.EditOptions{})
		if err := errors.Join(err, tagged); err != nil {
			t.Error(err)
		}
		if at, err := d.At(t.Context(), run, "tag:edited"); err != nil || at.State.Word.Get() != "edited" {
			t.Errorf("the tag leads to %+v, %v", at, err)
		}
	})
}

// asksBehindOne has a visit that asks behind one that does not.
func asksBehindOne(t *testing.T) *dag.Graph[Tale] {
	return line(t, new(witness), func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[string](ctx, "q", "?")
		return err
	})
}

// The cursor of a call that trims its run behind itself is no way past what somebody has said of
// the run before the trim.
func TestACursorBehindATrimKnowsNoCancelBeforeIt(t *testing.T) {
	var d *dispatcher.Dispatcher[Tale]
	store := new(memory.Store)
	d = process(t, asksBehindOne(t), store, dispatcher.Options{
		Retention: dispatcher.Retention{Last: 1},
		Hooks: dispatcher.Hooks{OnEnd: func(ctx context.Context, e dispatcher.End) error {
			if e.Status != checkpoint.StatusInterrupted {
				return nil
			}
			return d.Cancel(ctx, run, errors.New("enough"))
		}},
	})
	res, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if info, err := store.Stat(t.Context(), run); err != nil || info.First < 2 {
		t.Fatalf("nothing was trimmed: %v", err)
	}
	if _, err := d.Resume(t.Context(), run, dispatcher.From(res.Cursor)); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("a resume from %s, where the run waited, returns %v, want ErrStaleCursor", res.Cursor, err)
	}
	if is, err := d.State(t.Context(), run); err != nil || is.Status != checkpoint.StatusCancelled {
		t.Errorf("the run is %s, %v", is.Status, err)
	}
}
