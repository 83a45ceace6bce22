package milestone_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run may be trimmed while it is named: what is gone has no name, and the rest gets its own, of
// who names what has happened as of who follows the run, which goes on until its context is done.
func TestNamesBesideATrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, run := task(t, func(string) {}), &memory.Faulty{}
		if _, err := dispatch(t, g, run).Run(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		over := errors.New("over")
		for _, follow := range []bool{false, true} {
			for n, trimmed := 1, true; trimmed; n++ {
				trimmed = false
				s, call := run.Crash(0), 0
				before := func() {
					if call++; call == n {
						trimmed = true
						err := dispatch(t, g, &s.Store).Trim(t.Context(), "r", dispatcher.Retention{Last: 1, Tagged: true})
						if err != nil && !errors.Is(err, dispatcher.ErrBusy) { // whoever names has the lease
							t.Error(err)
						}
					}
				}
				s.FailRead = func(context.Context, string, string) error { before(); return nil }
				s.Fail = func(context.Context, memory.Write) memory.Fault { before(); return memory.None }
				d := dispatch(t, g, s)
				names := namer(t, d)
				if follow {
					ctx, cancel := context.WithCancelCause(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- names.Follow(ctx, "r") }()
					time.Sleep(time.Second) // for the moment that a trim waits for the lease of who names
					synctest.Wait()
					cancel(over)
					if err := <-ended; !errors.Is(err, over) {
						t.Errorf("trimmed before call %d of the store: Follow returned %v", n, err)
					}
				} else if _, err := names.Name(t.Context(), "r"); err != nil {
					t.Errorf("trimmed before call %d of the store: Name returned %v", n, err)
				}
				if got := tags(t, d, "r"); !slices.Contains(got, "every 2 is @4") {
					t.Errorf("trimmed before call %d of the store: what is left has the names %q", n, got)
				}
			}
		}
	})
}
