package dispatcher_test

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Input that is queued behind questions is nothing to do while all of them wait: nobody is called, and nothing is written. It is
// heard when the last one is answered.
func TestHooksOfARunWithInputQueued(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var l hookLog
		b := dag.New[Tale]("asks")
		dag.Each(b, "each", func(*Tale) []int { return []int{1, 2} }, func(ctx context.Context, s *Tale, item int) error {
			if s.Word.Get() == "queued" {
				return nil
			}
			_, err := dag.Ask[bool](ctx, "sure", "sure?")
			return err
		})
		o.Hooks = l.ends()
		g := frozen(t, b)
		d := callsDispatcher(t, g, store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "each/1", "each/2")
		l.expect(t, "start tale turn 1: opened", "end tale: interrupted at each/1,each/2")
		waits := func(visits ...string) {
			t.Helper()
			unchanged(t, store, run, func() {
				for _, d := range []*dispatcher.Dispatcher[Tale]{d, callsDispatcher(t, g, store, o)} {
					for _, again := range []func() (*dispatcher.Result[Tale], error){
						func() (*dispatcher.Result[Tale], error) { return d.Run(t.Context(), run, nil) },
						func() (*dispatcher.Result[Tale], error) { return d.Resume(t.Context(), run) },
					} {
						res, err = again()
						rests(t, res, err, checkpoint.StatusInterrupted, visits...)
					}
				}
			})
			l.expect(t)
		}
		if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set("queued") }); err != nil {
			t.Fatal(err)
		}
		waits("each/1", "each/2")
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "each/2")
		l.expect(t, "start tale turn 1: resumed", "end tale: interrupted at each/2")
		waits("each/2")
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, true); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		if completes(t, res, err); res.Turn != 2 || res.State.Word.Get() != "queued" {
			t.Errorf("the run is in turn %d, with %q", res.Turn, res.State.Word.Get())
		}
		l.expect(t, "start tale turn 1: resumed", "end tale: completed")
	})
}
