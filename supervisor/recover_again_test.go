package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A secondLook is a supervisor whose Recover meets calls of Go for the runs a to d that do not go
// on with them, and so looks at these once more.
type secondLook struct {
	*supervisor.Supervisor
	d     *dispatcher.Dispatcher[parcel]
	store memory.Faulty
	looks func(method, run string) error // is asked whenever the store is read behind the calls
	began diary                          // behind them
}

func looksAgain(t *testing.T, leaves func(t *testing.T, store *memory.Faulty, runs ...string) *dispatcher.Dispatcher[parcel]) *secondLook {
	t.Helper()
	l, runs, over := new(secondLook), []string{"a", "b", "c", "d"}, 0
	l.d = leaves(t, &l.store, runs...)
	l.store.FailRead = func(_ context.Context, method, run string) error {
		if over < len(runs) {
			return nil
		}
		return l.looks(method, run)
	}
	l.Supervisor = supervise(t, &l.store, supervisor.Options{Cap: 1, Queue: 8, Answered: true, Observe: func(e supervisor.Event) {
		switch {
		case e.Kind == supervisor.Ended:
			over++
		case e.Kind == supervisor.Began && over >= len(runs):
			l.began.note(e.Run)
		}
	}}, l.d)
	for _, run := range runs {
		calls(t, l.Supervisor, l.d, run, func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
			lasts(time.Second)
			return l.d.Start(ctx, run, nil, drain)
		})
	}
	synctest.Wait()
	return l
}

func running(t *testing.T, store *memory.Faulty, runs ...string) *dispatcher.Dispatcher[parcel] {
	left(t, "line", 2, store, runs...)
	return process(t, line(t, "line", 2, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
}

// All that a Recover which looks again has not brought back when it ends is left: the run that it
// looks at, those before that are not at rest, and those that it has not come to.
func TestWhatARecoverThatLooksAgainLeaves(t *testing.T) {
	answered := func(t *testing.T, store *memory.Faulty, runs ...string) *dispatcher.Dispatcher[parcel] {
		d := asking(t, store)
		for _, run := range runs {
			if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			if err := d.Answer(t.Context(), run, "", true); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	for name, of := range map[string]struct {
		leaves func(t *testing.T, store *memory.Faulty, runs ...string) *dispatcher.Dispatcher[parcel]
		at     string // the first read of this kind
		ends   func(l *secondLook, cancel func(error)) error
		want   error
	}{
		"its context ends": {running, "Stat", func(_ *secondLook, cancel func(error)) error {
			cancel(errByUser)
			return errByUser
		}, errByUser},
		"its context ends when it has looked": {running, "Stat", func(_ *secondLook, cancel func(error)) error {
			cancel(errByUser)
			return nil
		}, errByUser},
		"its context ends when it looks for answers": {answered, "Read", func(_ *secondLook, cancel func(error)) error {
			cancel(errByUser)
			return errByUser
		}, errByUser},
		"its context ends when it has looked for answers": {answered, "Read", func(_ *secondLook, cancel func(error)) error {
			cancel(errByUser)
			return nil
		}, errByUser},
		"its context ends while it waits for room": {running, "Stat", func(l *secondLook, cancel func(error)) error {
			for i := range 9 { // one begins
				if _, err := supervisor.Submit(context.Background(), l.Supervisor, l.d, "", fmt.Sprint("other-", i), nil); err != nil {
					return err
				}
			}
			time.AfterFunc(100*time.Millisecond, func() { cancel(errByUser) })
			return nil
		}, errByUser},
		"the supervisor drains": {running, "Stat", func(l *secondLook, _ func(error)) error {
			_, err := l.Drain(context.Background())
			return err
		}, supervisor.ErrDraining},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				l := looksAgain(t, of.leaves)
				looked := false
				l.looks = func(method, _ string) error {
					if looked || method != of.at {
						return nil
					}
					looked = true
					return of.ends(l, cancel)
				}
				r, err := l.Recover(ctx)
				if !errors.Is(err, of.want) || !slices.Equal(r.Left, []string{"a", "b", "c", "d"}) || len(r.Rested)+len(r.Failed)+len(r.Busy) > 0 {
					t.Errorf("Recover = %+v, %v, want that all are left, and %v", r, err, of.want)
				}
				if _, err := l.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What is gone by then is in no list; what can't be read has failed; what is at its end is not
// begun. None of these keeps the others.
func TestARecoverLooksAgainAtEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := looksAgain(t, running)
		other := running(t, &l.store)
		ended := false
		l.looks = func(method, run string) error {
			switch {
			case method == "Stat" && run == "b":
				return errLost
			case method == "Stat" && run == "c":
				if err := l.store.Store.Delete(t.Context(), run); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
					t.Error(err)
				}
			case method == "Stat" && run == "d" && !ended:
				ended = true
				if _, err := other.Continue(t.Context(), run); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		r, err := l.Recover(t.Context())
		if err != nil || !slices.Equal(r.Rested, []string{"a", "d"}) || len(r.Failed) != 1 || !errors.Is(failed(r)["b"], errLost) || len(r.Left)+len(r.Busy) > 0 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
		l.began.expect(t, "a")
		if _, err := l.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
