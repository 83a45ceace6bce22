package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A run that is deleted, and made anew under its id, between the look at it and the call is looked
// at once more, however short it is, and gone on with.
func TestARunThatIsMadeAnewBehindTheLook(t *testing.T) {
	for name, does := range map[string]func(s *supervisor.Supervisor) error{
		"Recover": func(s *supervisor.Supervisor) error {
			r, err := s.Recover(t.Context())
			if !slices.Equal(r.Rested, []string{"run"}) {
				t.Errorf("Recover = %+v", r)
			}
			return err
		},
		"Continue": func(s *supervisor.Supervisor) error {
			task, err := s.Continue(t.Context(), "", "run")
			if err != nil {
				return err
			}
			_, err = task.Wait(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, anew := new(memory.Faulty), false
			left(t, "line", 3, store, "run")
			g := line(t, "line", 3, nil)
			other := process(t, g, &store.Store, dispatcher.Options{})
			store.FailRead = func(ctx context.Context, method, _ string) error {
				if method != "Acquire" || anew {
					return nil
				}
				anew = true
				return errors.Join(store.Store.Delete(ctx, "run"), other.Create(ctx, "run", nil))
			}
			s := supervise(t, store, supervisor.Options{}, process(t, g, store, dispatcher.Options{}))
			if err := does(s); err != nil {
				t.Error(err)
			}
			if is := statuses(t, store)["run"]; is != checkpoint.StatusCompleted || !anew {
				t.Errorf("the run is %s", is)
			}
		})
	}
}
