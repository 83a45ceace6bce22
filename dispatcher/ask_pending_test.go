package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An approval that waits when the process dies waits in the next one, is listed and can be
// decided, once: by Run, which ends no interrupt, and for what was asked by Resume as well. A
// second decision, and one of an unknown id, are refused and change nothing.
func TestLife40PendingApprovalSurvives(t *testing.T) {
	for name, before := range map[string]bool{"asked": false, "before": true} {
		t.Run(name, func(t *testing.T) {
			var w witness
			store := new(mortal)
			o := dispatcher.Options{}
			if before {
				o.InterruptBefore = []string{"approve"}
			}
			b := dag.New[Tale]("approval")
			dead := make(chan struct{})
			approve := dag.Step(b, "approve", w.sees(func(ctx context.Context, _ *Tale) error {
				if before {
					return nil
				}
				ok, err := dag.Ask[bool](ctx, "approve", "May it?")
				if err == nil && !ok {
					err = errWeather
				}
				return err
			}))
			works := dag.Step(b, "works", w.sees(func(context.Context, *Tale) error {
				<-dead // the first process dies when it wants to say that this is done
				return nil
			}))
			dag.Step(b, "last", w.sees(nil), approve, works)
			g := frozen(t, b)
			if err := store.revive(t.Context(), 0, false); err != nil {
				t.Fatal(err)
			}
			observed := o
			observed.Observe = func(e dispatcher.Event) {
				if e.Kind == dispatcher.VisitInterrupted {
					store.dieAt(1, false)
					close(dead)
				}
			}
			if _, err := process(t, g, store, observed).Run(t.Context(), run, nil); !errors.Is(err, errDead) {
				t.Fatalf("the process did not die: %v", err)
			}
			if err := store.revive(t.Context(), 0, false); err != nil {
				t.Fatal(err)
			}
			w.took()
			d := process(t, g, store, o)
			res, err := d.State(t.Context(), run)
			if err != nil || res.Status != checkpoint.StatusRunning || len(res.Interrupts) != 1 || res.Interrupts[0].Path != "approve" {
				t.Fatalf("after the death the run is %s, and %v wait, %v", res.Status, res.Interrupts, err)
			}
			id := res.Interrupts[0].ID
			res, err = d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "approve")
			w.expect(t, "works")
			if !before {
				res, err = d.Resume(t.Context(), run)
				rests(t, res, err, checkpoint.StatusInterrupted, "approve")
			}
			if res.Interrupts[0].ID != id || len(res.Interrupts) != 1 {
				t.Errorf("now %v wait, and %s did", res.Interrupts, id)
			}
			var yes any = true
			if before {
				yes = dispatcher.Approve
			}
			unchanged(t, store, run, func() {
				refused(t, d.Answer(t.Context(), run, "unknown", yes), dispatcher.ErrNotAwaited)
				refused(t, d.Answer(t.Context(), run, id, "perhaps"), dispatcher.ErrAnswerType)
			})
			if err := d.Answer(t.Context(), run, id, yes); err != nil {
				t.Fatal(err)
			}
			unchanged(t, store, run, func() {
				refused(t, d.Answer(t.Context(), run, id, yes), dispatcher.ErrNotAwaited)
			})
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
			w.expect(t, "approve", "last")
		})
	}
}

// A rejection that was accepted while a run was busy for a moment counts, although the next
// call is a Resume, which would end the interrupt with an approval.
func TestAskRejectionBeforeAResume(t *testing.T) {
	var w witness
	store := new(mortal)
	g := line(t, &w, nil)
	o := dispatcher.Options{InterruptBefore: []string{"b"}}
	d := process(t, g, store, o)
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	lease, err := store.Acquire(t.Context(), run, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	refused(t, d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve), dispatcher.ErrNotAwaited)
	if err := store.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	w.took()
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusFailed, "b")
	w.expect(t)
	if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
		t.Errorf("the posts %v are left, %v", posts, err)
	}
	if n := len(kinds(readLog(t, store), checkpoint.Noted)); n > 0 {
		t.Errorf("%d posts were noted", n)
	}
}
