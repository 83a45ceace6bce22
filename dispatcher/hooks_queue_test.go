package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Input that is queued behind questions is nothing to do while all of them wait: nobody is called,
// and nothing is written. It is heard when the last one is answered.
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

// An interceptor is told of each visit in which turn it is, also of those with which a turn begins,
// when nothing of that is durable yet: of input that was queued, and of a call's own.
func TestInterceptorsAreToldOfTheTurn(t *testing.T) {
	for _, lag := range []int{0, 3} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			var told []string
			o.Lag, o.Hooks.Intercept = lag, []dispatcher.Interceptor{{
				Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
					told = append(told, fmt.Sprint("before ", c.Path, " ", c.Turn))
					return dispatcher.Continue()
				},
				After: func(_ context.Context, c dispatcher.Call, _ []string) dispatcher.Change {
					told = append(told, fmt.Sprint("after ", c.Path, " ", c.Turn))
					return dispatcher.Keep()
				},
			}}
			expect := func(turns ...int) {
				t.Helper()
				var want []string
				for _, turn := range turns {
					for _, visit := range []string{"a", "b", "c"} {
						want = append(want, fmt.Sprint("before ", visit, " ", turn), fmt.Sprint("after ", visit, " ", turn))
					}
				}
				if !slices.Equal(told, want) {
					t.Errorf("interceptors were told %q, want %q", told, want)
				}
				told = nil
			}
			var w witness
			d := callsDispatcher(t, line(t, &w, nil), store, o)
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			expect(1)
			res, err = d.Turn(t.Context(), run, nil)
			completes(t, res, err)
			expect(2)
			for range 2 {
				if err := d.Enqueue(t.Context(), run, func(*Tale) {}); err != nil {
					t.Fatal(err)
				}
			}
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
			expect(3, 4)
		})
	}
}
