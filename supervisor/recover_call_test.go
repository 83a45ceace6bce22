package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A Recover that meets a call of Go for a run goes on with it if that call does not, as a Start of
// a run that exists: it tells of the run as of any other.
func TestRecoverOfARunThatACallDoesNotGoOnWith(t *testing.T) {
	for _, atWork := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			left(t, "line", 2, &store, "a")
			d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
			told := events{began: time.Now(), kinds: []supervisor.EventKind{supervisor.Began, supervisor.Ended, supervisor.Recovered}}
			s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
			call := func(run string, does func(dispatcher.RunOption) (*dispatcher.Result[parcel], error)) *supervisor.Task[parcel] {
				task, err := supervisor.Go(t.Context(), s, d, "", run, func(_ context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
					lasts(time.Second)
					return does(drain)
				})
				if err != nil {
					t.Fatal(err)
				}
				return task
			}
			if !atWork {
				call("first", func(drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
					return d.Start(t.Context(), "first", nil, drain)
				})
			}
			task := call("a", func(drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				return d.Start(t.Context(), "a", nil, drain)
			})
			synctest.Wait()
			if r := <-recovering(t, s); !slices.Equal(r.Rested, []string{"a"}) || len(r.Failed) > 0 {
				t.Errorf("Recover = %+v", r)
			}
			if _, err := task.Wait(t.Context()); !errors.Is(err, dispatcher.ErrExists) {
				t.Errorf("who called is told %v", err)
			}
			if is := statuses(t, &store)["a"]; is != checkpoint.StatusCompleted {
				t.Errorf("the run is %s", is)
			}
			want := []string{"0s began a", "1s ended a", "1s began a", "1s ended a", "1s recovered a"}
			if !atWork {
				want = []string{"0s began first", "1s ended first", "1s began a", "2s ended a", "2s began a", "2s ended a", "2s recovered a"}
			}
			told.expect(t, want...)
			if _, err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A Recover that looks again at a run behind a call of Go, and can't read whether it was answered,
// tells that of it, and not that it rests.
func TestRecoverBehindACallOfARunThatCantBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory.Faulty{}
		var broken atomic.Bool
		store.FailRead = func(_ context.Context, method, _ string) error {
			if method == "Read" && broken.Load() {
				return checkpoint.ErrCorrupt
			}
			return nil
		}
		d := asking(t, store)
		if _, err := d.Run(t.Context(), "a", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := d.Answer(t.Context(), "a", "", true); err != nil {
			t.Fatal(err)
		}
		s := supervise(t, store, supervisor.Options{Answered: true}, d)
		_, err := supervisor.Go(t.Context(), s, d, "", "a", func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			lasts(time.Second)
			broken.Store(true)
			return nil, errLost
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := <-recovering(t, s); len(r.Rested) > 0 || len(r.Failed) != 1 || !errors.Is(failed(r)["a"], checkpoint.ErrCorrupt) {
			t.Errorf("Recover = %+v", r)
		}
		if _, err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
