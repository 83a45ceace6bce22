package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What is voided begins anew, and so do its approvals: whatever voids a visit, what a person has
// decided about an effect of it that has not begun since does not count any more, be it that the
// failure was followed, or that the node went on without the effect. The person is asked again.
func TestGatesVoidedVisitAsksAgain(t *testing.T) {
	voids := map[string]struct {
		status checkpoint.Status // of the run that is about to be voided
		by     func(*testing.T, *dispatcher.Dispatcher[Tale])
	}{
		"edit": {checkpoint.StatusInterrupted, func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
			if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"pay"}}); err != nil {
				t.Fatal(err)
			}
		}},
		"conflict": {checkpoint.StatusFailed, func(*testing.T, *dispatcher.Dispatcher[Tale]) {}},
		"rewind": {checkpoint.StatusInterrupted, func(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
			if err := d.Rewind(t.Context(), run, "", dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, void := range voids {
		for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
			for _, fails := range []bool{false, true} {
				if fails && name == "conflict" {
					continue // who fails writes nothing
				}
				name := name + ", " + string(verdict) + map[bool]string{true: ", fails"}[fails]
				quiet(t)
				var bank effectBank
				store := new(memory.Store)
				ran, voided := 0, false
				b := dag.New[Tale]("voided")
				pay := dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
					if !voided {
						s.Word.Set("without")
					}
					if ran++; ran == 2 && verdict == dispatcher.Approve { // it was approved, and is not done
						return map[bool]error{true: errWeather}[fails]
					}
					word, err := dag.Effect(ctx, "charge", 5, bank.pay)
					switch {
					case err == nil:
						s.Word.Set(word)
					case errors.Is(err, dag.ErrDenied) && !fails:
						return nil
					}
					return err
				})
				dag.Step(b, "sorry", func(context.Context, *Tale) error { return nil }, pay.Failed())
				dag.Step(b, "beside", func(_ context.Context, s *Tale) error {
					if !voided {
						s.Word.Set("beside")
					}
					return nil
				})
				o := dispatcher.Eager(gatesCharge)
				if void.status == checkpoint.StatusInterrupted {
					o.InterruptBefore = []string{"beside"}
				}
				d := process(t, frozen(t, b), store, o)
				res, _ := d.Run(t.Context(), run, nil)
				first := gatesWaits(t, name, res)
				if err := d.Answer(t.Context(), run, first.ID, verdict); err != nil {
					t.Fatal(err)
				}
				if res, _ = d.Run(t.Context(), run, nil); res.Status != void.status || ran != 2 || len(bank.counts()) > 0 {
					t.Fatalf("%s: the run is %s, pay ran %d times, and %v was done", name, res.Status, ran, bank.counts())
				}
				voided = true
				void.by(t, d)
				res, _ = d.Resume(t.Context(), run)
				second := gatesWaits(t, name, res)
				if second.ID == first.ID || ran != 3 {
					t.Errorf("%s: the first interrupt waits again, pay ran %d times", name, ran)
				}
				sameMachine(t, d, run)
				if err := d.Answer(t.Context(), run, second.ID, dispatcher.Approve); err != nil {
					t.Fatal(err)
				}
				res, err := d.Resume(t.Context(), run)
				if completes(t, res, err); len(bank.counts()) != 1 {
					t.Errorf("%s: %v was done", name, bank.counts())
				}
			}
		}
	}
}

// gatesWaits is the interrupt in which the run waits for an approval of the charge.
func gatesWaits(t *testing.T, name string, res *dispatcher.Result[Tale]) dispatcher.Interrupt {
	t.Helper()
	for _, i := range res.Interrupts {
		if i.Kind == "effect" && i.Key == "charge" {
			return i
		}
	}
	t.Fatalf("%s: nobody is asked: the run is %s, and waits for %v", name, res.Status, res.Interrupts)
	return dispatcher.Interrupt{}
}
