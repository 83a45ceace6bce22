package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// continues has s go on with the run, and lets the store be full from then on, from half a second
// behind that on if it has begun.
func continues(t *testing.T, s *supervisor.Supervisor, store *device, begun bool, option dispatcher.RunOption) *supervisor.Task[struct{}] {
	t.Helper()
	store.full.Store(!begun)
	task, err := s.Continue(t.Context(), "", "a", option)
	if err != nil {
		t.Fatal(err)
	}
	lasts(500 * time.Millisecond)
	store.full.Store(true)
	lasts(time.Second)
	holds(t, s, 1)
	return task
}

// A run that is gone on with from a cursor alone, and waits for room, goes on from where it has
// come to; if it has not begun, only if nobody else has gone on with it meanwhile.
func TestAContinueFromACursorThatWaitsForRoom(t *testing.T) {
	for _, of := range []struct {
		name          string
		begun, passed bool // by somebody else
		want          error
	}{
		{"it has begun", true, false, nil},
		{"it has not", false, false, nil},
		{"it has not, and is passed", false, true, dispatcher.ErrStaleCursor},
	} {
		t.Run(of.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newDevice()
				left(t, "line", 3, store, "a")
				d := process(t, line(t, "line", 3, func(context.Context, int) error { lasts(time.Second); return nil }), store, dispatcher.Options{})
				s := supervise(t, store, supervisor.Options{}, d)
				stood, err := d.State(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				task := continues(t, s, store, of.begun, dispatcher.From(stood.Cursor))
				store.full.Store(false)
				if of.passed {
					drain := make(chan struct{})
					close(drain)
					if _, err := d.Continue(t.Context(), "a", dispatcher.Drain(drain)); !errors.Is(err, dispatcher.ErrDrain) {
						t.Fatal(err)
					}
				}
				if res, err := task.Wait(t.Context()); !errors.Is(err, of.want) || err == nil && res.Status != checkpoint.StatusCompleted {
					t.Errorf("Wait = %s, %v", res.Status, err)
				}
				if _, err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A question that a Continue has let expire is not asked for again when the run waits for room.
func TestAContinueThatExpiresAndWaitsForRoom(t *testing.T) {
	for _, begun := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := newDevice()
			g := line(t, "line", 2, func(ctx context.Context, step int) error {
				if step == 1 {
					lasts(time.Second)
					return nil
				}
				_, err := dag.Ask[string](ctx, "where", "?", dag.Within(24*time.Hour), dag.OrDefault("here"))
				return err
			})
			d := process(t, g, store, dispatcher.Options{})
			s := supervise(t, store, supervisor.Options{}, d)
			asked, err := d.Run(t.Context(), "a", nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			task := continues(t, s, store, begun, dispatcher.Expire(asked.Interrupts[0].ID))
			store.full.Store(false)
			if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("Wait = %s, %v", res.Status, err)
			}
			if _, err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
