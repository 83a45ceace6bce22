package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that was left running since the store was full is told of by a Drain, also if it was
// withdrawn, or if what was called for it since was refused, or has not begun.
func TestDrainTellsWhatAFullStoreHasLeft(t *testing.T) {
	for _, then := range []struct {
		name string
		does func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel])
		want supervisor.Drain
	}{
		{"it is withdrawn", nil, supervisor.Drain{Left: []string{"a"}}},
		{"it is called for in vain", func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel]) {
			called, err := supervisor.Go(t.Context(), s, d, "", "a", func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				return d.Start(ctx, "a", nil, drain)
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := called.Wait(t.Context()); !errors.Is(err, dispatcher.ErrExists) {
				t.Errorf("Wait = %v", err)
			}
		}, supervisor.Drain{Left: []string{"a"}}},
		{"it waits for its turn", func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel]) {
			submit(t, s, d, "", "b")
			lasts(500 * time.Millisecond)
			submit(t, s, d, "", "a")
		}, supervisor.Drain{Finished: []string{"b"}, Left: []string{"a"}}},
		{"it is at work", func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel]) {
			submit(t, s, d, "", "a")
			lasts(500 * time.Millisecond)
		}, supervisor.Drain{Finished: []string{"a"}}},
		{"it comes to rest", func(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel]) {
			completes(t, submit(t, s, d, "", "a"))
		}, supervisor.Drain{}},
	} {
		t.Run(then.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				d := process(t, line(t, "line", 1, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{Cap: 1}, d)
				task := submit(t, s, d, "", "a")
				lasts(500 * time.Millisecond)
				store.full.Store(true)
				lasts(time.Second)
				holds(t, s, 1)
				if !task.Withdraw() {
					t.Error("it was not withdrawn")
				}
				store.full.Store(false)
				lasts(time.Minute)
				if then.does != nil {
					then.does(t, s, d)
				}
				report, err := s.Drain(t.Context())
				if err != nil {
					t.Error(err)
				}
				reports(t, report, then.want)
			})
		})
	}
}
