package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A submission that leaves cancelled runs alone has the run's Rest as its result, also if the
// cancel came before it, of which a Continue without the option takes no notice.
func TestContinueLeavesCancelledRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 3, &store, "run")
		d := process(t, line(t, "line", 3, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{}, d)
		if err := d.Cancel(t.Context(), "run", errLost, dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		goesOn := func(o ...dispatcher.RunOption) error {
			task, err := s.Continue(t.Context(), "", "run", o...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = task.Wait(t.Context())
			return err
		}
		var rest *dispatcher.Rest
		if err := goesOn(dispatcher.UnlessCancelled()); !errors.As(err, &rest) || rest.Status != checkpoint.StatusCancelled || rest.By != "Ada" {
			t.Errorf("a run that Ada has cancelled: %v", err)
		}
		if err := goesOn(); err != nil {
			t.Errorf("without the option: %v", err)
		}
	})
}
